/* chaos_client.c - tenants, the jobs that they want, and people who change their minds */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/chaos/chaos_world.h"

#define WAITING_MOST 25 /* jobs that are not over */

struct chaos_job *client_job(const struct chaos *chaos, int64_t id)
{
	if (id <= 0 || id > chaos->last_job_id || !chaos->jobs[id].known)
		return NULL;
	return &chaos->jobs[id];
}

static void chaos_client_put_tenant(struct chaos *chaos, int at)
{
	uint64_t *random = &chaos->random;
	struct command command = { .kind = COMMAND_PUT_TENANT };
	char name[24];

	snprintf(name, sizeof(name), "team-%d", at);
	command.tenant = (struct tenant_record){
		.name = name,
		.parent_id = at > 1 && chance(random, 30) ? chaos->tenant_ids[0] : 0,
		.limit_gpu = UNLIMITED,
		.limit_cpu = UNLIMITED,
		.limit_host = UNLIMITED,
		.limit_gpu_memory = UNLIMITED,
		.limit_jobs = chance(random, 20) ? 3 : UNLIMITED,
		.quota_gpu = chaos->quotas ? between(random, 0, 4) * WHOLE_GPU : UNLIMITED,
		.quota_cpu = UNLIMITED,
		.quota_host = UNLIMITED,
		.weight = between(random, 1, 3) * 1000,
		.allow_preemption = chance(random, 70),
		.can_preempt_others = chance(random, 70),
		.max_preemptions = chance(random, 50) ? between(random, 0, 3) : UNLIMITED,
		.queue_max = UNLIMITED,
		.budget_per_month = UNLIMITED,
	};
	if (command.tenant.parent_id > 0)
		command.tenant.quota_gpu = QUOTA_UNSET;
	chaos->tenant_ids[at] = server_must(chaos, command);
}

static int64_t some_capacity(struct chaos *chaos)
{
	const struct chaos_node *node =
	    &chaos->nodes[between(&chaos->random, 0, chaos->node_count - 1)];
	const struct chaos_gpu *gpu = &node->gpus[between(&chaos->random, 0, node->gpu_count - 1)];

	return gpu->capacity_mib;
}

/* So much that some node could take it, on one GPU or split over several. */
static int64_t draw_model_mib(struct chaos *chaos)
{
	const struct chaos_node *node =
	    &chaos->nodes[between(&chaos->random, 0, chaos->node_count - 1)];
	int64_t smallest_mib = INT64_MAX, gpus = 0;

	for (int g = 0; g < node->gpu_count; g++) {
		const struct chaos_gpu *gpu = &node->gpus[g];
		if (gpu->mig_mode)
			continue;
		gpus++;
		smallest_mib = min64(smallest_mib, gpu->capacity_mib - gpu->overhead_mib);
	}
	return max64(between(&chaos->random, 1, gpus) * smallest_mib *
	                 between(&chaos->random, 10, 90) / 100,
	             1);
}

static void chaos_client_put_model(struct chaos *chaos, int at)
{
	uint64_t *random = &chaos->random;
	struct command command = { .kind = COMMAND_PUT_MODEL };
	char name[24];

	snprintf(name, sizeof(name), "model-%d", at);
	command.model.model = (struct model_record){
		.tenant_id = chaos->tenant_ids[between(random, 0, chaos->tenant_count - 1)],
		.name = name,
		.runtime = RUNTIME_LLAMA_CPP,
		.command = "",
		.payload = "",
		.kv_cache = "",
		.gpu_models = "",
		.node_labels = "",
		.message = "",
		.memory_mib = draw_model_mib(chaos),
		.uneven = chance(random, 20),
		.priority = 100 * between(random, 1, 9),
		.concurrency = between(random, 1, 3),
		.idle_ttl_ms = between(random, 1, 20) * 1000,
		.load_timeout_ms = 60000,
		.min_replicas = chaos->reserving ? between(random, 0, 1) : 0,
		.max_replicas = between(random, 1, 3),
		.shared = true,
	};
	chaos->model_ids[at] = server_must(chaos, command);
}

