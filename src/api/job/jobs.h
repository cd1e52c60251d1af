/* jobs.h - the requests about jobs */
#ifndef API_JOB_JOBS_H
#define API_JOB_JOBS_H

#include "api/job/job_json.h"
#include "api/request/call.h"

void jobs_submit(struct call *call);
void jobs_list(struct call *call);
void jobs_get(struct call *call);
void jobs_cancel(struct call *call);
void jobs_hold(struct call *call);
void jobs_release(struct call *call);
void jobs_requeue(struct call *call);
void jobs_priority(struct call *call);
void jobs_why(struct call *call);
void jobs_events(struct call *call);
void jobs_runs(struct call *call);
void jobs_logs(struct call *call);

/* Many at once: see bulk.c. */
bool jobs_is_bulk(const struct call *call);
void jobs_submit_bulk(struct call *call);

/* The header Idempotency-Key; data NULL: there is none. False with a reason where it cannot
 * be one. */
enum { JOB_KEY_BYTES_MAX = 256 };
bool jobs_read_key(struct call *call, struct text *key, struct error *error);
/* What reading jobs of this caller takes; what they point to goes into the arena. */
struct job_reading job_reading_of(struct call *call, struct arena *arena);
/* The job of the path, which is in memory and the caller's to see; or answers 404. */
bool jobs_find(struct call *call, int64_t *id);

#endif
