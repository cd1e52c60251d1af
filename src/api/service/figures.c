/* figures.c - the cluster in numbers */
#include "api/service/figures.h"

#include "api/read/gpu_books.h"
#include "api/service/service_state.h"

struct totals {
	int64_t nodes, online_nodes, draining_nodes, gpus, available_gpus, usable_gpus;
	int64_t capacity_mib, reserved_mib, releasing_mib, foreign_mib;
	int64_t utilisation, samples;
};

static void figures_add_node(const struct service *service, const struct catalogue *catalogue,
                             const struct node_record *node, struct totals *totals)
{
	const struct gpu_record *const *gpus;
	size_t count = catalogue_node_gpus(catalogue, node->id, &gpus);
	struct agents_sample sample;

	totals->nodes++;
	totals->online_nodes += node->state == NODE_ONLINE;
	totals->draining_nodes += node->draining;
	for (size_t i = 0; i < count; i++) {
		if (gpus[i]->mig_mode || !gpus[i]->present)
			continue;
		struct gpu_books books = gpu_books(catalogue, gpus[i]);
		totals->gpus++;
		totals->usable_gpus += books.usable;
		totals->available_gpus += gpu_is_available(node, &books);
		totals->capacity_mib += books.capacity;
		totals->reserved_mib += books.reserved;
		totals->releasing_mib += books.releasing;
		totals->foreign_mib += books.foreign;
		if (agents_sample(service->agents, gpus[i]->uuid, &sample)) {
			totals->utilisation += sample.utilisation;
			totals->samples++;
		}
	}
}

/* Whose jobs count. */
struct view {
	const struct service *service;
	const struct identity *identity;
	int64_t tenant_id;
};

static int64_t figures_count_jobs(const struct view *view, int state)
{
	const struct roster *roster = &view->service->roster;
	const struct catalogue *catalogue = service_catalogue(view->service);
	struct catalogue_filter filter = { .state = state };
	int64_t archived, count = 0;
	if (roster_sees_all(view->identity) && view->tenant_id == 0) {
		count = catalogue_count(catalogue, &filter, &archived);
		return count + archived;
	}
	for (size_t i = 0; i < roster->by_id.capacity; i++) {
		const struct roster_tenant *tenant = roster->by_id.entries[i].value;
		if (!tenant || !roster_may_see(roster, view->identity, tenant->id) ||
		    (view->tenant_id != 0 &&
		     !roster_is_within(roster, tenant->id, view->tenant_id)))
			continue;
		filter.tenant_id = tenant->id;
		count += catalogue_count(catalogue, &filter, &archived);
		count += archived;
	}
	return count;
}

static void put_jobs(struct json_writer *json, const struct view *view)
{
	json_put_integer(json, "total_jobs", figures_count_jobs(view, -1));
	json_put_integer(json, "running_jobs", figures_count_jobs(view, JOB_RUNNING));
	json_put_integer(json, "pending_jobs", figures_count_jobs(view, JOB_PENDING));
	json_put_integer(json, "scheduled_jobs", figures_count_jobs(view, JOB_SCHEDULED));
	json_put_integer(json, "preempted_jobs", figures_count_jobs(view, JOB_PREEMPTED));
	json_put_integer(json, "completed_jobs", figures_count_jobs(view, JOB_COMPLETED));
	json_put_integer(json, "failed_jobs", figures_count_jobs(view, JOB_FAILED));
	json_put_integer(json, "cancelled_jobs", figures_count_jobs(view, JOB_CANCELLED));
}

static void put_memory(struct json_writer *json, const struct totals *totals)
{
	json_put_integer(json, "total_gpu_memory_mb", totals->capacity_mib);
	json_put_integer(json, "reserved_gpu_memory_mb", totals->reserved_mib);
	json_put_integer(json, "releasing_gpu_memory_mb", totals->releasing_mib);
	json_put_integer(json, "foreign_gpu_memory_mb", totals->foreign_mib);
	if (totals->samples > 0)
		json_put_decimal(json, "avg_gpu_utilization", totals->utilisation / totals->samples,
		                 3);
	else
		json_put_null(json, "avg_gpu_utilization");
}

void figures_write(struct json_writer *json, const struct service *service,
                   const struct identity *identity, int64_t tenant_id)
{
	struct catalogue *catalogue = service_catalogue(service);
	struct catalogue_cursor cursor = { .kind = RECORD_NODE };
	const struct node_record *node;
	struct totals totals = { 0 };

	catalogue_lock(catalogue);
	for (int64_t done = 0; (node = catalogue_next(catalogue, &cursor)) != NULL; done++) {
		figures_add_node(service, catalogue, node, &totals);
		service_breathe(service, done);
	}
	json_put_integer(json, "total_nodes", totals.nodes);
	json_put_integer(json, "online_nodes", totals.online_nodes);
	json_put_integer(json, "draining_nodes", totals.draining_nodes);
	json_put_integer(json, "total_gpus", totals.gpus);
	json_put_integer(json, "usable_gpus", totals.usable_gpus);
	json_put_integer(json, "available_gpus", totals.available_gpus);
	put_jobs(json, &(struct view){ service, identity, tenant_id });
	catalogue_unlock(catalogue);
	put_memory(json, &totals);
}
