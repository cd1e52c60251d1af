/* chaos_check.c - the invariants, judged by what really happens and not by the ledger */
#include <string.h>

#include "sim/chaos/chaos_world.h"

/* A gang that still runs with too few tasks this long after the last fault never recovers. */
#define HALF_MS (INT64_C(30) * 60 * 1000)
/* This long after the last fault, schedulers are up and know what is on all nodes, and
 * everything that they had not ordered has ended. */
#define SETTLE_MS (INT64_C(4) * 60 * 1000)

/* What all that runs there uses or may use, and what is left of what ran, which
 * cannot grow; strangers included. */
static int64_t counted_mib(const struct chaos *chaos, int at, int gpu)
{
	const struct chaos_gpu *there = &chaos->nodes[at].gpus[gpu];
	int64_t sum = there->overhead_mib + there->standing_mib + there->stranger_mib;

	for (size_t i = 0; i < chaos->run_count; i++) {
		const struct run *run = chaos->runs[i];
		if (run->node == at && run->holds_memory)
			sum += max64(run->alive ? run->reserved_mib[gpu] : 0, run->used_mib[gpu]);
	}
	return sum;
}

static bool is_shared(const struct chaos *chaos, int at, int gpu)
{
	for (size_t i = 0; i < chaos->run_count; i++)
		if (chaos->runs[i]->node == at && chaos->runs[i]->alive && !chaos->runs[i]->away &&
		    chaos->runs[i]->reserved_mib[gpu] > 0)
			return true;
	return false;
}

static const struct job_record *job_of_run(const struct chaos *chaos, int64_t job_id)
{
	return job_id ? world_find(&chaos->store, RECORD_JOB, job_id, 0) : NULL;
}

/* A slot that was found on its node is known by what it uses: how much more it may use, its node
 * alone knows. */
static bool is_adopted(const struct chaos *chaos, const struct run *run)
{
	const struct slot_record *slot =
	    run->slot ? world_find(&chaos->store, RECORD_SLOT, run->reservation_id, 0) : NULL;

	return run->slot && (!slot || slot->adopted);
}

/* Its node was lost, or an administrator was wrong about it: the scheduler forgot it, and ends it.
 */
static bool is_forgotten(const struct chaos *chaos, const struct run *run)
{
	return run->given_up ||
	       !world_find(&chaos->store, RECORD_RESERVATION, run->reservation_id, 0);
}

/* What runs on a GPU takes turns, or has shares of its compute that add up to all of it at most.
 * Tenants are mixed only where that is allowed. A node looks at memory by itself, and not at
 * shares: what a scheduler has forgotten, or found there, does not count. */
static void check_compute(struct chaos *chaos, int at, int gpu, const struct node_order *order)
{
	const struct job_record *job = job_of_run(chaos, order->job_id);
	int64_t compute = job ? job->compute : 0, sum = compute;

	for (size_t i = 0; i < chaos->run_count; i++) {
		const struct run *run = chaos->runs[i];
		if (run->node != at || !run->alive || is_forgotten(chaos, run) ||
		    is_adopted(chaos, run) || run->away || run->reserved_mib[gpu] == 0 ||
		    run->reservation_id == order->reservation_id)
			continue;
		const struct job_record *other = job_of_run(chaos, run->job_id);
		int64_t its = other ? other->compute : 0;
		sum += its;
		if ((its > 0) != (compute > 0))
			chaos_broken(chaos, "shares",
			             "reservation %lld starts beside %lld, and one of them has a "
			             "share of the GPU's compute",
			             (long long)order->reservation_id,
			             (long long)run->reservation_id);
		if (its > 0 && compute > 0 && !chaos->mixed && other->tenant_id != job->tenant_id)
			chaos_broken(chaos, "shares",
			             "reservation %lld shares compute with %lld of another tenant",
			             (long long)order->reservation_id,
			             (long long)run->reservation_id);
	}
	if (sum > WHOLE_GPU)
		chaos_broken(chaos, "shares",
		             "reservation %lld starts, and %lld thousandths of its GPU's compute "
		             "are given away",
		             (long long)order->reservation_id, (long long)sum);
	if (compute > 0 && !strstr(chaos->nodes[at].labels, NODE_COMPUTE_SHARES))
		chaos_broken(chaos, "shares",
		             "reservation %lld has a share of compute on node-%d, which gives none",
		             (long long)order->reservation_id, at);
}

