/* shape.h - jobs that ask for the same thing in the same way */
#ifndef CORE_SHAPE_H
#define CORE_SHAPE_H

#include "base/bitset.h"
#include "base/heap.h"
#include "base/map.h"
#include "core/cluster.h"
#include "core/queue.h"
#include "core/tenant.h"
#include "core/types.h"

struct job;

/* Which nodes and GPUs are allowed at all, by model and by labels. */
struct filter {
	int64_t number;
	const char *models, *labels; /* as in the job's record; behind the struct in its block */
	struct bitset model;         /* numbers of allowed models; unused if `models` is empty */
	struct bitset nodes;         /* allowed, by slot; of filter_refresh */
	uint64_t refreshed; /* the version of the cluster that `nodes` and `model` are of */
};

/* What decides where the next tasks of a job can go, and nothing else. All jobs
 * of one shape fit or do not fit together, so one is tried for all of them. */
struct shape {
	int64_t number;
	struct request request;
	int64_t tasks; /* to be started together */
	int64_t split_gpus;
	enum closeness closeness;
	bool closeness_required;
	struct filter *filter;
	struct amounts asked;    /* what one attempt asks for, by the smallest GPU of `asked_mib` */
	int64_t asked_mib;       /* plus 1; 0: not counted yet */
	uint64_t failed_version; /* of the index: nothing came free since it did not fit; 0: none */
	uint64_t claim_failed_version; /* the same for claims on what is releasing */
	struct job_class *opened[2];   /* scratch of a pass, by preemptible */
	struct { /* the last that was found hopeless, by preemptible; see room.c */
		const struct tenant *tenant;
		uint64_t round;
		int64_t priority;
	} hopeless[2];
	struct job_class **classes; /* with waiting jobs, in no order that decides anything */
	size_t class_count, class_capacity;
	int64_t active_place; /* in shapes.active; -1 */
};

/* The waiting jobs of one tenant, shape, priority and expected length. */
struct job_class {
	struct tenant *tenant;
	struct shape *shape;
	int64_t priority;
	int length; /* log2 of the expected seconds, rounded up; LENGTH_UNKNOWN */
	bool preemptible;
	struct queue queue;
	int64_t shape_place, tenant_place; /* in their lists of classes; -1 while empty */
	int32_t pass_place;                /* in a pass's heap; -1 */
	uint64_t key;                      /* the same for the same class in every run */
	int64_t pass_key, pass_number; /* effective priority and number of its first job there */
	uint64_t room_failed[4];  /* by enum room_kind: the state in which no room could be made */
	int64_t room_retry_ms[4]; /* when time alone may have changed that */
};
#define LENGTH_UNKNOWN 63

struct shapes {
	struct map shapes, classes, filters; /* by hash, chained by counting on from it */
	struct shape **all;                  /* by number */
	size_t count, capacity;
	struct shape **active; /* with waiting jobs, in no order that decides anything */
	size_t active_count, active_capacity;
	int64_t last_number;
};

/* The filter for models and labels; made on first use, and kept. */
struct filter *shapes_filter(struct shapes *shapes, const char *models, const char *labels);
/* Whether it allows the GPU's model, as of the last filter_refresh. */
bool filter_allows(const struct filter *filter, const struct gpu *gpu);
/* Brings the filter up to date with the cluster, whose slots must be right:
 * allowed are nodes with all the labels and, where models are given, at least
 * one GPU of these. Costs nothing if `version` is that of the last time. */
void filter_refresh(struct filter *filter, const struct cluster *cluster, uint64_t version);

/* The class that the job's next tasks belong to; made on first use. Shapes are
 * kept for good, classes until their tenant is forgotten. */
struct job_class *shapes_class(struct shapes *shapes, struct job *job, struct queue_rule rule);
/* Puts the job, which is in no class, into the class, or takes it out again:
 * sets its entry and its class, counts it with its tenant, and lists the class
 * with its shape and its tenant while it has waiting jobs. */
void class_push(struct shapes *shapes, struct job_class *class, struct job *job, int64_t now_ms);
void class_remove(struct shapes *shapes, struct job_class *class, struct job *job);
/* A job with a deadline is urgent from when there is time left for it to run
 * twice; 0: never. */
int64_t job_urgent_from(const struct job *job);
/* Changes the rule by which the jobs of all classes age. */
void shapes_rerule(struct shapes *shapes, struct queue_rule rule, int64_t now_ms);
/* Frees the tenant's classes, before it is deleted. None may have waiting jobs. */
void shapes_forget_tenant(struct shapes *shapes, struct tenant *tenant);

/* log2 of the seconds of an expected duration, rounded up (LENGTH_UNKNOWN where
 * there is none); and the longest it stands for, in ms (INT64_MAX: unknown). */
int length_of(int64_t expected_ms);
int64_t length_ms(int length);

void shapes_free(struct shapes *shapes);

#endif
