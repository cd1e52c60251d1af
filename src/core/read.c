/* read.c - questions about jobs by their ids, which change nothing */
#include "core/sched.h"
#include "core/state.h"
#include "core/why.h"

static struct job *find(const struct sched *sched, int64_t id, struct error *error)
{
	struct job *job = map_get(&sched->jobs, id);

	if (!job)
		error_set(error, ERROR_NOT_FOUND, "job-%lld is not known", (long long)id);
	return job;
}

bool sched_why(struct sched *sched, int64_t job_id, int64_t viewer, struct buffer *buffer,
               struct error *error)
{
	struct job *job = find(sched, job_id, error);

	if (!job)
		return false;
	why_print(sched, job, viewer, buffer);
	return true;
}

bool sched_trace(struct sched *sched, int64_t job_id, struct buffer *buffer, struct error *error)
{
	struct job *job = find(sched, job_id, error);

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
	struct job *job = find(sched, job_id, error);

	if (!job)
		return false;
	if (!job->class)
		return error_set(error, ERROR_CONFLICT, "job-%lld is not in the queue",
		                 (long long)job_id);
	why_position(sched, job, position, tenant_position);
	return true;
}
