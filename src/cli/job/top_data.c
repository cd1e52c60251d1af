/* top_data.c - what gpu-cli top shows: every GPU with who holds what on it, and the jobs */
#include "cli/job/top_data.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/job/job_columns.h"
#include "cli/text/order.h"
#include "cli/text/quantity.h"
#include "json/member.h"

enum { JOBS_MAX = 20000, QUEUE_MAX = 1000 };

static const char *top_data_keep(struct top_data *data, const char *text)
{
	return arena_string(&data->arena, text);
}

static int hundredths(const json_t *object, const char *key)
{
	return member_has(object, key) ? (int)(member_number(object, key) * 100 + 0.5) : -1;
}

static void top_data_add_gpu(struct top_data *data, const json_t *item, const json_t *nodes)
{
	const json_t *node = json_object_get(nodes, member_text(item, "node"));
	if (member_flag(item, "mig_mode") ||
	    (member_has(item, "present") && !member_flag(item, "present")))
		return;
	array_reserve(data->gpus, data->gpu_capacity, data->gpu_count + 1);
	data->gpus[data->gpu_count++] = (struct top_gpu){
		.node = top_data_keep(data, member_text(item, "node")),
		.uuid = top_data_keep(data, member_text(item, "uuid")),
		.model = top_data_keep(data, member_text(item, "model")),
		.index = member_integer(item, "index"),
		.total_mib = member_integer(item, "total_memory"),
		.used_mib = member_integer(item, "used_memory"),
		.free_mib = member_integer(item, "free_memory"),
		.foreign_mib = member_integer(item, "foreign_memory"),
		.unexplained_mib = member_integer(item, "unexplained_memory"),
		.overhead_mib = member_integer(item, "overhead_memory"),
		.reserved_mib = member_integer(item, "reserved_memory"),
		.releasing_mib = member_integer(item, "releasing_memory"),
		.busy = hundredths(item, "utilization"),
		.heat_c = member_has(item, "temperature_c")
		              ? (int)member_integer(item, "temperature_c")
		              : -1,
		.hot = member_flag(item, "hot"),
		.over = member_flag(item, "over"),
		.unhealthy = member_has(item, "healthy") && !member_flag(item, "healthy"),
		.draining = member_flag(node, "draining"),
		.online = !node || member_flag(node, "online"),
	};
}

static enum top_phase phase_of(const char *word)
{
	return strcmp(word, "releasing") == 0 || strcmp(word, "stopping") == 0 ? TOP_RELEASING
	       : strcmp(word, "live") == 0 || strcmp(word, "ready") == 0       ? TOP_LIVE
	                                                                       : TOP_HELD;
}

static void add_part(struct top_data *data, const struct top_part *part)
{
	array_reserve(data->parts, data->part_capacity, data->part_count + 1);
	data->parts[data->part_count++] = *part;
}

/* The GPU of a UUID, by its place; SIZE_MAX: it is not known. */
static size_t top_data_place_of(const json_t *places, const char *uuid)
{
	const json_t *place = json_object_get(places, uuid);
	return place ? (size_t)json_integer_value(place) : SIZE_MAX;
}

static void add_gpus_of(struct top_data *data, const json_t *gpus, const json_t *places,
                        const struct top_part *like)
{
	size_t number;
	json_t *gpu;
	json_array_foreach(gpus, number, gpu)
	{
		struct top_part part = *like;
		part.gpu = top_data_place_of(places, member_text(gpu, "uuid"));
		part.mib = member_integer(gpu, "memory_mb");
		if (part.gpu != SIZE_MAX)
			add_part(data, &part);
	}
}

