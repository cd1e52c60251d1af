/* job_look_up.h - one job, wherever it is: in memory or archived */
#ifndef API_JOB_JOB_LOOK_UP_H
#define API_JOB_JOB_LOOK_UP_H

#include "api/job/job_view.h"
#include "api/request/request.h"
#include "store/archive.h"

/* A job that was asked for. */
struct job_look_up {
	int64_t id;
	struct text name;  /* of the job, as the request has it */
	int64_t tenant_id; /* whose it must be; 0: any tenant's that the caller may see */
	bool with_reason;  /* says why it waits */
	/* Continues with the request, whose state is the look-up. */
	void (*found)(struct request *request);

	/* What is known when it is found. */
	const char *why; /* why it waits, in one sentence; NULL: unknown, or it does not wait */
	struct wait_figures wait;
	struct archived_job archived;
	struct task_record *tasks;
	int64_t task_count;
	struct job_past past;
	bool has_past;
};

/* Finds the job and writes it to the request's body, as JSON. If there is none that the caller may
 * see, the request is answered. The look-up is copied. */
void job_look_up(struct request *request, const struct job_look_up *look_up);
/* Finds a job in the archive alone, and writes nothing. */
void job_look_up_archived(struct request *request, const struct job_look_up *look_up);

/* True if who asks may change the job of its tenant: see auth.job_changes. Otherwise the request is
 * answered. */
bool job_is_changeable(struct request *request, int64_t id);
/* Whether the job is in memory, and whose it is: 0 if the caller may not see it. */
bool job_in_memory(struct request *request, int64_t id, int64_t *tenant_id);

/* Why a job waits, in one sentence in the engine request's arena; NULL: it does not. */
const char *job_why_line(struct engine_request *engine, struct sched *sched, int64_t id);
/* The sentence without the job that it is about. */
const char *job_why_reason(const char *why);

#endif
