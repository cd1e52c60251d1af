/* sched.c - the scheduler: one entrance, a deterministic state machine */
#include "core/sched.h"

#include <stdlib.h>
#include <string.h>

#include "core/queue/suspend.h"
#include "core/quotas.h"
#include "core/record_check.h"
#include "core/state.h"

#define GAP_MAX_MS (INT64_C(24) * 3600 * 1000)

static bool timer_before(const void *a, const void *b)
{
	const struct job *x = a, *y = b;

	return x->timer_ms != y->timer_ms ? x->timer_ms < y->timer_ms : x->r.id < y->r.id;
}

static bool due_before(const void *a, const void *b)
{
	const struct reservation *x = a, *y = b;

	return x->due_ms != y->due_ms ? x->due_ms < y->due_ms : x->id < y->id;
}

static bool slot_timer_before(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->timer_ms != y->timer_ms ? x->timer_ms < y->timer_ms : x->r.id < y->r.id;
}

void sched_connect(struct sched *sched)
{
	sched->ledger = (struct ledger){
		.config = &sched->config,
		.meta = &sched->meta,
		.cluster = &sched->cluster,
		.index = &sched->index,
		.tenants = &sched->tenants,
		.reservations = &sched->reservations,
		.plan = &sched->plan,
	};
	sched->placement.ledger = &sched->ledger;
	sched->placement.config = &sched->config;
	sched->placement.cluster = &sched->cluster;
	sched->placement.index = &sched->index;
	sched->placement.shapes = &sched->shapes;
	sched->placement.jobs = &sched->jobs;
}

struct sched *sched_new(void)
{
	struct sched *sched = NEW(struct sched);

	sched->meta.id = 1;
	sched->config = config_default();
	sched->config_dirty = true;
	sched->timers = HEAP(struct job, timer_index, timer_before);
	sched->releases = HEAP(struct reservation, due_index, due_before);
	sched->slot_timers = HEAP(struct slot, timer_index, slot_timer_before);
	routes_init(&sched->routes);
	sched_connect(sched);
	workload_mix_init(&sched->placement.workload_mix);
	predictor_init(&sched->predictor);
	margins_init(&sched->margins);
	return sched;
}

static void free_jobs(struct sched *sched)
{
	for (size_t i = 0; i < sched->reservations.capacity; i++)
		free(sched->reservations.entries[i].value);
	for (size_t i = 0; i < sched->jobs.capacity; i++) {
		struct job *job = sched->jobs.entries[i].value;
		if (!job)
			continue;
		free(job->message);
		free(job->dependents);
		free(job->tasks);
		free(job->texts);
		free(job);
	}
	for (size_t i = 0; i < sched->arrays.capacity; i++) {
		struct array *array = sched->arrays.entries[i].value;
		if (array)
			ranktree_free(&array->eligible);
		free(array);
	}
	for (size_t i = 0; i < sched->promise_count; i++) {
		free(sched->promises[i]->rows);
		free(sched->promises[i]);
	}
	free(sched->promises);
}

void sched_free(struct sched *sched)
{
	if (!sched)
		return;
	free_jobs(sched);
	routes_free(&sched->routes);
	models_free(&sched->models);
	ranktree_free(&sched->cold_slots.by_cost);
	heap_free(&sched->slot_timers);
	map_free(&sched->jobs);
	map_free(&sched->reservations);
	map_free(&sched->arrays);
	text_map_free(&sched->keys);
	shapes_free(&sched->shapes);
	tenants_free(&sched->tenants);
	cluster_free(&sched->cluster);
	index_free(&sched->index);
	placement_free(&sched->placement);
	predictor_free(&sched->predictor);
	pass_free(&sched->pass);
	room_free(&sched->room);
	free(sched->rotation.waiting);
	backoff_free(&sched->backoffs);
	heap_free(&sched->timers);
	heap_free(&sched->releases);
	ranktree_free(&sched->claimants);
	ranktree_free(&sched->ends);
	ranktree_free(&sched->understaffed);
	ranktree_free(&sched->suspended);
	trials_free(sched);
	free(sched->plan.steps);
	free(sched->dirty.items);
	free(sched);
}

