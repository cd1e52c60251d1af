/* read.c - questions about jobs by their ids, which change nothing */
#include "core/sched.h"
#include "core/state.h"
#include "core/why/why.h"

static struct job *read_find(const struct sched *sched, int64_t id, struct error *error)
{
	struct job *job = map_get(&sched->jobs, id);

	if (!job)
		error_set(error, ERROR_NOT_FOUND, "job-%lld is not known", (long long)id);
	return job;
}

bool sched_has_waiting(const struct sched *sched)
{
	return sched->queued > 0 || sched->routes.waiting > 0;
}

bool sched_why(struct sched *sched, int64_t job_id, int64_t viewer, struct buffer *buffer,
               struct error *error)
{
	struct job *job = read_find(sched, job_id, error);

	if (!job)
		return false;
	why_print(sched, job, viewer, buffer);
	return true;
}

bool sched_trace(struct sched *sched, int64_t job_id, struct buffer *buffer, struct error *error)
{
	struct job *job = read_find(sched, job_id, error);

	if (!job)
		return false;
	why_trace(sched, job, buffer);
	return true;
}

bool sched_explain(struct sched *sched, const struct decision_record *decision, int64_t viewer,
                   struct buffer *buffer)
{
	if (viewer != 0 && viewer != decision->tenant_id)
		return false;
	why_print_decision(sched, decision, viewer, buffer);
	return true;
}

bool sched_position(struct sched *sched, int64_t job_id, int64_t *position,
                    int64_t *tenant_position, struct error *error)
{
	struct job *job = read_find(sched, job_id, error);

	if (!job)
		return false;
	if (!job->class)
		return error_set(error, ERROR_CONFLICT, "job-%lld is not in the queue",
		                 (long long)job_id);
	why_position(sched, job, position, tenant_position);
	return true;
}

bool sched_wait(struct sched *sched, int64_t job_id, struct wait_figures *wait, struct error *error)
{
	if (!sched_position(sched, job_id, &wait->position, &wait->tenant_position, error))
		return false;
	const struct job *job = map_get(&sched->jobs, job_id);
	wait->expected_start_ms = job->promise ? job->promise->r.start_ms : 0;
	return true;
}

bool sched_tenant_figures(const struct sched *sched, int64_t tenant_id,
                          struct tenant_figures *figures)
{
	const struct tenant *tenant = tenants_find(&sched->tenants, tenant_id);

	if (!tenant)
		return false;
	*figures = (struct tenant_figures){
		.allocated = tenant->allocated,
		.waiting_jobs = tenant->waiting_jobs,
		.gpu_ms = tenant_gpu_ms(tenant, sched_now(sched)),
		.cost = tenant_cost(tenant, sched_now(sched)),
		.month_cost = tenant_month_cost(tenant, sched_now(sched)),
	};
	for (int k = 0; k < FAIR_KINDS; k++)
		figures->fair[k] = tenant->fair[k];
	return true;
}

bool sched_why_node(struct sched *sched, int64_t job_id, const char *node, node_refusal_say *say,
                    void *context, struct error *error)
{
	struct job *job = read_find(sched, job_id, error);
	const struct node *found = cluster_node(&sched->cluster, node);

	if (!job)
		return false;
	if (!found)
		return error_set(error, ERROR_NOT_FOUND, "node %s is not known", node);
	return why_node(sched, job, found, say, context) ||
	       error_set(error, ERROR_CONFLICT, "job-%lld is not in the queue", (long long)job_id);
}