static void top_data_add_job(struct top_data *data, struct session *session, const json_t *job)
{
	struct buffer gpus = { 0 };
	job_print_gpus(&gpus, job);
	array_reserve(data->jobs, data->job_capacity, data->job_count + 1);
	data->jobs[data->job_count++] = (struct top_job){
		.id = top_data_keep(data, member_text(job, "id")),
		.name = top_data_keep(data, member_text(job, "name")),
		.tenant = top_data_keep(
		    data, session_tenant_name(session, member_text(job, "tenant_id"))),
		.state = top_data_keep(data, job_state(job)),
		.node = top_data_keep(data, member_text(job, "node_name")),
		.gpus = top_data_keep(data, gpus.data),
		.priority = member_integer(job, "priority"),
		.position = member_integer(job, "queue_position"),
		.submitted_ms = member_moment(job, "submitted_at"),
		.started_ms = member_moment(job, "started_at"),
		.start_ms = member_moment(job, "estimated_start"),
		.allocated = (int64_t)json_array_size(json_object_get(job, "allocated_gpus")),
	};
	buffer_free(&gpus);
}

static void add_parts_of_job(struct top_data *data, const json_t *job, const json_t *places)
{
	size_t number;
	json_t *task;
	json_array_foreach(json_object_get(job, "allocations"), number, task)
	{
		const char *phase = member_text(task, "phase");
		if (!*phase || strcmp(phase, "claim") == 0)
			continue;
		add_gpus_of(
		    data, json_object_get(task, "gpus"), places,
		    &(struct top_part){ .owner = top_data_keep(data, member_text(job, "id")),
		                        .label = top_data_keep(data, member_text(job, "name")),
		                        .phase = phase_of(phase) });
	}
}

static int by_gpu(const void *a, const void *b)
{
	const struct top_part *one = a, *other = b;
	if (one->gpu != other->gpu)
		return one->gpu < other->gpu ? -1 : 1;
	if (one->phase != other->phase)
		return one->phase < other->phase ? -1 : 1;
	return strcmp(one->owner, other->owner);
}

/* The rest of the ledger beyond the known owners: other tenants, and external use. */
static void add_rest(struct top_data *data, size_t place, int64_t reserved, int64_t releasing)
{
	const struct top_gpu *gpu = &data->gpus[place];
	const struct top_part rest[] = {
		{ place, "", "others", gpu->reserved_mib - reserved, TOP_LIVE },
		{ place, "", "", gpu->releasing_mib - releasing, TOP_RELEASING },
		{ place, "", "", gpu->foreign_mib - gpu->unexplained_mib, TOP_FOREIGN },
		{ place, "", "", gpu->unexplained_mib, TOP_UNEXPLAINED },
		{ place, "", "", gpu->overhead_mib, TOP_OVERHEAD },
	};
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++)
		if (rest[i].mib > 0)
			add_part(data, &rest[i]);
}

/* Parts in the order of GPUs, so that each GPU's follow each other. */
static void gather_parts(struct top_data *data)
{
	size_t known = data->part_count, at = 0;
	if (known > 0)
		qsort(data->parts, known, sizeof(*data->parts), by_gpu);
	struct top_part *sorted = data->parts;
	size_t sorted_count = data->part_count;
	data->parts = NULL;
	data->part_count = data->part_capacity = 0;
	for (size_t place = 0; place < data->gpu_count; place++) {
		data->gpus[place].first_part = data->part_count;
		int64_t reserved = 0, releasing = 0;
		for (; at < sorted_count && sorted[at].gpu == place; at++) {
			if (sorted[at].phase == TOP_RELEASING)
				releasing += sorted[at].mib;
			else
				reserved += sorted[at].mib;
			add_part(data, &sorted[at]);
		}
		add_rest(data, place, reserved, releasing);
		data->gpus[place].part_count = data->part_count - data->gpus[place].first_part;
	}
	free(sorted);
}

static void read_status(struct top_data *data, const json_t *status)
{
	data->nodes = member_integer(status, "total_nodes");
	data->online_nodes = member_integer(status, "online_nodes");
	data->total_gpus = member_integer(status, "total_gpus");
	data->free_gpus = member_integer(status, "available_gpus");
	data->waiting = member_integer(status, "pending_jobs");
	data->running = member_integer(status, "running_jobs");
	data->total_mib = member_integer(status, "total_gpu_memory_mb");
	data->reserved_mib = member_integer(status, "reserved_gpu_memory_mb");
	data->releasing_mib = member_integer(status, "releasing_gpu_memory_mb");
	data->foreign_mib = member_integer(status, "foreign_gpu_memory_mb");
	data->busy = hundredths(status, "avg_gpu_utilization");
}

