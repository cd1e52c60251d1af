/* shape.h - jobs that ask for the same thing in the same way */
#ifndef CORE_QUEUE_SHAPE_H
#define CORE_QUEUE_SHAPE_H

#include "base/bitset.h"
#include "base/heap.h"
#include "base/map.h"
#include "core/cluster/cluster.h"
#include "core/queue/queue.h"
#include "core/record/types.h"
#include "core/tenant/tenant.h"

struct demand;
struct job;
struct job_group;
struct job_class;

/* Which nodes and GPUs are allowed at all, by model and by labels. */
struct filter {
	int64_t number;
	const char *gpu_types, *labels; /* as in the job's record; behind the struct in its block */
	const char *resources, *rules, *marks, *node_class; /* the same; see demand.h */
	const char *window;     /* its jobs are placed on what is in this window alone */
	uint64_t window_bit;    /* of it; of filter_refresh */
	struct demand *demand;  /* those, parsed; NULL: none, as in most jobs */
	struct bitset gpu_type; /* numbers of allowed models; unused if `models` is empty */
	struct bitset nodes;    /* allowed, by rank; of filter_refresh */
	uint64_t refreshed;     /* the version of the cluster that `nodes` and `model` are of */
};

/* What decides where the next tasks of a job can go, and nothing else. All jobs
 * of one shape fit or do not fit together, so one is tried for all of them. */
struct shape {
	int64_t number;
	struct shape_request request;
	int64_t tasks; /* to be started together */
	int64_t split_gpus;
	enum closeness closeness;
	bool closeness_required;
	struct filter *filter;
	struct amounts asked;    /* what one attempt asks for, by the smallest GPU of `asked_mib` */
	int64_t asked_mib;       /* plus 1; 0: not counted yet */
	uint64_t failed_version; /* of the index: nothing came free since it did not fit; 0: none */
	uint64_t claim_failed_version; /* the same for claims on what is releasing */
	struct job_group **groups;     /* with waiting jobs, in no order that decides anything */
	size_t group_count, group_capacity;
	int64_t active_index; /* in shapes.active; -1 */
};

/* Whether no task may be stopped for those of the shape. */
bool shape_never_preempts(const struct shape *shape);

struct shapes {
	struct map shapes, groups, classes, filters; /* by hash, chained by counting on from it */
	struct filter *empty_filter; /* the one among `filters` without a condition; NULL: not made
	                              */
	struct shape **all;          /* by number */
	size_t count, capacity;
	struct shape **active; /* with waiting jobs, in no order that decides anything */
	size_t active_count, active_capacity;
	struct job_group **spent; /* anchored groups that became empty, to be freed */
	size_t spent_count, spent_capacity;
	int64_t last_number;
	struct filter **ruled; /* those with rules to keep apart, in the order of their making */
	size_t ruled_count, ruled_capacity;
};

/* The filter for models and labels; made on first use, and kept. */
struct filter *shapes_filter(struct shapes *shapes, const char *models, const char *labels);
/* The filter that a job's record asks for, and that of a guest. */
struct filter *shapes_job_filter(struct shapes *shapes, const struct job_record *job);
struct filter *shapes_guest_filter(struct shapes *shapes, const char *marks, const char *rules);
/* Whether it allows the GPU's model, as of the last filter_refresh. */
bool filter_allows(const struct filter *filter, const struct gpu *gpu);
/* Brings the filter up to date with the cluster, whose ranks must be right:
 * allowed are nodes with all the labels and, where models are given, at least
 * one GPU of these. Costs nothing if `version` is that of the last time. */
void filter_refresh(struct filter *filter, const struct cluster *cluster, uint64_t version);

/* True if the number of whole GPUs and the thousandths free on each say whether a task
 * of the shape fits the GPUs of a node, provided that all of them are of one model. */
bool shape_is_plain(const struct shape *shape);

/* The class that the job's next tasks belong to; made on first use. Shapes are
 * kept for good, groups and classes until their tenant is forgotten, or the next
 * shapes_sweep if they are empty and have an anchor. */
struct job_class *shapes_class(struct shapes *shapes, struct job *job, struct queue_rule rule);
/* Changes the rule by which the jobs of all classes age. */
void shapes_rerule(struct shapes *shapes, struct queue_rule rule, int64_t now_ms);
/* Frees groups that are not needed any more. No pass may be under way. */
void shapes_sweep(struct shapes *shapes);
/* Frees the tenant's groups and classes, before it is deleted. None may have waiting jobs. */
void shapes_forget_tenant(struct shapes *shapes, struct tenant *tenant);

#define LENGTH_UNKNOWN 63
/* log2 of the seconds of an expected duration, rounded up (LENGTH_UNKNOWN where
 * there is none); and the longest it stands for, in ms (INT64_MAX: unknown). */
int length_of(int64_t expected_ms);
int64_t length_ms(int length);

void shapes_free(struct shapes *shapes);

#endif
