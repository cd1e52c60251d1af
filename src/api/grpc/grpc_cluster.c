/* grpc_cluster.c - GetClusterStatus, GetMetrics and UpdateTenantQuota */
#include <stdio.h>
#include <stdlib.h>

#include "api/grpc/grpc_local.h"
#include "api/tenant/tenant_calls.h"
#include "api/text/resource_message.h"
#include "base/map.h"
#include "scheduler.pb-c.h"

/* A sum over the cluster, made under the catalogue's lock. */
struct census {
	int64_t gpus, free_gpus, nodes, online_nodes;
	int64_t measured, busy; /* GPUs with a sample, and thousandths in use of them */
	int64_t jobs[JOB_STATES];
};

static bool is_in_use(const struct gpu_record *gpu,
                      const struct reservation_record *const *reservations, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (int64_t k = 0; k < reservations[i]->parts.count; k++)
			if (reservations[i]->parts.at[k * PART_WIDTH + PART_GPU] == gpu->id)
				return true;
	return false;
}

/* Counts one node; `status` may be NULL. */
static void count_node(const struct request *request, const struct node_record *node,
                       struct census *census, Scheduler__NodeStatus *status)
{
	const struct service *service = request->service;
	const struct catalogue *catalogue = service_catalogue(service);
	const struct gpu_record *const *gpus;
	const struct reservation_record *const *reservations;
	size_t gpu_count = catalogue_node_gpus(catalogue, node->id, &gpus);
	size_t count = catalogue_node_reservations(catalogue, node->id, &reservations);
	bool online = node->state == NODE_ONLINE;
	int32_t present = 0, unused = 0;

	for (size_t i = 0; i < gpu_count; i++) {
		struct agents_sample sample;
		if (!gpus[i]->present)
			continue;
		present++;
		unused += online && !node->draining && gpus[i]->healthy &&
		          !is_in_use(gpus[i], reservations, count);
		if (service->agents && agents_sample(service->agents, gpus[i]->uuid, &sample)) {
			census->measured++;
			census->busy += sample.utilisation;
		}
	}
	census->gpus += present;
	census->free_gpus += unused;
	census->nodes++;
	census->online_nodes += online;
	if (!status)
		return;
	int64_t cpu_milli = 0, host_bytes = 0;
	for (size_t i = 0; i < count; i++) {
		cpu_milli += reservations[i]->cpu_milli;
		host_bytes += reservations[i]->host_bytes;
	}
	status->total_gpus = present;
	status->available_gpus = unused;
	status->online = online;
	if (node->cpu_milli > 0)
		status->cpu_utilization = (double)cpu_milli * 100 / (double)node->cpu_milli;
	if (node->host_bytes > 0)
		status->memory_utilization = (double)host_bytes * 100 / (double)node->host_bytes;
}

static size_t count_nodes(const struct catalogue *catalogue)
{
	struct catalogue_cursor cursor = { .kind = RECORD_NODE };
	size_t count = 0;

	while (catalogue_next(catalogue, &cursor))
		count++;
	return count;
}

/* `nodes` may be NULL; else it gets one for each. */
static void take_census(struct request *request, struct census *census,
                        Scheduler__NodeStatus ***nodes)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct catalogue_cursor cursor = { .kind = RECORD_NODE };
	struct arena *arena = &request->engine.arena;
	const struct node_record *node;
	size_t at = 0;

	*census = (struct census){ 0 };
	catalogue_lock(catalogue);
	if (nodes)
		*nodes = arena_alloc(arena, (count_nodes(catalogue) + 1) * sizeof(**nodes));
	while ((node = catalogue_next(catalogue, &cursor))) {
		Scheduler__NodeStatus *status = NULL;
		if (nodes) {
			status = arena_alloc(arena, sizeof(*status));
			scheduler__node_status__init(status);
			status->node_id = status->name = arena_string(arena, node->name);
			(*nodes)[at++] = status;
		}
		count_node(request, node, census, status);
	}
	for (int state = 0; state < JOB_STATES; state++) {
		int64_t archived = 0;
		struct catalogue_filter filter = { .tenant_id = request->identity.tenant_id,
			                           .state = state };
		census->jobs[state] = catalogue_count(catalogue, &filter, &archived) + archived;
	}
	catalogue_unlock(catalogue);
}

static int32_t grpc_cluster_number(int64_t value)
{
	return (int32_t)min64(value, INT32_MAX);
}

static double utilization(const struct census *census)
{
	return census->measured > 0 ? (double)census->busy / (double)census->measured / 10 : 0;
}

static int64_t all_jobs(const struct census *census)
{
	int64_t sum = 0;

	for (int state = 0; state < JOB_STATES; state++)
		sum += census->jobs[state];
	return sum;
}