void check_fit(struct chaos *chaos, int at, const struct node_order *order)
{
	for (int64_t i = 0; i < order->part_count; i++) {
		const struct order_part *part = &order->parts[i];
		int gpu = run_gpu(&chaos->nodes[at], part->uuid);
		if (gpu < 0) {
			chaos_broken(chaos, "fits",
			             "reservation %lld starts on %s, which node-%d "
			             "does not have",
			             (long long)order->reservation_id, part->uuid, at);
			return;
		}
		const struct chaos_gpu *there = &chaos->nodes[at].gpus[gpu];
		int64_t before_mib = counted_mib(chaos, at, gpu);
		if (before_mib + part->memory_mib > there->capacity_mib || there->mig_mode)
			chaos_broken(chaos, "fits",
			             "reservation %lld starts with %lld MiB on %s, which has %lld "
			             "MiB and %lld of them in use",
			             (long long)order->reservation_id, (long long)part->memory_mib,
			             part->uuid, (long long)there->capacity_mib,
			             (long long)before_mib);
		if (part->whole && is_shared(chaos, at, gpu))
			chaos_broken(chaos, "fits",
			             "reservation %lld starts alone on %s, and something else runs "
			             "there",
			             (long long)order->reservation_id, part->uuid);
		check_compute(chaos, at, gpu, order);
	}
}

static int64_t asked_part_mib(const struct job_record *job, const struct chaos_gpu *gpu, int64_t at)
{
	switch (job->gpu_kind) {
	case GPU_FRACTION:
		return job->fraction * (gpu->capacity_mib - gpu->overhead_mib) / WHOLE_GPU;
	case GPU_UNEVEN:
		return job->uneven.at[at];
	default:
		return max64(job->memory_mib, 1);
	}
}

static int64_t asked_mib(const struct chaos *chaos, int at, const struct node_order *order,
                         const struct job_record *job)
{
	int64_t sum = 0;

	for (int64_t i = 0; i < order->part_count; i++) {
		int gpu = run_gpu(&chaos->nodes[at], order->parts[i].uuid);
		if (gpu >= 0)
			sum += asked_part_mib(job, &chaos->nodes[at].gpus[gpu], i);
	}
	return sum;
}

/* What starts has as much as was asked for, no GPU twice. */
static void check_asked(struct chaos *chaos, int at, const struct node_order *order)
{
	const struct job_record *job = world_find(&chaos->store, RECORD_JOB, order->job_id, 0);
	const struct model_record *model =
	    world_find(&chaos->store, RECORD_MODEL, order->model_id, 0);
	int64_t given = 0, asked = 0;

	for (int64_t i = 0; i < order->part_count; i++) {
		given += order->parts[i].memory_mib;
		for (int64_t j = 0; j < i; j++)
			if (strcmp(order->parts[i].uuid, order->parts[j].uuid) == 0)
				chaos_broken(chaos, "asked", "reservation %lld has %s twice",
				             (long long)order->reservation_id,
				             order->parts[i].uuid);
	}
	if (order->kind == ORDER_LOAD && model)
		asked = model->memory_mib;
	else if (order->kind == ORDER_START && job)
		asked = asked_mib(chaos, at, order, job);
	bool count_differs = order->kind == ORDER_START && job && job->split_gpus == 0 &&
	                     order->part_count != job->gpu_count;
	if (given < asked || count_differs)
		chaos_broken(chaos, "asked",
		             "reservation %lld starts with %lld MiB on %lld GPUs, and %lld MiB on "
		             "%d were asked for",
		             (long long)order->reservation_id, (long long)given,
		             (long long)order->part_count, (long long)asked,
		             job && order->job_id ? job->gpu_count : (int)order->part_count);
}

/* True if the record counts one more failure while foreign memory took the job's own: only that
 * lets a job start again that ended by itself. */