const struct cluster *sched_totals(struct sched *sched)
{
	return cluster_totals(&sched->cluster);
}

void sched_cluster_changed(struct sched *sched, bool structure)
{
	sched->cluster.counted = false;
	if (!structure)
		return;
	sched->cluster.ordered = false;
	sched->index.built = false;
	sched->cluster.windows.linked = false;
	sched->cluster.version++;
}

static int sched_by_id(const void *a, const void *b)
{
	const struct job *x = *(struct job *const *)a, *y = *(struct job *const *)b;

	return x->r.id < y->r.id ? -1 : x->r.id > y->r.id;
}

/* All jobs in memory by id; to be freed. */
static struct job **all_jobs(const struct sched *sched, size_t *count)
{
	struct job **jobs = memory_alloc((sched->jobs.count + 1) * sizeof(*jobs));

	*count = 0;
	for (size_t i = 0; i < sched->jobs.capacity; i++)
		if (sched->jobs.entries[i].value)
			jobs[(*count)++] = sched->jobs.entries[i].value;
	qsort(jobs, *count, sizeof(*jobs), sched_by_id);
	return jobs;
}

/* What waiting jobs ask for is counted by the smallest GPU there is. */
static void ask_anew(struct sched *sched)
{
	for (size_t i = 0; i < sched->jobs.capacity; i++) { /* sums are the same in any order */
		struct job *job = sched->jobs.entries[i].value;
		if (!job || !job->class)
			continue;
		tenant_ask(job->tenant, &job->asked, -1);
		job->asked = job_amounts(sched, job, job->pending);
		tenant_ask(job->tenant, &job->asked, 1);
	}
}

void sched_prepare(struct sched *sched)
{
	INVARIANT(!sched->plan.open || sched->index.built);
	if (!sched->cluster.ordered)
		cluster_order(&sched->cluster);
	if (sched_totals(sched)->smallest_mib != sched->asked_mib) {
		sched->asked_mib = sched->cluster.smallest_mib;
		ask_anew(sched);
	}
	if (!sched->cluster.windows.linked)
		windows_link(&sched->cluster);
	if (!sched->index.built) {
		index_build(&sched->index, &sched->cluster, &sched->config);
		sched->index.built = true;
	}
	scarcity_refresh(&sched->placement);
}

static void late_releases(struct sched *sched)
{
	struct reservation *reservation;

	while ((reservation = heap_first(&sched->releases)) &&
	       reservation->due_ms <= sched_now(sched)) {
		heap_pop(&sched->releases);
		reservation->due_ms = INT64_MAX;
		sched->pass.change_seq++;
		ledger_phase(&sched->ledger, reservation, reservation->phase, true);
		sched_dirty_reservation(sched, reservation);
		const struct slot *slot = reservation->slot;
		sched_event(sched,
		            (struct event){ .kind = EVENT_RELEASE_LATE,
		                            .job_id = slot ? 0 : reservation->job->r.id,
		                            .task = reservation->task,
		                            .node_id = reservation->node->r.id,
		                            .tenant_id = reservation_tenant(reservation)->r.id,
		                            .model_id = slot ? slot->r.model_id : 0 });
	}
}

/* A list of jobs that grows. */
struct job_list {
	struct job **at;
	size_t count, capacity;
};

static void list_add(struct job_list *list, struct job *job)
{
	array_reserve(list->at, list->capacity, list->count + 1);
	list->at[list->count++] = job;
}

/* Takes all jobs that are due out of the heap, by id: when exactly each was due
 * depends on what was looked at since. */
static void take_due_jobs(struct sched *sched, struct job_list *due)
{
	struct job *job;

	due->count = 0;
	while ((job = heap_first(&sched->timers)) && job->timer_ms <= sched_now(sched)) {
		heap_pop(&sched->timers);
		job->timer_ms = INT64_MAX;
		list_add(due, job);
	}
	if (due->count > 1)
		qsort(due->at, due->count, sizeof(struct job *), sched_by_id);
}

