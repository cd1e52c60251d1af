/* archive.h - finished jobs that have left the core: found, listed and counted */
#ifndef STORE_ARCHIVE_H
#define STORE_ARCHIVE_H

#include "store/store.h"

/* All read through a store that does not lead, one for each thread that reads;
 * it is connected when it is needed, and again after it failed. */

struct archived_job {
	struct job_record job;
	struct job_state_record state;
};

/* Which ones. The newest come first; a page goes on below the last id of the
 * page before. */
struct archive_filter {
	int64_t tenant_id; /* 0: of all */
	int state;         /* enum job_state; -1: all */
	int64_t before_id; /* 0: from the newest on */
	int64_t limit;     /* how many at the most; 0: 100 */
};

/* The job, in the arena, with its tasks where `tasks` is not NULL; ERROR_NOT_FOUND. */
bool archive_find(struct store *store, int64_t id, struct arena *arena, struct archived_job *job,
                  struct task_record **tasks, int64_t *task_count, struct error *error);
/* An array in the arena, and how many there are in it. */
bool archive_list(struct store *store, const struct archive_filter *filter, struct arena *arena,
                  struct archived_job **jobs, int64_t *count, struct error *error);
/* How many in each state; `before_id` and `limit` of the filter do not count. */
bool archive_count(struct store *store, const struct archive_filter *filter,
                   int64_t counts[JOB_CANCELLED + 1], struct error *error);

#endif