static bool failed_for_foreign_memory(struct chaos *chaos, struct chaos_job *job, int64_t id)
{
	const struct job_state_record *state = world_find(&chaos->store, RECORD_JOB_STATE, id, 0);

	if (!job->failed || !state || state->foreign_requeues <= job->foreign_requeues)
		return false;
	job->foreign_requeues = state->foreign_requeues;
	job->ended_itself = false;
	return true;
}

/* On a node that was declared dead and lives, an order that was on its way may still
 * be followed: that is the administrator's mistake. */
static void check_once(struct chaos *chaos, int at, const struct node_order *order)
{
	bool mistaken = chaos->nodes[at].mistaken;

	for (size_t i = 0; i < chaos->run_count; i++) {
		const struct run *run = chaos->runs[i];
		if (!run->alive)
			continue;
		if (run->reservation_id == order->reservation_id && run->node == at)
			chaos_broken(chaos, "once", "reservation %lld starts and runs already",
			             (long long)run->reservation_id);
		if (order->kind == ORDER_START && !run->slot && run->job_id == order->job_id &&
		    run->task == order->task && !run->given_up && !mistaken)
			chaos_broken(chaos, "once",
			             "task %lld of job-%lld starts on node-%d and runs on node-%d",
			             (long long)run->task, (long long)run->job_id, at, run->node);
	}
	struct chaos_job *job = client_job(chaos, order->job_id);
	if (order->kind == ORDER_START && !job)
		chaos_broken(chaos, "kept", "job-%lld, which is not stored, starts",
		             (long long)order->job_id);
	if (job && job->ended_itself && !mistaken &&
	    !failed_for_foreign_memory(chaos, job, order->job_id))
		chaos_broken(chaos, "once", "job-%lld ended by itself and is started again",
		             (long long)order->job_id);
}

static void check_dependencies(struct chaos *chaos, const struct node_order *order)
{
	const struct job_record *job = world_find(&chaos->store, RECORD_JOB, order->job_id, 0);

	for (int64_t i = 0; job && i < job->depends.count; i++) {
		const struct job_state_record *other =
		    world_find(&chaos->store, RECORD_JOB_STATE, job->depends.at[2 * i], 0);
		if (other &&
		    (other->state < JOB_COMPLETED || (job->depends.at[2 * i + 1] == AFTER_SUCCESS &&
		                                      other->state != JOB_COMPLETED)))
			chaos_broken(chaos, "order", "job-%lld starts before job-%lld is done",
			             (long long)order->job_id, (long long)other->id);
	}
}

void check_start(struct chaos *chaos, int at, const struct node_order *order)
{
	check_fit(chaos, at, order);
	check_host(chaos, at, order->reservation_id, order->host_bytes);
	check_asked(chaos, at, order);
	check_once(chaos, at, order);
	check_dependencies(chaos, order);
	if (!map_get(&chaos->nodes[at].allowed, order->reservation_id))
		chaos_broken(chaos, "terms",
		             "reservation %lld starts on node-%d, and only a scheduler of an older "
		             "term than %lld said so",
		             (long long)order->reservation_id, at,
		             (long long)chaos->nodes[at].seen_term);
}

void check_released(struct chaos *chaos, int at, int64_t reservation_id)
{
	const struct run *run = run_of(chaos, at, reservation_id);
	bool certain = chaos->exact;

	chaos->result->releases++;
	for (int g = 0; run && g < chaos->nodes[at].gpu_count; g++)
		certain = certain && !(run->used_mib[g] > 0 && chaos->nodes[at].gpus[g].doubtful);
	if (run && (run->alive || (run->holds_memory && certain)))
		chaos_broken(chaos, "released", "reservation %lld on node-%d is released, and %s",
		             (long long)reservation_id, at,
		             run->alive ? "it runs" : "its memory is not back");
}