/* Jobs for which time alone changed something. One that this very command has
 * changed is left for the next, so that its last record is written first; one
 * that was touched by what happened to another is looked at again. */
static void due_jobs(struct sched *sched)
{
	struct job_list due = { 0 }, later = { 0 };
	bool again;

	do {
		again = false;
		take_due_jobs(sched, &due);
		for (size_t i = 0; i < due.count; i++) {
			struct job *job = due.at[i];
			if (heap_has(&sched->timers, job)) {
				again = true;
			} else if (job->dirty) {
				list_add(&later, job);
			} else {
				job_timer(sched, job);
				sched->pass.change_seq++;
			}
		}
	} while (again);
	for (size_t i = 0; i < later.count; i++)
		if (!heap_has(&sched->timers, later.at[i]))
			job_settle(sched, later.at[i]);
	free(due.at);
	free(later.at);
}

static void due_slots(struct sched *sched)
{
	struct slot *slot;

	while ((slot = heap_first(&sched->slot_timers)) && slot->timer_ms <= sched_now(sched)) {
		heap_pop(&sched->slot_timers);
		slot->timer_ms = INT64_MAX;
		slot_timer(sched, slot);
		sched->pass.change_seq++;
	}
}

static void time_passed(struct sched *sched)
{
	sched->meta.timed_ms = sched_now(sched);
	late_releases(sched);
	due_jobs(sched);
	route_expire(sched);
	due_slots(sched);
	windows_time_passed(sched);
	quotas_follow(sched);
}

static void put_price(struct sched *sched, const struct tenant *tenant)
{
	effects_put(sched->effects, RECORD_PRICE,
	            &(struct price_record){ .tenant_id = tenant->r.id,
	                                    .since_ms = sched_now(sched),
	                                    .cost_per_gpu_hour = tenant->r.cost_per_gpu_hour });
}

static bool sched_put_tenant(struct sched *sched, const struct tenant_record *given,
                             struct error *error)
{
	struct tenant_record record = *given;
	struct tenant *tenant = record.id ? tenants_find(&sched->tenants, record.id) : NULL;

	struct tenant_record before = record;
	bool is_new = !tenant;

	if (record.id && !tenant)
		return error_set(error, ERROR_NOT_FOUND, "tenant-%lld is not known",
		                 (long long)record.id);
	if (tenant) {
		before = tenant->r;
		tenant_settle_now(&sched->tenants, tenant, sched_now(sched), &sched->config);
	} else {
		record.id = sched->meta.last_tenant_id + 1;
	}
	if (!tenants_put(&sched->tenants, &record, error)) {
		if (tenant)
			tenant->r = before;
		return false;
	}
	tenant = tenants_find(&sched->tenants, record.id);
	sched->meta.last_tenant_id = max64(sched->meta.last_tenant_id, record.id);
	sched->effects->reply_id = record.id;
	sched_dirty_tenant(sched, tenant);
	if (is_new || before.cost_per_gpu_hour != tenant->r.cost_per_gpu_hour)
		put_price(sched, tenant);
	sched_event(sched, (struct event){ .kind = EVENT_TENANT_CHANGED, .tenant_id = record.id });
	return true;
}

/* The tenant and all above it, which are charged for what those below them use. */
static void charge_tenant(struct sched *sched, struct tenant *tenant, int64_t amount)
{
	for (; tenant; tenant = tenant->parent) {
		tenant_bill(&sched->tenants, tenant, amount, sched_now(sched), &sched->config);
		sched_dirty_tenant(sched, tenant);
	}
}

/* A tenant that is gone is not charged, nor given anything. */
static bool charge_tenants(struct sched *sched, struct rows charges, struct error *error)
{
	for (int64_t i = 0; i < charges.count; i++) {
		int64_t amount = charges.at[i * CHARGE_WIDTH + CHARGE_AMOUNT];
		if (amount < 0 || amount > CHARGE_MOST)
			return error_set(error, ERROR_INVALID,
			                 "a charge is %lld: it must be from 0 to %lld",
			                 (long long)amount, (long long)CHARGE_MOST);
	}
	for (int64_t i = 0; i < charges.count; i++) {
		const int64_t *row = charges.at + i * CHARGE_WIDTH;
		struct tenant *owner = tenants_find(&sched->tenants, row[CHARGE_MODEL_TENANT]);
		if (row[CHARGE_AMOUNT] == 0 || row[CHARGE_TENANT] == row[CHARGE_MODEL_TENANT])
			continue;
		charge_tenant(sched, tenants_find(&sched->tenants, row[CHARGE_TENANT]),
		              row[CHARGE_AMOUNT]);
		if (!owner)
			continue;
		tenant_credit(owner, row[CHARGE_AMOUNT]);
		sched_dirty_tenant(sched, owner);
	}
	return true;
}

