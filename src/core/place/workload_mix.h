/* workload_mix.h - the kinds of tasks that arrive, as the fragmentation policy weighs them */
#ifndef CORE_PLACE_WORKLOAD_MIX_H
#define CORE_PLACE_WORKLOAD_MIX_H

#include "core/place/gpu_value.h"
#include "core/place/type_demand.h"
#include "core/record/record.h"

/* Fragmentation of a node: what it has free of its GPUs, weighed over the kinds
 * of tasks that arrive. For a kind that the node cannot take, or that needs no
 * GPU, all of it counts; otherwise the GPUs that are too small for it. */
#define MIX_SEEN 256       /* kinds that are counted at a time */
#define MIX_ROWS 1024      /* kinds that can be given from outside */
#define MIX_NEEDS 32       /* needs of GPUs that are weighed: the most frequent */
#define MIX_CPUS 32        /* steps of CPU: where there are more, needs are rounded up */
#define MIX_UNIT (1 << 20) /* all weights add up to about this */

/* A row of the record: tasks of `gpu_count` GPUs, 0 for none, with `gpu_milli`
 * thousandths of each, 1000 for whole ones. */
struct workload_kind {
	int64_t gpu_milli, gpu_count, cpu_milli;
	int64_t times; /* that it arrived, or its weight */
};

/* A need of several parts of GPUs. */
struct workload_split {
	int32_t milli, count;
	int32_t weight[MIX_CPUS];
};

/* Each GPU counts with the weight of all kinds but those that the node can take
 * and that fit this GPU. A GPU that fits a kind of one GPU is enough for the
 * node to take it, and kinds of several whole GPUs fit whole ones alone. So
 * weights are summed up by what that depends on, and a score costs one look-up
 * per GPU. A first index c stands for the kinds that need at most cpu[c]. */
struct workload_weights {
	int32_t all; /* of all kinds; 0: none needs a GPU */
	int split_count;
	int64_t cpu[MIX_CPUS];        /* ascending from 0; INT64_MAX where not used */
	uint8_t level[WHOLE_GPU + 1]; /* how many sizes of kinds of one GPU fit that much */
	int32_t single[MIX_CPUS][MIX_NEEDS + 1];        /* kinds of one GPU, up to that level */
	int32_t whole[MIX_CPUS][GPUS_PER_NODE_MAX + 1]; /* kinds of 2 to that many whole GPUs */
	struct workload_split splits[MIX_NEEDS];
};

struct workload_mix {
	struct mix_record r; /* its rows and texts are the next three */
	struct workload_kind *seen, *classes;
	struct type_demand type_demand;
	size_t seen_capacity, class_capacity;
	struct workload_weights weights; /* of the frequent classes, by how often they arrive */
	struct gpu_value gpu_value;      /* of all classes; ask workload_mix_gpu_value */
	struct workload_weights demand;  /* with it: by the GPUs that they ask for */
	uint64_t gpu_value_version;      /* that both are of; 0: none */
	uint64_t version;                /* changes when scores do */
	bool dirty;                      /* the record has changed; cleared by who writes it */
};

/* Nothing seen yet: until something is, scores are by a built-in mix. */
void workload_mix_init(struct workload_mix *mix);
void workload_mix_free(struct workload_mix *mix);

/* A job arrived whose `tasks` tasks are of this kind, on GPUs of the models (separated
 * by '|') if that is not empty. `number` is its id. Every
 * job counts until 1024 tasks were seen, after that about one in sixteen, chosen
 * by the number, so that most submissions leave the record as it is. When a
 * quarter more was seen than last time the classes are derived again: the kinds,
 * most frequent first. Fragmentation is by those that make up 95% of what
 * arrived. A fixed mix does not learn. */
void workload_mix_learn(struct workload_mix *mix, int64_t number, int64_t gpu_milli,
                        int64_t gpu_count, int64_t cpu_milli, int64_t tasks, const char *models);
/* Classes given from outside: rows of MIX_WIDTH. An empty list learns again,
 * from what was seen before. False, and nothing changed, if they make no sense. */
bool workload_mix_fix(struct workload_mix *mix, struct rows rows, struct error *error);
/* Resumes from the record. False, and nothing changed, if it is inconsistent. */
bool workload_mix_load(struct workload_mix *mix, const struct mix_record *record,
                       struct error *error);

/* What rests of GPUs are worth to the classes; learned when it is first asked for. */
const struct gpu_value *workload_mix_gpu_value(struct workload_mix *mix);

/* Expected fragmentation, in thousandths of a GPU x MIX_UNIT, of a node with
 * this much CPU free and these free thousandths (0 to 1000) per GPU. 0 if no
 * class needs a GPU. `mix` stands for its weights by arrivals. */
int64_t weights_fragmentation(const struct workload_weights *weights, int64_t cpu_milli,
                              const int32_t *free_milli, int gpu_count);
static inline int64_t workload_mix_fragmentation(const struct workload_mix *mix, int64_t cpu_milli,
                                                 const int32_t *free_milli, int gpu_count)
{
	return weights_fragmentation(&mix->weights, cpu_milli, free_milli, gpu_count);
}

/* The weights of the kinds that a node with some amount of CPU can take: of one GPU,
 * by level, and of several whole ones, by how many the node has. For one with less
 * than no CPU: none. */
struct workload_row {
	const int32_t *single, *several;
	int32_t all;
	int step; /* of the CPU; -1: less than none */
};
extern const struct workload_row workload_row_of_nothing;

static inline struct workload_row workload_row(const struct workload_weights *weights,
                                               int64_t cpu_milli)
{
	int at = 0;

	for (int step = MIX_CPUS / 2; step > 0; step /= 2)
		at += weights->cpu[at + step] <= cpu_milli ? step : 0;
	struct workload_row row = { weights->single[at], weights->whole[at], weights->all, at };
	if (cpu_milli < 0) {
		row = workload_row_of_nothing;
		row.all = weights->all;
	}
	return row;
}
/* Expected fragmentation where no class asks for parts of several GPUs
 * (split_count 0), of a node that has `total_milli` free, `whole` GPUs among that.
 * `fit` is the sum over its GPUs of what is free times `single` of its level. */
static inline int64_t workload_row_fragmentation(const struct workload_row *row,
                                                 int64_t total_milli, int64_t whole, int64_t fit)
{
	return total_milli * row->all - fit - whole * WHOLE_GPU * row->several[whole];
}

#endif