void check_suspended(struct chaos *chaos, int at, int64_t reservation_id)
{
	const struct run *run = run_of(chaos, at, reservation_id);
	bool certain = true;

	for (int g = 0; run && g < chaos->nodes[at].gpu_count; g++)
		certain = certain && !(run->used_mib[g] > 0 && chaos->nodes[at].gpus[g].doubtful);
	/* One that was suspended before may be told of that once more. */
	if (run && run->alive && !run->exited && run->lingers && run->times == 1 && certain)
		chaos_broken(chaos, "released",
		             "reservation %lld on node-%d is told to be suspended, and its memory "
		             "is on its GPUs",
		             (long long)reservation_id, at);
}

static bool has_adopted_slot(const struct chaos *chaos, int at)
{
	for (size_t i = 0; i < chaos->run_count; i++) {
		const struct run *run = chaos->runs[i];
		if (run->node == at && run->alive && run->slot &&
		    (run->given_up || is_adopted(chaos, run)))
			return true;
	}
	return false;
}

void check_refused(struct chaos *chaos, int at, const struct change *change)
{
	bool for_room =
	    strstr(change->message, "has no room") || strstr(change->message, "others on it");

	for (int64_t i = 0; i < change->sample_count; i++)
		if (change->samples[i].foreign_mib > 0) /* a little of it is not told before */
			return;
	if (for_room && !has_adopted_slot(chaos, at) && chaos->quiet_ms > 0 &&
	    chaos->now_ms - chaos->quiet_ms > SETTLE_MS)
		chaos_broken(chaos, "agreed", "node-%d refuses reservation %lld: %s", at,
		             (long long)change->reservation_id, change->message);
}

void check_forgotten(struct chaos *chaos, int at, int64_t reservation_id)
{
	const struct run *run = run_of(chaos, at, reservation_id);

	if (run->exited && !run->told && !run->slot && !run->lease_lost && !run->given_up &&
	    world_find(&chaos->store, RECORD_RESERVATION, reservation_id, 0))
		chaos_broken(chaos, "kept",
		             "node-%d forgets the result of reservation %lld, which is not stored",
		             at, (long long)reservation_id);
}

static int count_bits(uint64_t bits)
{
	int count = 0;

	for (; bits; bits &= bits - 1)
		count++;
	return count;
}

static bool depends_in_vain(const struct chaos *chaos, int64_t id)
{
	const struct job_record *job = world_find(&chaos->store, RECORD_JOB, id, 0);

	for (int64_t i = 0; job && i < job->depends.count; i++) {
		const struct job_state_record *other =
		    world_find(&chaos->store, RECORD_JOB_STATE, job->depends.at[2 * i], 0);
		if (other && other->state > JOB_COMPLETED)
			return true;
	}
	return false;
}

static void check_state(struct chaos *chaos, const struct job_state_record *state)
{
	const struct chaos_job *job = client_job(chaos, state->id);

	if (!job)
		return;
	if (state->state == JOB_COMPLETED && count_bits(job->ended) < job->min_available)
		chaos_broken(chaos, "kept",
		             "job-%lld counts as done, and %d of its tasks ended, where %lld must",
		             (long long)state->id, count_bits(job->ended),
		             (long long)job->min_available);
	if (state->state == JOB_FAILED && !job->failed)
		chaos_broken(chaos, "kept", "job-%lld counts as failed (%s), and nothing of it did",
		             (long long)state->id, state->message);
	if (state->state == JOB_CANCELLED && !job->cancelled && !depends_in_vain(chaos, state->id))
		chaos_broken(chaos, "kept",
		             "job-%lld counts as cancelled (%s), and nobody did that",
		             (long long)state->id, state->message);
}

void check_stored(struct chaos *chaos, const struct effects *effects)
{
	for (size_t i = 0; i < effects->count; i++) {
		const struct effect *effect = &effects->at[i];
		if (effect->kind == EFFECT_PUT && effect->record_kind == RECORD_JOB_STATE)
			check_state(chaos, effect->record);
	}
}

static void check_kept(struct chaos *chaos)
{
	for (int64_t id = 1; id <= chaos->last_job_id; id++)
		if (chaos->jobs[id].known && chaos->jobs[id].acknowledged &&
		    !world_find(&chaos->store, RECORD_JOB_STATE, id, 0))
			chaos_broken(chaos, "kept", "job-%lld was acknowledged and is lost",
			             (long long)id);
}