static bool delete_tenant(struct sched *sched, int64_t id, struct error *error)
{
	struct tenant *tenant = tenants_find(&sched->tenants, id);

	if (!tenant)
		return error_set(error, ERROR_NOT_FOUND, "tenant-%lld is not known", (long long)id);
	for (size_t i = 0; i < sched->jobs.capacity; i++) {
		const struct job *job = sched->jobs.entries[i].value;
		if (job && job->tenant == tenant)
			return error_set(error, ERROR_CONFLICT,
			                 "tenant %s has jobs: wait until they have finished "
			                 "and been archived",
			                 tenant->r.name);
	}
	for (int i = 0; i < sched->cluster.windows.count; i++)
		if (sched->cluster.windows.at[i]->r.tenant_id == id)
			return error_set(error, ERROR_CONFLICT,
			                 "tenant %s has the window %s: delete that first",
			                 tenant->r.name, sched->cluster.windows.at[i]->r.name);
	for (size_t i = 0; i < sched->models.count; i++)
		if (sched->models.all[i]->tenant == tenant)
			return error_set(error, ERROR_CONFLICT,
			                 "tenant %s has models: remove them first", tenant->r.name);
	shapes_forget_tenant(&sched->shapes, tenant);
	if (!tenants_delete(&sched->tenants, tenant, error))
		return false;
	effects_delete(sched->effects, RECORD_TENANT, id, 0);
	sched_event(sched, (struct event){ .kind = EVENT_TENANT_CHANGED, .tenant_id = id });
	return true;
}

/* Keys of trees and heaps depend on settings. */
static void settle_all(struct sched *sched)
{
	size_t count;
	struct job **jobs = all_jobs(sched, &count);

	for (size_t i = 0; i < count; i++) {
		job_settle(sched, jobs[i]);
		for (int t = 0; t < jobs[i]->r.tasks; t++)
			if (jobs[i]->tasks[t].reservation)
				reservation_watch(sched, jobs[i]->tasks[t].reservation);
	}
	free(jobs);
	for (size_t i = 0; i < sched->cluster.node_count; i++) {
		const struct node *node = sched->cluster.nodes[i];
		for (int r = 0; r < node->reservation_count; r++)
			if (node->reservations[r]->slot)
				reservation_watch(sched, node->reservations[r]);
	}
}

static bool sched_configure(struct sched *sched, const struct config_record *config,
                            struct error *error)
{
	if (!config_check(config, error))
		return false;
	for (size_t i = 0; i < sched->tenants.count; i++) {
		struct tenant *tenant = sched->tenants.all[i];
		if (config->usage_half_life_ms == sched->config.usage_half_life_ms)
			break;
		tenant_settle_now(&sched->tenants, tenant, sched_now(sched), &sched->config);
		sched_dirty_tenant(sched, tenant);
	}
	sched->config = *config;
	sched->config.id = 1;
	sched->config_dirty = true;
	shapes_rerule(&sched->shapes, job_rule(sched), sched_now(sched));
	sched_cluster_changed(sched, true);
	backoff_clear(sched);
	settle_all(sched);
	return true;
}

/* A scheduler was away for longer than anyone leaves one off, or its clock is wrong. Nobody
 * is charged for that time, and no use is counted in it. */
