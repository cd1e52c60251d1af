/* gpu_value.h - what the rest of a GPU is worth in the end, and the CPU that goes with it */
#ifndef CORE_PLACE_GPU_VALUE_H
#define CORE_PLACE_GPU_VALUE_H

#include <stddef.h>

#include "core/place/scarcity.h"
#include "core/record/types.h"

struct workload_kind;

/* For a remainder of a GPU, in thousandths: how much of it is used when the
 * cluster is full, in thousandths x GPU_VALUE_UNIT; and of what then runs in it, the
 * CPU it needs in the mean (at most GPU_VALUE_CPU_MAX) and the variance of that.
 * A rest that nothing fits, or for which too little small work arrives, is worth
 * little, however large it is. */
#define GPU_VALUE_UNIT (1 << 20)
#define GPU_VALUE_CPU_MAX (1 << 24) /* per GPU; more than any machine has */
struct gpu_value {
	int32_t value[WHOLE_GPU + 1];
	int32_t cpu_milli[WHOLE_GPU + 1];
	int64_t cpu_variance[WHOLE_GPU + 1];
};

/* Learns it from the kinds that arrive: some thousand GPUs are filled in thought,
 * each part where least worth is lost, until more was asked for than there is;
 * what became of each rest is what it was worth, and the next round is played
 * with that. The same kinds give the same worth. */
void gpu_value_learn(struct gpu_value *gpu_value, const struct workload_kind *kinds, size_t count);

/* The free GPUs of a node, added up. */
struct gpu_value_sum {
	int64_t value, cpu_milli, cpu_variance;
};
/* Adds `count` GPUs, or takes away those below 0, that have `milli` free each and are
 * worth `scarcity` of SCARCITY_UNIT more. */
static inline void gpu_value_sum_add(struct gpu_value_sum *sum, const struct gpu_value *gpu_value,
                                     int32_t milli, int32_t scarcity, int count)
{
	int64_t value = gpu_value->value[milli];

	sum->value += count * (value + value * scarcity / SCARCITY_UNIT);
	sum->cpu_milli += count * (int64_t)gpu_value->cpu_milli[milli];
	sum->cpu_variance += count * gpu_value->cpu_variance[milli];
}
/* What they are worth on a node with this much CPU: less by the part of the CPU
 * they need that is expected to be missing. */
int64_t gpu_value_sum_with(const struct gpu_value_sum *sum, int64_t cpu_milli);

#endif