void client_init(struct chaos *chaos)
{
	chaos->reserving = chance(&chaos->random, 30);
	chaos->quotas = chance(&chaos->random, 30);
	chaos->tenant_count = (int)between(&chaos->random, 1, CHAOS_TENANTS);
	for (int i = 0; i < chaos->tenant_count; i++)
		chaos_client_put_tenant(chaos, i);
	chaos->model_count = (int)between(&chaos->random, 0, CHAOS_MODELS);
	for (int i = 0; i < chaos->model_count; i++)
		chaos_client_put_model(chaos, i);
}

static void draw_gpus(struct chaos *chaos, struct chaos_wish *wish)
{
	static const enum gpu_kind kinds[] = { GPU_MEMORY, GPU_MEMORY, GPU_FRACTION,
		                               GPU_WHOLE,  GPU_NONE,   GPU_UNEVEN };
	struct job_record *job = &wish->submit.job;
	uint64_t *random = &chaos->random;

	job->gpu_kind = (int32_t)ONE_OF(random, kinds);
	job->gpu_count = job->gpu_kind == GPU_NONE ? 0 : chance(random, 75) ? 1 : 2;
	if (job->gpu_kind == GPU_MEMORY)
		job->memory_mib = max64(some_capacity(chaos) * between(random, 1, 70) / 100, 1);
	if (job->gpu_kind == GPU_FRACTION)
		job->fraction = (int32_t)between(random, 1, 10) * 100;
	for (int i = 0; i < job->gpu_count && job->gpu_kind == GPU_UNEVEN; i++)
		wish->uneven[i] = max64(some_capacity(chaos) * between(random, 1, 60) / 100, 1);
	if (job->gpu_kind == GPU_UNEVEN)
		job->uneven = (struct rows){ wish->uneven, job->gpu_count };
	if (job->gpu_kind != GPU_WHOLE && job->gpu_count == 1 && chance(random, 30))
		job->compute = (int32_t)between(random, 1, 8) * 100;
}

static void draw_tasks(struct chaos *chaos, struct chaos_wish *wish)
{
	struct job_record *job = &wish->submit.job;
	uint64_t *random = &chaos->random;

	job->tasks = job->min_available = 1;
	if (chance(random, 20)) {
		job->tasks = job->min_available = between(random, 2, 4);
	} else if (chance(random, 12)) {
		job->tasks = between(random, 2, 5);
		job->min_available = between(random, 1, job->tasks);
	} else if (job->gpu_kind == GPU_WHOLE && chance(random, 15)) {
		job->split_gpus = between(random, 1, 4);
		job->gpu_count = 1;
	} else if (chance(random, 8)) {
		wish->submit.array_from = 1;
		wish->submit.array_to = between(random, 2, 5);
		job->array_limit = between(random, 0, 2);
	}
}

/* On known jobs, finished ones included. */
static void draw_depends(struct chaos *chaos, struct chaos_wish *wish)
{
	struct job_record *job = &wish->submit.job;
	uint64_t *random = &chaos->random;

	if (chaos->last_job_id == 0 || !chance(random, 12))
		return;
	int64_t id = between(random, max64(1, chaos->last_job_id - 10), chaos->last_job_id);
	const struct job_record *other = world_find(&chaos->store, RECORD_JOB, id, 0);
	if (!client_job(chaos, id) || !other)
		return;
	job->tenant_id = other->tenant_id;
	wish->depends[0] = id;
	wish->depends[1] = chance(random, 50) ? AFTER_SUCCESS : AFTER_ANY;
	job->depends = (struct rows){ wish->depends, 1 };
}

static struct chaos_wish *draw_wish(struct chaos *chaos)
{
	static const char *const names[] = { "train", "eval", "sweep" };
	struct chaos_wish *wish = NEW(struct chaos_wish);
	uint64_t *random = &chaos->random;
	struct job_record *job = &wish->submit.job;