static void skip_gap(struct sched *sched)
{
	int64_t gap_ms = sched_now(sched) - sched->written_meta.now_ms;

	if (sched->written_meta.now_ms == 0 || gap_ms <= GAP_MAX_MS)
		return;
	for (size_t i = 0; i < sched->tenants.count; i++) {
		struct tenant *tenant = sched->tenants.all[i];
		tenant->r.metered_ms += tenant->r.metered_ms > 0 ? gap_ms : 0;
		sched_dirty_tenant(sched, tenant);
	}
	for (size_t i = 0; i < sched->cluster.node_count; i++) {
		const struct node *node = sched->cluster.nodes[i];
		for (int r = 0; r < node->reservation_count; r++) {
			struct reservation *reservation = node->reservations[r];
			if (!reservation_is_billed(reservation))
				continue; /* it counts no more */
			reservation->counted_ms += reservation->counted_ms > 0 ? gap_ms : 0;
			reservation->started_ms += reservation->started_ms > 0 ? gap_ms : 0;
			sched_dirty_reservation(sched, reservation);
		}
	}
}

/* A new scheduler knows nothing of what happened on the nodes meanwhile. */
static void begin_term(struct sched *sched)
{
	sched->meta.term++;
	skip_gap(sched);
	/* First, so that a core that is loaded, which has no requests, does the same. */
	route_reset(sched);
	for (size_t i = 0; i < sched->cluster.node_count; i++) {
		struct node *node = sched->cluster.nodes[i];
		node->r.reported = false;
		sched_dirty_node(sched, node);
		slot_node_changed(sched, node);
	}
	sched_cluster_changed(sched, true);
}

static struct job *find_job(const struct sched *sched, int64_t id, struct error *error)
{
	struct job *job = map_get(&sched->jobs, id);

	if (!job)
		error_set(error, ERROR_NOT_FOUND, "job-%lld is not known", (long long)id);
	return job;
}

static struct reservation *find_right(const struct sched *sched, int64_t id, struct error *error)
{
	struct reservation *reservation = map_get(&sched->reservations, id);

	if (!reservation || reservation->phase == PHASE_CLAIM) {
		error_set(error, ERROR_NOT_FOUND, "reservation %lld is not known", (long long)id);
		return NULL;
	}
	return reservation;
}

/* A node speaks for itself alone: a token that was stolen from one node must not end the
 * work of another, nor take over its slots. */
static bool is_from(const struct reservation *reservation, const char *node, struct error *error)
{
	if (!node || !*node || strcmp(reservation->node->r.name, node) == 0)
		return true;
	return error_set(error, ERROR_FORBIDDEN,
	                 "node %.90s reports on reservation %lld, which is on node %.90s", node,
	                 (long long)reservation->id, reservation->node->r.name);
}

static bool apply_to_job(struct sched *sched, const struct command *command, struct error *error)
{
	int64_t id = command->kind == COMMAND_REPRIORITISE ? command->reprioritise.id : command->id;
	struct job *job = find_job(sched, id, error);

	if (!job)
		return false;
	switch (command->kind) {
	case COMMAND_CANCEL:
		return job_cancel(sched, job, error);
	case COMMAND_HOLD:
		return job_hold(sched, job, error);
	case COMMAND_UNHOLD:
		return job_unhold(sched, job, error);
	case COMMAND_REQUEUE:
		return job_requeue(sched, job, error);
	case COMMAND_SUSPEND:
		return job_suspend(sched, job, error);
	case COMMAND_RESUME:
		return job_resume(sched, job, error);
	default:
		return job_reprioritise(sched, job, command->reprioritise.priority, error);
	}
}

static bool apply_to_slot(struct sched *sched, const struct command *command, struct error *error)
{
	struct slot *slot = map_get(&sched->models.slots, command->slot.reservation_id);

	if (!slot)
		return error_set(error, ERROR_NOT_FOUND, "slot %lld is not known",
		                 (long long)command->slot.reservation_id);
	if (!is_from(slot->reservation, command->slot.node, error))
		return false;
	switch (command->kind) {
	case COMMAND_SLOT_LOADING:
		return slot_loading(sched, slot, error);
	case COMMAND_SLOT_READY:
		return slot_ready(sched, slot, command->slot.address, error);
	default:
		return slot_exited(sched, slot, command->slot.message, command->slot.released,
		                   error);
	}
}

