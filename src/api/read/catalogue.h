/* catalogue.h - the durable records, as readers see them */
#ifndef API_READ_CATALOGUE_H
#define API_READ_CATALOGUE_H

#include "core/record/record.h"
#include "store/batch.h"

/* A copy in memory of all durable records that are not archived, with indexes for lists. The
 * engine's threads add batches as they become durable; the loop's thread reads. A reader holds the
 * lock for as long as it uses a record. */
struct catalogue;

struct catalogue *catalogue_new(void);
void catalogue_free(struct catalogue *catalogue);

/* At the start, before anyone reads: each record as it is loaded. */
void catalogue_load(struct catalogue *catalogue, enum record_kind kind, const void *record);
/* How many archived jobs there are, by tenant and state: at the start. */
void catalogue_load_archived(struct catalogue *catalogue, int64_t tenant_id, enum job_state state,
                             int64_t count);
/* A batch is durable. Takes the lock by itself. */
void catalogue_apply(struct catalogue *catalogue, const struct batch *batch);

/* Many readers, or the engine. Hold it briefly: it stops commits. */
void catalogue_lock(struct catalogue *catalogue);
void catalogue_unlock(struct catalogue *catalogue);
/* Grows with every batch; for ETags. */
int64_t catalogue_version(const struct catalogue *catalogue);

/* A job with all that is about it. */
struct catalogue_job {
	const struct job_record *job;
	const struct job_state_record *state;
	const struct task_record *const *tasks; /* those that were ever placed, by place */
	size_t task_count;
	const struct promise_record *promise; /* NULL: none */
	int64_t version;                      /* of the batch that last touched it */
};
/* False if it is not there (it may be archived). */
bool catalogue_job(const struct catalogue *catalogue, int64_t id, struct catalogue_job *job);

/* Any other record by its key, or NULL. */
const void *catalogue_get(const struct catalogue *catalogue, enum record_kind kind, int64_t first,
                          int64_t second);
/* All records of a kind in the order of their keys: begin with a zeroed cursor; NULL at the
 * end. Not for jobs, job states and tasks. */
struct catalogue_cursor {
	enum record_kind kind;
	size_t at;
};
const void *catalogue_next(const struct catalogue *catalogue, struct catalogue_cursor *cursor);

/* By name; NULL if there is none. */
const struct tenant_record *catalogue_tenant_named(const struct catalogue *catalogue,
                                                   const char *name);
const struct node_record *catalogue_node_named(const struct catalogue *catalogue, const char *name);
/* Models of different tenants may have the same name: the first with a larger id. */
const struct model_record *catalogue_model_named(const struct catalogue *catalogue,
                                                 const char *name, int64_t after_id);
const struct gpu_record *catalogue_gpu_named(const struct catalogue *catalogue, const char *uuid);

/* The GPUs of a node by place, and the reservations (tasks' and slots') on a node. */
size_t catalogue_node_gpus(const struct catalogue *catalogue, int64_t node_id,
                           const struct gpu_record *const **gpus);
size_t catalogue_node_reservations(const struct catalogue *catalogue, int64_t node_id,
                                   const struct reservation_record *const **reservations);

/* Listing jobs: of one tenant or all, in one state or all, in memory. */
enum catalogue_order { ORDER_NEWEST, ORDER_OLDEST, ORDER_PRIORITY };
struct catalogue_filter {
	int64_t tenant_id; /* 0: of all */
	int state;         /* enum job_state; -1: all */
	enum catalogue_order order;
};
/* How many match: in memory, and archived. O(1). */
int64_t catalogue_count(const struct catalogue *catalogue, const struct catalogue_filter *filter,
                        int64_t *archived);
/* Up to `limit` ids of those in memory, from the `offset`-th on. O(log n + limit). */
size_t catalogue_list(const struct catalogue *catalogue, const struct catalogue_filter *filter,
                      int64_t offset, size_t limit, int64_t *ids);
/* For merging with archived ones: how many of those in memory come before an id in the order
 * NEWEST or OLDEST. */
int64_t catalogue_rank(const struct catalogue *catalogue, const struct catalogue_filter *filter,
                       int64_t id);

#endif