	snprintf(wish->key, sizeof(wish->key), "key-%lld", (long long)++chaos->last_key);
	snprintf(wish->name, sizeof(wish->name), "%s-%lld", ONE_OF(random, names),
	         (long long)between(random, 1, 9));
	*job = (struct job_record){
		.tenant_id = chaos->tenant_ids[between(random, 0, chaos->tenant_count - 1)],
		.name = wish->name,
		.payload = "",
		.gpu_models = chance(random, 10) ? "H100" : "",
		.node_labels = chance(random, 5) ? "disk=ssd" : "",
		.idempotency_key = wish->key,
		.cpu_milli = 100 * between(random, 0, 30),
		.host_bytes = chance(random, 60) ? 0 : between(random, 1, 32) << 28,
		.suspend =
		    chance(random, 70) ? SUSPEND_AUTO : (int32_t)between(random, 0, SUSPEND_NEVER),
		.priority = 100 * between(random, 1, 9),
		.preemptible = chaos->quotas || chance(random, 60),
		.movable = chance(random, 40),
		.lease_loss = chance(random, 40) ? LEASE_STOP : LEASE_KEEP,
		.max_runtime_ms = chance(random, 8) ? between(random, 1, 30) * 1000 : 0,
	};
	if (chance(random, 10)) {
		job->closeness = (int32_t)between(random, CLOSE_ANY, CLOSE_RACK);
	}
	draw_gpus(chaos, wish);
	draw_tasks(chaos, wish);
	job->closeness_required = chance(random, 50);
	draw_depends(chaos, wish);
	wish->submit.check_possible = true;
	return wish;
}

static void drop_wish(struct chaos *chaos, const struct chaos_wish *wish)
{
	for (size_t i = 0; i < chaos->wish_count; i++) {
		if (chaos->wishes[i] != wish)
			continue;
		free(chaos->wishes[i]);
		chaos->wishes[i] = chaos->wishes[--chaos->wish_count];
		return;
	}
}

/* Whoever is refused does not ask again; whoever is not answered does. */
static void send_wish(struct chaos *chaos, struct chaos_wish *wish)
{
	struct command command = { .kind = COMMAND_SUBMIT, .submit = wish->submit };
	bool other = chaos->servers[1].sched && chance(&chaos->dice[CHAOS_SECOND], 20);
	struct chaos_batch *batch = server_decide(chaos, other ? 1 : 0, &command);

	if (!batch)
		return;
	if (batch->effects.reply_id == 0) {
		drop_wish(chaos, wish);
		return;
	}
	batch->wish = wish;
	wish->sent = true;
}

void client_unanswered(struct chaos_wish *wish)
{
	wish->sent = false;
}

static int64_t chaos_client_count_of(const struct chaos_wish *wish)
{
	return wish->submit.array_to > 0 ? wish->submit.array_to - wish->submit.array_from + 1 : 1;
}

void client_stored(struct chaos *chaos, const struct chaos_batch *batch)
{
	int64_t first = batch->effects.reply_id, count = chaos_client_count_of(batch->wish);

	if (batch->effects.repeated)
		return;
	for (int64_t id = first; id < first + count; id++) {
		const struct job_record *record = world_find(&chaos->store, RECORD_JOB, id, 0);
		size_t capacity = chaos->job_capacity;
		array_reserve(chaos->jobs, chaos->job_capacity, (size_t)id + 1);
		if (chaos->job_capacity > capacity)
			memset(chaos->jobs + capacity, 0,
			       (chaos->job_capacity - capacity) * sizeof(*chaos->jobs));
		if (!record) {
			chaos_broken(chaos, "kept", "job-%lld was submitted and is not stored",
			             (long long)id);
			return;
		}
		chaos->jobs[id] = (struct chaos_job){
			.known = true,
			.keeps = record->lease_loss == LEASE_KEEP,
			.single = record->tasks == 1 && record->split_gpus == 0,
			.tasks = record->tasks,
			.min_available = record->min_available,
		};
		chaos->last_job_id = max64(chaos->last_job_id, id);
		chaos->result->jobs++;
	}
}

void client_told(struct chaos *chaos, struct chaos_wish *wish, const struct effects *effects)
{
	int64_t first = effects->reply_id, count = chaos_client_count_of(wish);

	for (int64_t id = first; id < first + count; id++) {
		const struct job_record *record = world_find(&chaos->store, RECORD_JOB, id, 0);
		struct chaos_job *job = client_job(chaos, id);
		if (!job || !record || strcmp(record->idempotency_key, wish->key) != 0) {
			chaos_broken(chaos, "kept", "job-%lld is not what was submitted as %s",
			             (long long)id, wish->key);
			break;
		}
		job->acknowledged = true;
	}
	drop_wish(chaos, wish);
}