static struct task_moved moved_of(const struct command *command)
{
	return (struct task_moved){ .done = command->task.released,
		                    .took_ms = command->task.ago_ms,
		                    .message = command->task.message };
}

/* A node that measured says so by what is on the host. */
static bool apply_move(struct sched *sched, struct slot *slot, const struct command *command,
                       struct error *error)
{
	int64_t host_bytes = command->task.use.host_peak_bytes;
	struct slot_moved moved = { .done = command->task.released,
		                    .took_ms = command->task.ago_ms,
		                    .host_bytes = host_bytes,
		                    .residue_mib = host_bytes > 0 ? command->task.use.peak_mib : -1,
		                    .message = command->task.message };

	return command->kind == COMMAND_TASK_SUSPENDED ? slot_slept(sched, slot, &moved, error)
	                                               : slot_woke(sched, slot, &moved, error);
}

static bool apply_to_task(struct sched *sched, const struct command *command, struct error *error)
{
	struct reservation *reservation = find_right(sched, command->task.reservation_id, error);
	struct task_moved moved = moved_of(command);

	if (!reservation || !is_from(reservation, command->task.node, error))
		return false;
	if (reservation->slot && command->kind == COMMAND_MEMORY_RELEASED)
		return slot_released(sched, reservation->slot, error);
	if (reservation->slot &&
	    (command->kind == COMMAND_TASK_SUSPENDED || command->kind == COMMAND_TASK_RESUMED))
		return apply_move(sched, reservation->slot, command, error);
	if (reservation->slot)
		return error_set(error, ERROR_CONFLICT, "reservation %lld is that of a slot",
		                 (long long)reservation->id);
	switch (command->kind) {
	case COMMAND_TASK_STARTED:
		return task_started(sched, reservation, error);
	case COMMAND_TASK_REFUSED:
		return task_refused(sched, reservation,
		                    command->task.message ? command->task.message : "", error);
	case COMMAND_TASK_EXITED:
		return task_exited(sched, reservation,
		                   &(struct task_end){ .exit_code = command->task.exit_code,
		                                       .ago_ms = command->task.ago_ms,
		                                       .message = command->task.message,
		                                       .use = &command->task.use,
		                                       .foreign = command->task.foreign,
		                                       .finished = command->task.finished,
		                                       .released = command->task.released },
		                   error);
	case COMMAND_TASK_NOTICE:
		return task_notice(sched, reservation, command->task.notice, command->task.message,
		                   error);
	case COMMAND_TASK_CHECKPOINT:
		return task_checkpoint(sched, reservation, error);
	case COMMAND_TASK_SUSPENDED:
		return task_suspended(sched, reservation, &moved, error);
	case COMMAND_TASK_RESUMED:
		return task_resumed(sched, reservation, &moved, error);
	default:
		return task_released(sched, reservation, error);
	}
}