void top_data_read(struct top_data *data, struct session *session, const json_t *documents)
{
	json_t *nodes = json_object(), *places = json_object(), *item;
	size_t place;
	read_status(data, json_object_get(documents, "status"));
	json_array_foreach(json_object_get(documents, "nodes"), place, item)
	    json_object_set(nodes, member_text(item, "id"), item);
	json_array_foreach(json_object_get(documents, "gpus"), place, item)
	    top_data_add_gpu(data, item, nodes);
	for (size_t i = 0; i < data->gpu_count; i++)
		json_object_set_new(places, data->gpus[i].uuid, json_integer((json_int_t)i));
	json_array_foreach(json_object_get(documents, "queue"), place, item)
	    top_data_add_job(data, session, item);
	json_array_foreach(json_object_get(documents, "jobs"), place, item)
	{
		top_data_add_job(data, session, item);
		add_parts_of_job(data, item, places);
	}
	json_array_foreach(json_object_get(documents, "slots"), place, item)
	{
		const char *status = member_text(item, "status");
		if (strcmp(status, "waiting") != 0)
			add_gpus_of(data, json_object_get(item, "gpu_allocation"), places,
			            &(struct top_part){
					.owner = top_data_keep(data, member_text(item, "id")),
					.label = top_data_keep(data, member_text(item, "model")),
					.phase = phase_of(status) });
	}
	gather_parts(data);
	json_decref(nodes);
	json_decref(places);
}

/* Jobs that hold something: by state, as the service lists them. */
static json_t *holding_jobs(struct session *session, struct error *error)
{
	static const char *const queries[] = { "state=running", "state=scheduled",
		                               "state=preempted" };
	json_t *all = json_array();
	struct buffer query = { 0 };
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
		buffer_clear(&query);
		buffer_text(&query, queries[i]);
		if (session->only) {
			buffer_text(&query, "&tenant_id=");
			client_escape(&query, session->only);
		}
		json_t *some =
		    session_list(session, "/api/v1/jobs", query.data, "jobs", JOBS_MAX, error);
		if (!some) {
			json_decref(all);
			all = NULL;
			break;
		}
		json_array_extend(all, some);
		json_decref(some);
	}
	buffer_free(&query);
	return all;
}

static json_t *waiting_jobs(struct session *session, struct error *error)
{
	struct buffer query = { 0 };
	buffer_text(&query, "");
	if (session->only) {
		buffer_text(&query, "tenant_id=");
		client_escape(&query, session->only);
	}
	json_t *jobs =
	    session_list(session, "/api/v1/scheduler/queue", query.data, NULL, QUEUE_MAX, error);
	buffer_free(&query);
	return jobs;
}

bool top_data_load(struct top_data *data, struct session *session, struct error *error)
{
	json_t *documents = json_object();
	/* json_object_set_new takes no NULL: what is missing ends it. */
	bool good =
	    json_object_set_new(documents, "status",
	                        session_get(session, "/api/v1/cluster/status", error)) == 0 &&
	    json_object_set_new(
		documents, "nodes",
		session_list(session, "/api/v1/nodes", "", "nodes", JOBS_MAX, error)) == 0 &&
	    json_object_set_new(documents, "gpus",
	                        session_list(session, "/api/v1/gpus", "", "gpus", 200000, error)) ==
		0 &&
	    json_object_set_new(documents, "jobs", holding_jobs(session, error)) == 0 &&
	    json_object_set_new(documents, "queue", waiting_jobs(session, error)) == 0 &&
	    json_object_set_new(documents, "slots",
	                        session_get(session, "/api/v1/scheduler/slots", error)) == 0;
	if (good) {
		order_items(json_object_get(documents, "gpus"), order_by_node);
		order_items(json_object_get(documents, "queue"), order_by_position);
		top_data_free(data);
		top_data_read(data, session, documents);
	}
	json_decref(documents);
	return good;
}

void top_data_free(struct top_data *data)
{
	free(data->gpus);
	free(data->parts);
	free(data->jobs);
	arena_free(&data->arena);
	*data = (struct top_data){ 0 };
}