static int64_t running_tasks(const struct chaos *chaos, int64_t job_id)
{
	int64_t count = 0;

	for (size_t i = 0; i < chaos->run_count; i++)
		count += chaos->runs[i]->alive && !chaos->runs[i]->slot &&
		         chaos->runs[i]->job_id == job_id;
	return count;
}

static void check_gangs(struct chaos *chaos)
{
	for (int64_t id = 1; id <= chaos->last_job_id; id++) {
		struct chaos_job *job = &chaos->jobs[id];
		if (!job->known || job->min_available < 2)
			continue;
		int64_t running = running_tasks(chaos, id);
		bool half = running > 0 && running + count_bits(job->ended) < job->min_available;
		if (!half)
			job->half_ms = 0;
		else if (job->half_ms == 0)
			job->half_ms = chaos->now_ms;
		else if (chaos->quiet_ms > 0 &&
		         chaos->now_ms - max64(job->half_ms, chaos->quiet_ms) > HALF_MS)
			chaos_broken(
			    chaos, "together",
			    "job-%lld has run for half an hour with %lld of the %lld tasks "
			    "that must run together",
			    (long long)id, (long long)running, (long long)job->min_available);
	}
}

void check_lease(struct chaos *chaos, int at)
{
	const struct chaos_node *node = &chaos->nodes[at];

	if (node->lease_until_ms > machine_now(chaos, at))
		return;
	for (size_t i = 0; i < chaos->run_count; i++) {
		struct run *run = chaos->runs[i];
		if (run->node == at && run->lease_stop && !run->exited)
			run->lease_lost = true;
	}
}

void check_after_step(struct chaos *chaos)
{
	for (int i = 0; i < chaos->node_count; i++)
		check_lease(chaos, i);
	if (chaos->steps % 64 == 0)
		run_tidy(chaos);
	if (chaos->steps % 256 == 0) {
		check_kept(chaos);
		check_gangs(chaos);
	}
	if (chaos->steps % 1024 == 0 && chaos->servers[0].sched)
		sched_check(chaos->servers[0].sched);
}

static bool miss(struct buffer *missing, const char *what, int64_t id)
{
	if (missing)
		buffer_print(missing, "%s %lld is not over", what, (long long)id);
	return false;
}

/* What the core says about it, for whoever looks at a failure. */
static void chaos_check_explain(struct chaos *chaos, enum record_kind kind, int64_t id)
{
	struct sched *sched = chaos->servers[0].sched;
	const void *record = world_find(&chaos->store, kind, id, 0);
	struct buffer text = { 0 };
	struct error error = { 0 };
	char *rest = NULL;

	if (record)
		record_print(&text, kind, record);
	buffer_text(&text, "\n");
	if (sched && kind == RECORD_JOB)
		sched_why(sched, id, 0, &text, &error);
	else if (sched)
		sched_why_model(sched, id, 0, &text, &error);
	for (char *line = strtok_r(text.data, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest))
		chaos_note(chaos, "%s", line);
	buffer_free(&text);
}

bool check_done(struct chaos *chaos, struct buffer *missing)
{
	for (int64_t id = 1; id <= chaos->last_job_id; id++) {
		const struct job_state_record *state =
		    world_find(&chaos->store, RECORD_JOB_STATE, id, 0);
		if (!chaos->jobs[id].known || !state || state->state >= JOB_COMPLETED)
			continue;
		if (missing)
			chaos_check_explain(chaos, RECORD_JOB, id);
		return miss(missing, "job", id);
	}
	if (chaos->wish_count > 0)
		return miss(missing, "a submission, one of", (int64_t)chaos->wish_count);
	if (chaos->request_count > 0 && missing)
		chaos_check_explain(chaos, RECORD_MODEL, chaos->requests[0].model_id);
	if (chaos->request_count > 0)
		return miss(missing, "request", chaos->requests[0].id);
	const struct rank_entry *first = ranktree_first(&chaos->store.kept[RECORD_RESERVATION]);
	return !first || miss(missing, "reservation", first->major);
}