static bool sched_dispatch(struct sched *sched, const struct command *command, struct error *error)
{
	switch (command->kind) {
	case COMMAND_START:
		begin_term(sched);
		return true;
	case COMMAND_CONFIGURE:
		return sched_configure(sched, &command->configure, error);
	case COMMAND_PUT_TENANT:
		return sched_put_tenant(sched, &command->tenant, error);
	case COMMAND_DELETE_TENANT:
		return delete_tenant(sched, command->id, error);
	case COMMAND_SUBMIT:
		return job_submit(sched, &command->submit, error);
	case COMMAND_CANCEL:
	case COMMAND_HOLD:
	case COMMAND_UNHOLD:
	case COMMAND_REQUEUE:
	case COMMAND_REPRIORITISE:
	case COMMAND_SUSPEND:
	case COMMAND_RESUME:
		return apply_to_job(sched, command, error);
	case COMMAND_NODE_REPORT:
		return node_report_apply(sched, &command->report, error);
	case COMMAND_GPU_REPORT:
		return node_report_gpu(sched, &command->gpu, error);
	case COMMAND_NODE_STATE:
		return node_report_state(sched, command->node_state.name, command->node_state.state,
		                         error);
	case COMMAND_NODE_DRAIN:
		return node_report_drain(sched, command->drain.name, command->drain.draining,
		                         command->drain.reason, error);
	case COMMAND_NODE_DEAD:
		return node_report_dead(sched, command->node, error);
	case COMMAND_NODE_REMOVE:
		return node_report_remove(sched, command->node, error);
	case COMMAND_NODE_FACTS:
		return facts_apply(sched, &command->facts, error);
	case COMMAND_PUT_NODE_CLASS:
		return node_class_apply(sched, command->node_class.name, command->node_class.nodes,
		                        error);
	case COMMAND_PUT_GUEST:
		return guest_put(sched, &command->guest, error);
	case COMMAND_REMOVE_GUEST:
		return guest_remove(sched, command->guest_name, error);
	case COMMAND_PUT_WINDOW:
		return windows_put(sched, &command->window, error);
	case COMMAND_REMOVE_WINDOW:
		return windows_delete(sched, command->id, error);
	case COMMAND_EVICT_MODEL:
		return model_evict(sched, command->evict.model_id, command->evict.node,
		                   command->evict.now, error);
	case COMMAND_CHARGE:
		return charge_tenants(sched, command->charges, error);
	case COMMAND_TASK_STARTED:
	case COMMAND_TASK_REFUSED:
	case COMMAND_TASK_EXITED:
	case COMMAND_TASK_CHECKPOINT:
	case COMMAND_TASK_NOTICE:
	case COMMAND_TASK_SUSPENDED:
	case COMMAND_TASK_RESUMED:
	case COMMAND_MEMORY_RELEASED:
		return apply_to_task(sched, command, error);
	case COMMAND_PUT_MODEL:
		return model_put(sched, &command->model, error);
	case COMMAND_REMOVE_MODEL:
		return model_remove(sched, command->id, error);
	case COMMAND_REQUEST:
		return route_request(sched, &command->request, error);
	case COMMAND_REQUEST_DONE:
		return route_done(sched, command->done.request_id, command->done.end, error);
	case COMMAND_REQUEST_RENEW:
		return route_renew(sched, command->request.request_id, command->request.lease_ms,
		                   error);
	case COMMAND_RESET_REQUESTS:
		route_reset(sched);
		return true;
	case COMMAND_SLOT_LOADING:
	case COMMAND_SLOT_READY:
	case COMMAND_SLOT_EXITED:
		return apply_to_slot(sched, command, error);
	case COMMAND_MIX:
		return workload_mix_fix(&sched->placement.workload_mix, command->mix, error);
	case COMMAND_TIME:
		time_passed(sched);
		return true;
	case COMMAND_CLOCK:
		return clock_move(sched, command->clock.to_ms, command->clock.clamp, error);
	case COMMAND_PASS:
		time_passed(sched);
		pass_run(sched, command->units);
		return true;
	default:
		return error_set(error, ERROR_INVALID, "unknown command %d", (int)command->kind);
	}
}

bool sched_apply(struct sched *sched, const struct command *command, struct effects *effects,
                 struct error *error)
{
	int64_t before_ms = sched->meta.now_ms;

	INVARIANT(!sched->plan.open);
	error_clear(error);
	sched->effects = effects;
	sched->meta.now_ms = max64(before_ms, command->now_ms);
	bool applied = sched_dispatch(sched, command, error);
	bool is_volatile = command->kind == COMMAND_REQUEST ||
	                   command->kind == COMMAND_REQUEST_DONE ||
	                   command->kind == COMMAND_REQUEST_RENEW;
	if (command->kind != COMMAND_PASS && command->kind != COMMAND_TIME && !is_volatile)
		sched->pass.change_seq++;
	if (!applied)
		sched->meta.now_ms = before_ms;
	else if (!is_volatile || sched->dirty.count > 0)
		sched_flush(sched);
	sched->effects = NULL;
	return applied;
}

