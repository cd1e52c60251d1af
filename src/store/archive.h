/* archive.h - what has left the core and is still stored: finished jobs, decisions, events */
#ifndef STORE_ARCHIVE_H
#define STORE_ARCHIVE_H

#include "store/store.h"

/* All read through a store that does not lead, one for each thread that reads;
 * it is connected when it is needed, and again after it failed. */

struct archived_job {
	struct job_record job;
	struct job_state_record state;
};

/* A filter. The newest jobs come first unless it says otherwise; a page continues after the
 * last id of the page before. */
struct archive_filter {
	int64_t tenant_id;         /* 0: of all, or */
	const int64_t *tenant_ids; /* of these, where there are any */
	size_t tenant_count;
	int state; /* enum job_state; -1: all */
	bool oldest_first;
	int64_t behind_id; /* 0: from the first on */
	int64_t limit;     /* how many at the most; 0: 100 */
};

/* The job, in the arena, with its tasks where `tasks` is not NULL; ERROR_NOT_FOUND. */
bool archive_find(struct store *store, int64_t id, struct arena *arena, struct archived_job *job,
                  struct task_record **tasks, int64_t *task_count, struct error *error);
/* An array in the arena, and how many there are in it. */
bool archive_list(struct store *store, const struct archive_filter *filter, struct arena *arena,
                  struct archived_job **jobs, int64_t *count, struct error *error);
/* Goes through at most `most` of them for those that `wants`, of which the first `limit` come
 * back. All that were wanted are counted in `matched`, and whether there were more than it
 * went through is said in `is_partial`. */
typedef bool (*archive_choice)(void *context, const struct job_record *job);
struct archive_search {
	archive_choice wants;
	void *context;
	int64_t most, matched;
	bool is_partial;
};
bool archive_search(struct store *store, const struct archive_filter *filter,
                    struct archive_search *search, struct arena *arena, struct archived_job **jobs,
                    int64_t *count, struct error *error);
/* How many in each state; `behind_id` and `limit` of the filter do not count. */
bool archive_count(struct store *store, const struct archive_filter *filter,
                   int64_t counts[JOB_STATES], struct error *error);
/* Counts the archived jobs of each tenant by state, in one query. False from `each` ends it. */
typedef bool (*archive_tally)(void *context, int64_t tenant_id, enum job_state state, int64_t count,
                              struct error *error);
bool archive_count_each(struct store *store, archive_tally each, void *context,
                        struct error *error);

/* Which decisions; 0, -1 or an empty list: all. The newest come first. A decision is about a
 * node where one of the node's GPUs is in its arithmetic, so a node is named by its GPUs. */
struct decision_filter {
	int64_t job_id, model_id;
	int kind; /* enum decision_kind; -1: all */
	const int64_t *tenant_ids, *gpu_ids;
	size_t tenant_count, gpu_count;
	bool placed;       /* only those that gave GPUs to a task or a slot */
	int64_t before_id; /* 0: from the newest on */
	int64_t limit;     /* how many at the most; 0: 100 */
};
bool archive_decisions(struct store *store, const struct decision_filter *filter,
                       struct arena *arena, struct decision_record **decisions, int64_t *count,
                       struct error *error);

/* Events with a number above `since`, the oldest first but for `ends`. That a job was submitted is
 * not among them: the job says when. */
struct event_filter {
	int64_t job_id; /* 0: all */
	int64_t since;
	bool ends; /* only those by which a job or a slot gave back its GPUs, the newest first */
	int64_t limit; /* how many at the most; 0: 100 */
};
bool archive_events(struct store *store, const struct event_filter *filter, struct arena *arena,
                    struct event **events, int64_t *count, struct error *error);

/* The run of a model's slot that ended last, or that of the slot where `slot_id` > 0; `*count` is
 * 0 or 1. */
bool archive_slot_run(struct store *store, int64_t model_id, int64_t slot_id, struct arena *arena,
                      struct run_record **run, int64_t *count, struct error *error);

/* The runs of a job's tasks: current ones first (without tenant and id), then finished ones,
 * the last to end first. Returns the latest ARCHIVE_RUNS. */
#define ARCHIVE_RUNS 1000
bool archive_runs(struct store *store, int64_t job_id, struct arena *arena,
                  struct run_record **runs, int64_t *count, struct error *error);

#endif