void grpc_cluster_status(struct request *request)
{
	Scheduler__GetClusterStatusResponse response = SCHEDULER__GET_CLUSTER_STATUS_RESPONSE__INIT;
	struct census census;

	take_census(request, &census, &response.nodes);
	response.total_gpus = grpc_cluster_number(census.gpus);
	response.available_gpus = grpc_cluster_number(census.free_gpus);
	response.total_nodes = grpc_cluster_number(census.nodes);
	response.online_nodes = grpc_cluster_number(census.online_nodes);
	response.total_jobs = grpc_cluster_number(all_jobs(&census));
	response.pending_jobs = grpc_cluster_number(census.jobs[JOB_PENDING]);
	response.running_jobs = grpc_cluster_number(census.jobs[JOB_RUNNING]);
	response.avg_gpu_utilization = utilization(&census);
	response.n_nodes = (size_t)census.nodes;
	grpc_answer(request, &response);
}

void grpc_metrics(struct request *request)
{
	const Scheduler__GetMetricsRequest *message = request->message;
	struct census census;

	take_census(request, &census, NULL);
	const struct {
		const char *type, *name;
		double value;
	} all[] = {
		{ "jobs", "jobs_total", (double)all_jobs(&census) },
		{ "jobs", "jobs_pending", (double)census.jobs[JOB_PENDING] },
		{ "jobs", "jobs_scheduled", (double)census.jobs[JOB_SCHEDULED] },
		{ "jobs", "jobs_running", (double)census.jobs[JOB_RUNNING] },
		{ "jobs", "jobs_preempted", (double)census.jobs[JOB_PREEMPTED] },
		{ "jobs", "jobs_completed", (double)census.jobs[JOB_COMPLETED] },
		{ "jobs", "jobs_failed", (double)census.jobs[JOB_FAILED] },
		{ "jobs", "jobs_cancelled", (double)census.jobs[JOB_CANCELLED] },
		{ "jobs", "queue_size", (double)census.jobs[JOB_PENDING] },
		{ "gpu", "gpus_total", (double)census.gpus },
		{ "gpu", "gpus_available", (double)census.free_gpus },
		{ "gpu", "gpu_utilization", utilization(&census) },
		{ "node", "nodes_total", (double)census.nodes },
		{ "node", "nodes_online", (double)census.online_nodes },
	};
	enum { COUNT = sizeof(all) / sizeof(*all) };
	Scheduler__GetMetricsResponse response = SCHEDULER__GET_METRICS_RESPONSE__INIT;
	Scheduler__GetMetricsResponse__MetricsEntry entries[COUNT], *pointers[COUNT];
	Google__Protobuf__Timestamp now = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
	const char *type = message->metric_type;
	bool every = !type[0] || strcmp(type, "all") == 0 || strcmp(type, "cluster") == 0;

	for (size_t i = 0; i < COUNT; i++) {
		if (!every && strncmp(type, all[i].type, strlen(all[i].type)) != 0)
			continue;
		scheduler__get_metrics_response__metrics_entry__init(&entries[i]);
		entries[i].key = (char *)all[i].name;
		entries[i].value = all[i].value;
		pointers[response.n_metrics++] = &entries[i];
	}
	if (response.n_metrics == 0) {
		request_reject(request, ERROR_INVALID,
		               "metric_type is one of jobs, gpu, node and all, not %.60s", type);
		return;
	}
	int64_t now_ms = clock_unix_ms();
	now.seconds = now_ms / 1000;
	now.nanos = (int32_t)(now_ms % 1000 * 1000000);
	response.metrics = pointers;
	response.timestamp = &now;
	grpc_answer(request, &response);
}

static void answer_updated(struct request *request)
{
	struct error error = { 0 };
	struct text json = { request->body.data, request->body.size };
	struct json_scan scan = json_scan_of(json, &request->engine.arena, &error);
	Scheduler__UpdateTenantQuotaResponse response =
	    SCHEDULER__UPDATE_TENANT_QUOTA_RESPONSE__INIT;
	static char message[] = "Tenant quota updated successfully";

	response.success = true;
	response.message = message;
	response.tenant = (Scheduler__Tenant *)resource_message_write(
	    &tenant_resource, &scheduler__tenant__descriptor, &scan, &request->engine.arena);
	grpc_answer(request, &response);
}

void grpc_update_quota(struct request *request)
{
	static const char collection[] = "/api/v1/tenants/";
	const Scheduler__UpdateTenantQuotaRequest *message = request->message;
	struct buffer *scratch = &request->service->services->scratch;
	struct json_writer json = json_writer_to(scratch);
	struct error error = { 0 };
	struct tenant_change change = { .name = text_of(message->tenant_id),
		                        .shown = answer_updated };
	size_t size = sizeof(collection) + change.name.size;
	char *object = arena_alloc(&request->engine.arena, size);

	if (!grpc_tenant(request, message->tenant_id, &change.id))
		return;
	if (change.id == 0) {
		request_reject(request, ERROR_INVALID, "tenant_id is missing");
		return;
	}
	buffer_clear(scratch);
	if (!resource_message_read(&tenant_resource, &message->base, &json, &error)) {
		request_fail(request, &error);
		return;
	}
	snprintf(object, size, "%s%s", collection, message->tenant_id);
	change.object = object;
	change.json = (struct text){ scratch->data, scratch->size };
	tenant_calls_change(request, &change);
}