bool sched_load(struct sched *sched, enum record_kind kind, const void *record, struct error *error)
{
	if (!record_check(sched, kind, record, error))
		return false;
	switch (kind) {
	case RECORD_META:
		sched->meta = *(const struct meta_record *)record;
		sched->written_meta = sched->meta;
		return true;
	case RECORD_CONFIG:
		sched->config = *(const struct config_record *)record;
		sched->config_dirty = false;
		return config_check(&sched->config, error);
	case RECORD_TENANT:
		return tenants_load(&sched->tenants, record, error) != NULL;
	case RECORD_NODE:
		return cluster_add_node(&sched->cluster, record) != NULL;
	case RECORD_GPU: {
		const struct gpu_record *gpu = record;
		struct node *node = map_get(&sched->cluster.node_by_id, gpu->node_id);
		return cluster_add_gpu(&sched->cluster, node, gpu) != NULL;
	}
	case RECORD_JOB:
		return job_load(sched, record, error) != NULL;
	case RECORD_JOB_STATE:
		return job_load_state(sched, record, error);
	case RECORD_TASK:
		return job_load_task(sched, record, error);
	case RECORD_MODEL:
		return model_load(sched, record, error) != NULL;
	case RECORD_SLOT:
		return slot_load(sched, record, error);
	case RECORD_RESERVATION:
		return ((const struct reservation_record *)record)->job_id == 0
		           ? slot_load_reservation(sched, record, error)
		           : reservation_load(sched, record, error);
	case RECORD_PROMISE:
		return promise_load(sched, record, error);
	case RECORD_GUESS:
		return predict_load_guess(&sched->predictor, record, error);
	case RECORD_OUTCOME:
		return predict_load_outcome(&sched->predictor, record, error);
	case RECORD_MIX:
		return workload_mix_load(&sched->placement.workload_mix, record, error);
	case RECORD_BACKOFF:
		return backoff_load(sched, record, error);
	case RECORD_NODE_CLASS:
		return cluster_put_node_class(&sched->cluster, record) != NULL;
	case RECORD_GUEST:
		return guest_load(sched, record) != NULL;
	case RECORD_WINDOW:
		return windows_load(sched, record);
	case RECORD_TRIAL:
		return trial_load(sched, record, error);
	case RECORD_MARGIN:
		return margin_load(&sched->margins, record, error);
	case RECORD_ACCURACY:
		return predict_load_accuracy(&sched->predictor, record, error);
	case RECORD_DECISION:
	case RECORD_RUN:
	case RECORD_PRICE:
		return true;
	default:
		return error_set(error, ERROR_CORRUPT, "unknown kind of record %d", (int)kind);
	}
}

bool sched_load_end(struct sched *sched, struct error *error)
{
	struct effects scratch = { 0 };

	if (!record_check_all(sched, error) || !tenants_loaded(&sched->tenants, error) ||
	    !predict_loaded(sched, error))
		return false;
	sched->effects = &scratch;
	cluster_order(&sched->cluster);
	sched->asked_mib = sched_totals(sched)->smallest_mib;
	jobs_loaded(sched);
	slots_loaded(sched);
	for (size_t i = 0; i < sched->cluster.node_count; i++)
		for (int g = 0; g < sched->cluster.nodes[i]->gpu_count; g++) {
			struct gpu *gpu = sched->cluster.nodes[i]->gpus[g];
			gpu->was_over = gpu_is_over(gpu);
		}
	sched->effects = NULL;
	sched->meta.last_event = sched->written_meta.last_event;
	/* Records that agree with each other need nothing to be put right. */
	bool agree = scratch.count == 0 && sched->dirty.count == 0;
	effects_free(&scratch);
	return agree || error_set(error, ERROR_CORRUPT,
	                          "jobs are stored in states that their tasks are not in");
}

void sched_check(const struct sched *sched)
{
	ledger_check(&sched->ledger);
	tenants_check(&sched->tenants);
	slots_check(sched);
	routes_check(sched);
	evict_check(sched);
	if (sched->index.built)
		index_check(&sched->index, &sched->cluster, &sched->config);
	placement_check((struct placement *)&sched->placement);
}

const struct meta_record *sched_meta(const struct sched *sched)
{
	return &sched->meta;
}

const struct config_record *sched_config(const struct sched *sched)
{
	return &sched->config;
}
