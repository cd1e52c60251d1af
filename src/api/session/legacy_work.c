/* legacy_work.c - orders for a node with an older agent, as assignments of jobs */
#include <stdio.h>
#include <stdlib.h>

#include "api/session/legacy_local.h"
#include "api/text/ids.h"
#include "api/text/protobuf.h"
#include "base/memory.h"
#include "json/json_reader.h"

static char **texts_of(const json_t *array, size_t *count, struct arena *arena)
{
	char **texts = arena_alloc(arena, (json_array_size(array) + 1) * sizeof(*texts));

	*count = json_array_size(array);
	for (size_t i = 0; i < *count; i++) {
		const char *value = json_string_value(json_array_get(array, i));
		texts[i] = arena_string(arena, value ? value : "");
	}
	return texts;
}

static void add_environment(Agent__JobAssignmentResponse *to, const json_t *object,
                            struct arena *arena)
{
	size_t count = to->n_environment + json_object_size(object);
	Agent__JobAssignmentResponse__EnvironmentEntry **entries =
	    arena_alloc(arena, (count + 1) * sizeof(*entries));
	const char *key;
	json_t *value;

	if (to->n_environment > 0)
		memcpy(entries, to->environment, to->n_environment * sizeof(*entries));
	json_object_foreach((json_t *)object, key, value)
	{
		Agent__JobAssignmentResponse__EnvironmentEntry *entry =
		    arena_alloc(arena, sizeof(*entry));
		agent__job_assignment_response__environment_entry__init(entry);
		entry->key = arena_string(arena, key);
		entry->value =
		    arena_string(arena, json_string_value(value) ? json_string_value(value) : "");
		entries[to->n_environment++] = entry;
	}
	to->environment = entries;
}

static char *member(const json_t *payload, const char *name, struct arena *arena)
{
	const char *value = json_string_value(json_object_get(payload, name));

	return arena_string(arena, value ? value : "");
}

/* What the older agent is told: the same as ours, in its words. */
static void write_assignment(struct legacy_work *work, const struct node_order *order)
{
	struct arena arena = { 0 };
	struct error error;
	json_t *payload = json_read(text_of(order->payload), NULL, &error);
	Agent__JobAssignmentResponse response = AGENT__JOB_ASSIGNMENT_RESPONSE__INIT;
	char job[32], allocation[32];
	char *gpus[PARTS_MAX];

	snprintf(job, sizeof(job), "job-%lld", (long long)order->job_id);
	snprintf(allocation, sizeof(allocation), "%lld", (long long)order->reservation_id);
	response.job_id = job;
	response.allocation_id = allocation;
	for (int64_t i = 0; i < order->part_count; i++)
		gpus[i] = arena_string(&arena, order->parts[i].uuid);
	response.gpu_ids = gpus;
	response.n_gpu_ids = (size_t)order->part_count;
	response.cpu_cores = (int32_t)min64((order->cpu_milli + 999) / 1000, INT32_MAX);
	response.memory_mb = order->host_bytes >> 20;
	response.image = member(payload, "image", &arena);
	response.script = member(payload, "script", &arena);
	response.command =
	    texts_of(json_object_get(payload, "command"), &response.n_command, &arena);
	response.args = texts_of(json_object_get(payload, "args"), &response.n_args, &arena);
	add_environment(&response, json_object_get(payload, "environment"), &arena);
	add_environment(&response, json_object_get(payload, "secret_environment"), &arena);
	struct text bytes = protobuf_write(&response, &arena);
	buffer_bytes(&work->assignment, bytes.data, bytes.size);
	json_decref(payload);
	arena_free(&arena);
}

static struct legacy_work *add_work(struct legacy *legacy, int64_t reservation_id, int64_t job_id,
                                    enum work_state state)
{
	struct legacy_work *work = NEW(struct legacy_work);

	work->reservation_id = reservation_id;
	work->job_id = job_id;
	work->state = state;
	array_reserve(legacy->works, legacy->work_capacity, legacy->work_count + 1);
	legacy->works[legacy->work_count++] = work;
	return work;
}

