/* model.h - what can be served: models, and what they have and want */
#ifndef CORE_MODEL_MODEL_H
#define CORE_MODEL_MODEL_H

#include "base/heap.h"
#include "base/map.h"
#include "base/ranktree.h"
#include "core/cluster/reservation.h"
#include "core/queue/shape.h"
#include "core/record/command.h"

struct request_entry;
struct sched;
struct slot;
struct wanting;

#define IDLE_TTL_DEFAULT_MS 10000
#define LOAD_TIMEOUT_DEFAULT_MS 600000
#define REPLICAS_MAX 100000
#define CONCURRENCY_MAX 1000000

/* Counts over its slots, kept by slot.c. `coming` are waiting, placed or
 * loading; `routable` are ready on a node that can be reached. */
struct model_counts {
	int32_t coming, ready, stopping, routable;
	int32_t asleep;  /* or going to sleep; those that wake are coming */
	int32_t leaving; /* of those that are coming or ready, on nodes that are drained */
	int32_t closing; /* of those that are ready, closed for another model */
};

/* Requests that wait for a place, oldest first. Volatile; see route.h. */
struct request_list {
	struct request_entry *first, *last;
	int64_t count;
};

/* A model that is put, or removed and not yet gone. Names are unique within a tenant: across
 * tenants, a refusal would tell of models that the caller may not know. */
struct model {
	struct model_record r; /* completed: nothing in it stands for a default */
	struct arena texts;    /* what the texts and rows of `r` point into, but for `message` */
	char *key;             /* its tenant and its name; in `texts` */
	char *message;         /* what r.message points to */
	struct tenant *tenant;
	struct filter *filter;
	struct shape *shapes; /* what a slot asks for: one for each split, fewest GPUs first */
	int shape_count;
	struct slot **slots; /* all of them, by id */
	size_t slot_count, slot_capacity;
	struct model_counts counts;
	struct heap open; /* routable slots that have a place, best first: see route.h */
	struct request_list waiting;
	int64_t active;   /* requests in flight, over all slots */
	int64_t capacity; /* what its routable slots have in all */
	bool listed;      /* in models.wanting, under these: */
	int64_t list_key, list_number;
	uint64_t failed_version; /* of the index: nothing came free since it did not fit; 0: none */
	struct {
		uint64_t version, cold; /* of the index and of the cold slots, likewise */
		int64_t retry_ms;       /* when time alone may have changed that */
	} evict_failed;
	struct {
		uint64_t change_seq; /* of the pass: nothing changed since no victims were found */
		int64_t retry_ms;    /* when time alone may have changed that */
	} preempt_failed;
	int64_t offered; /* scratch of a search for what to evict; see evict_clear.c */
	bool dirty, gone;
};

struct models {
	struct map by_id;
	struct text_map by_name; /* by key */
	struct model **all;      /* by id */
	size_t count, capacity;
	struct ranktree wanting;   /* models that may want another slot: see replica.h */
	struct ranktree claimants; /* slots that have a claim, by id */
	struct ranktree closing;   /* slots that are closed for a model, by id */
	struct ranktree asleep;    /* slots that are asleep, by when they were used and id */
	struct map slots;          /* struct slot *, by id */
	struct wanting *order;     /* scratch of replica_open() */
	size_t order_capacity;
};

struct model *models_find(const struct models *models, int64_t id);
struct model *models_named(const struct models *models, int64_t tenant_id, const char *name);
/* The one model of that name in any tenant; NULL where there is none, or more than one. */
struct model *models_only_named(const struct models *models, const char *name);

/* Fills in what was left out: concurrency, replicas, times. */
struct model_record model_complete(const struct model_record *given);
/* Whether a completed record makes sense by itself. */
bool model_check(const struct model_record *record, struct error *error);

/* Commands. What is put changes what is decided from now on; slots keep the
 * memory and the concurrency that they have. A model keeps its tenant while it
 * has slots. */
bool model_put(struct sched *sched, const struct model_command *command, struct error *error);
/* Ends its requests and stops its slots; gone when the last slot is. */
/* Its slots, or those on that node, take no more requests and stop when they have none, or `now`.
 * It is loaded again when somebody asks for it or its minimum of replicas wants it. */
bool model_evict(struct sched *sched, int64_t id, const char *node, bool now, struct error *error);
bool model_remove(struct sched *sched, int64_t id, struct error *error);

/* Whether a tenant (0: an administrator) may use it: its own, those below it,
 * and those that it is shared with. */
bool model_may_use(const struct sched *sched, const struct model *model, int64_t tenant_id);

/* MiB on each GPU when split over `count` GPUs; 0: it cannot be. */
int64_t model_part_mib(const struct model *model, int count);

/* What its next slot counts for with its tenant, before its GPUs are known: by the
 * smallest GPU of the cluster. */
struct amounts model_amounts(const struct model *model, int64_t smallest_mib);

/* What loading a slot of it again is expected to take: what loads took so far,
 * and at least what moving its memory takes. */
int64_t model_reload_ms(const struct model *model, int64_t memory_mib);

/* What putting a slot to sleep and waking it is expected to take. */
int64_t model_wake_ms(const struct model *model, int64_t memory_mib);
/* What is expected to stay on each GPU of a slot that sleeps. */
int64_t model_residue_mib(const struct model *model);
/* A slot woke after so long; what one that sleeps has, as measured. */
void model_woke(struct sched *sched, struct model *model, int64_t took_ms);
void model_slept(struct sched *sched, struct model *model, int64_t residue_mib, int64_t host_bytes);

/* A load failed or a slot died: backs off, longer each time in a row. */
void model_failed(struct sched *sched, struct model *model, const char *message);
/* A load succeeded after so long. */
void model_loaded(struct sched *sched, struct model *model, int64_t took_ms);
/* Its last slot is gone and it was removed: forgets it. */
void model_settle(struct sched *sched, struct model *model);

void sched_dirty_model(struct sched *sched, struct model *model);
/* Out of all lists already: its record is deleted and its memory freed at the end. */
void sched_gone_model(struct sched *sched, struct model *model);

/* For loading, before its slots and their reservations. */
struct model *model_load(struct sched *sched, const struct model_record *record,
                         struct error *error);
void models_free(struct models *models);
void model_free(struct model *model);

#endif
