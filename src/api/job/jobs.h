/* jobs.h - the requests about jobs */
#ifndef API_JOB_JOBS_H
#define API_JOB_JOBS_H

#include "api/job/job_json.h"
#include "api/request/request.h"

void jobs_submit(struct request *request);
void jobs_list(struct request *request);
void jobs_get(struct request *request);
void jobs_cancel(struct request *request);
void jobs_hold(struct request *request);
void jobs_release(struct request *request);
void jobs_requeue(struct request *request);
void jobs_suspend(struct request *request);
void jobs_resume(struct request *request);
void jobs_priority(struct request *request);
void jobs_why(struct request *request);
void jobs_events(struct request *request);
void jobs_runs(struct request *request);
void jobs_logs(struct request *request);
void jobs_input(struct request *request);
/* Interactive sessions: a new one; a WebSocket to one; a WebSocket to a port of a task. */
void job_sessions_open(struct request *request);
void job_sessions_attach(struct request *request);
void job_sessions_forward(struct request *request);
/* Answers with the output of a model's server, the last one that there is or was. */
void job_logs_of_model(struct request *request, int64_t model_id);

/* Many at once: see bulk.c. */
bool jobs_is_bulk(const struct request *request);
void jobs_submit_bulk(struct request *request);

/* The header Idempotency-Key; data NULL: there is none. False with a reason where it cannot
 * be one. */
enum { JOB_KEY_BYTES_MAX = 256 };
bool jobs_read_key(struct request *request, struct text *key, struct error *error);
/* What reading jobs of this caller takes; what they point to goes into the arena. */
struct job_reading job_reading_of(struct request *request, struct arena *arena);
/* The job of the path, which is in memory and the caller's to see; or answers 404. */
bool jobs_find(struct request *request, int64_t *id);

#endif