static int64_t unfinished(const struct chaos *chaos)
{
	int64_t count = 0;

	for (int64_t id = max64(1, chaos->last_job_id - 200); id <= chaos->last_job_id; id++) {
		const struct job_state_record *state =
		    world_find(&chaos->store, RECORD_JOB_STATE, id, 0);
		count += state && state->state < JOB_COMPLETED;
	}
	return count;
}

static void change_mind(struct chaos *chaos)
{
	static const enum command_kind kinds[] = { COMMAND_CANCEL,  COMMAND_CANCEL,
		                                   COMMAND_REQUEUE, COMMAND_HOLD,
		                                   COMMAND_UNHOLD,  COMMAND_REPRIORITISE };
	uint64_t *dice = &chaos->dice[CHAOS_IMPATIENCE];
	struct command command = { .kind = ONE_OF(dice, kinds) };

	int64_t id = between(dice, max64(1, chaos->last_job_id - 20), chaos->last_job_id + 1);
	if (!client_job(chaos, id))
		return;
	command.id = id;
	if (command.kind == COMMAND_REPRIORITISE) {
		command.reprioritise.id = id;
		command.reprioritise.priority = 100 * between(dice, 1, 9);
	}
	if (command.kind == COMMAND_CANCEL)
		chaos->jobs[id].cancelled = true;
	server_decide(chaos, 0, &command);
}

/* Somebody suspends what runs, and resumes what others suspended. */
static void suspend_jobs(struct chaos *chaos)
{
	uint64_t *random = &chaos->random;

	for (int64_t id = max64(1, chaos->last_job_id - 40); id <= chaos->last_job_id; id++) {
		const struct job_state_record *state =
		    world_find(&chaos->store, RECORD_JOB_STATE, id, 0);
		struct command command = { .kind = COMMAND_SUSPEND, .id = id };
		if (!state || !(state->state == JOB_RUNNING || state->parked) ||
		    !chance(random, state->parked ? 15 : 12))
			continue;
		if (state->parked)
			command.kind = COMMAND_RESUME;
		server_decide(chaos, 0, &command);
	}
}

static void resume_nodes(struct chaos *chaos)
{
	struct rank_cursor cursor =
	    ranktree_seek(&chaos->store.kept[RECORD_NODE], INT64_MIN, INT64_MIN);
	const struct rank_entry *entry;

	while ((entry = rank_cursor_next(&cursor))) {
		const struct node_record *node = entry->value;
		struct command command = { .kind = COMMAND_NODE_DRAIN };
		command.drain.name = node->name;
		if (node->draining && strcmp(node->name, LIAR) != 0)
			server_decide(chaos, 0, &command);
	}
}

/* Nobody holds back what he held, or suspended, any more. */
static void release_all(struct chaos *chaos)
{
	resume_nodes(chaos);
	for (int64_t id = 1; id <= chaos->last_job_id; id++) {
		const struct job_state_record *state =
		    world_find(&chaos->store, RECORD_JOB_STATE, id, 0);
		struct command command = { .kind = COMMAND_UNHOLD, .id = id };
		if (state && state->held && state->state < JOB_COMPLETED)
			server_decide(chaos, 0, &command);
		command.kind = COMMAND_RESUME;
		if (state && state->parked)
			server_decide(chaos, 0, &command);
	}
}

void client_event(struct chaos *chaos)
{
	uint64_t *random = &chaos->random;

	if (chaos->faults && chaos->wish_count < 5 && unfinished(chaos) < WAITING_MOST) {
		array_reserve(chaos->wishes, chaos->wish_capacity, chaos->wish_count + 1);
		chaos->wishes[chaos->wish_count++] = draw_wish(chaos);
	}
	for (size_t i = chaos->wish_count; i-- > 0;)
		if (!chaos->wishes[i]->sent)
			send_wish(chaos, chaos->wishes[i]);
	if (chaos_fails(chaos, CHAOS_IMPATIENCE, 100))
		change_mind(chaos);
	if (chaos->faults) {
		request_send(chaos);
		suspend_jobs(chaos);
	} else {
		release_all(chaos);
	}
	chaos_later(chaos, between(random, 10, 3000),
	            (struct chaos_event){ .kind = HAPPEN_CLIENT });
}

void client_free(struct chaos *chaos)
{
	for (size_t i = 0; i < chaos->wish_count; i++)
		free(chaos->wishes[i]);
	free(chaos->wishes);
	free(chaos->jobs);
	free(chaos->requests);
}