static struct legacy_work *find_reservation(const struct legacy *legacy, int64_t id)
{
	for (size_t i = 0; i < legacy->work_count; i++)
		if (legacy->works[i]->reservation_id == id)
			return legacy->works[i];
	return NULL;
}

static void refuse_load(struct legacy *legacy, const struct node_order *order)
{
	legacy_change(legacy,
	              (struct change){ .kind = CHANGE_REFUSED,
	                               .reservation_id = order->reservation_id,
	                               .slot = true,
	                               .message = "the agent of this node cannot load models" });
}

static void legacy_work_start(struct legacy *legacy, const struct node_order *order)
{
	if (find_reservation(legacy, order->reservation_id))
		return;
	struct legacy_work *work =
	    add_work(legacy, order->reservation_id, order->job_id, WORK_QUEUED);
	for (int64_t i = 0; i < order->part_count; i++)
		work->parts[work->part_count++] =
		    (struct legacy_part){ memory_text(order->parts[i].uuid),
			                  order->parts[i].memory_mib };
	write_assignment(work, order);
	legacy_hand_out(legacy);
}

/* What was handed out is stopped by the agent, which is told with its next heartbeat. */
static void legacy_work_stop(struct legacy *legacy, const struct node_order *order)
{
	struct legacy_work *work = find_reservation(legacy, order->reservation_id);

	if (!work)
		work = add_work(legacy, order->reservation_id, 0, WORK_QUEUED);
	work->stopping = true;
	if (work->state == WORK_QUEUED)
		legacy_ended(legacy, work, 0, "it had not been handed out");
}

void legacy_order(struct legacy *legacy, const struct node_order *order)
{
	if (order->kind == ORDER_START)
		legacy_work_start(legacy, order);
	else if (order->kind == ORDER_LOAD)
		refuse_load(legacy, order);
	else
		legacy_work_stop(legacy, order);
}

void legacy_hand_out(struct legacy *legacy)
{
	for (size_t i = 0; legacy->assignments && i < legacy->work_count; i++) {
		struct legacy_work *work = legacy->works[i];
		if (work->state != WORK_QUEUED)
			continue;
		if (!grpc_send(legacy->assignments->exchange,
		               (struct text){ work->assignment.data, work->assignment.size }))
			return;
		work->state = WORK_SENT;
		buffer_free(&work->assignment);
	}
}

void legacy_not_here(struct legacy *legacy, const char *job)
{
	struct catalogue *catalogue = legacy->node->agents->port->catalogue;
	struct catalogue_job found;
	char sentence[256];
	int64_t id = 0;
	bool elsewhere = false;

	if (!id_read(text_of(job), ID_JOB, &id))
		return;
	catalogue_lock(catalogue);
	if (catalogue_job(catalogue, id, &found))
		for (size_t i = 0; i < found.task_count; i++)
			elsewhere = elsewhere || found.tasks[i]->reservation_id > 0;
	catalogue_unlock(catalogue);
	if (!elsewhere)
		return;
	snprintf(sentence, sizeof(sentence),
	         "node %.90s reports on job-%lld, which it does not have", legacy->node->name,
	         (long long)id);
	agents_misreport(legacy->node, sentence);
}

void legacy_adopt(struct legacy *legacy)
{
	struct catalogue *catalogue = legacy->node->agents->port->catalogue;
	const struct reservation_record *const *reservations;

	catalogue_lock(catalogue);
	const struct node_record *node = catalogue_node_named(catalogue, legacy->node->name);
	size_t count = node ? catalogue_node_reservations(catalogue, node->id, &reservations) : 0;
	for (size_t i = 0; i < count; i++) {
		const struct reservation_record *from = reservations[i];
		if (from->job_id > 0 &&
		    (from->phase == PHASE_LIVE || from->phase == PHASE_RELEASING))
			add_work(legacy, from->id, from->job_id, WORK_RUNNING)->stopping =
			    from->phase == PHASE_RELEASING;
	}
	catalogue_unlock(catalogue);
}
