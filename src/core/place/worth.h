/* worth.h - what the rest of a GPU is worth in the end, and the CPU that goes with it */
#ifndef CORE_PLACE_WORTH_H
#define CORE_PLACE_WORTH_H

#include <stddef.h>

#include "core/place/premium.h"
#include "core/record/types.h"

struct mix_kind;

/* Of a rest of so many thousandths of a GPU: how much of it is used when the
 * cluster is full, in thousandths x WORTH_UNIT; and of what then runs in it, the
 * CPU it needs in the mean (at most WORTH_CPU_MAX) and the variance of that.
 * A rest that nothing fits, or for which too little small work arrives, is worth
 * little, however large it is. */
#define WORTH_UNIT (1 << 20)
#define WORTH_CPU_MAX (1 << 24) /* per GPU; more than any machine has */
struct worth {
	int32_t value[WHOLE_GPU + 1];
	int32_t cpu_milli[WHOLE_GPU + 1];
	int64_t cpu_variance[WHOLE_GPU + 1];
};

/* Learns it from the kinds that arrive: some thousand GPUs are filled in thought,
 * each part where least worth is lost, until more was asked for than there is;
 * what became of each rest is what it was worth, and the next round is played
 * with that. The same kinds give the same worth. */
void worth_learn(struct worth *worth, const struct mix_kind *kinds, size_t count);

/* The free GPUs of a node, added up. */
struct worth_sum {
	int64_t value, cpu_milli, cpu_variance;
};
/* Adds `count` GPUs, or takes away those below 0, that have `milli` free each and are
 * worth `premium` of PREMIUM_UNIT more. */
static inline void worth_sum_add(struct worth_sum *sum, const struct worth *worth, int32_t milli,
                                 int32_t premium, int count)
{
	int64_t value = worth->value[milli];

	sum->value += count * (value + value * premium / PREMIUM_UNIT);
	sum->cpu_milli += count * (int64_t)worth->cpu_milli[milli];
	sum->cpu_variance += count * worth->cpu_variance[milli];
}
/* What they are worth on a node with this much CPU: less by the part of the CPU
 * they need that is expected to be missing. */
int64_t worth_sum_with(const struct worth_sum *sum, int64_t cpu_milli);

#endif
