/* experts.h - the durations of jobs that share a key, for as many keys as memory is given */
#ifndef CORE_PREDICT_EXPERTS_H
#define CORE_PREDICT_EXPERTS_H

#include "base/map.h"
#include "core/predict/histogram.h"
#include "core/predict/traits.h"

/* An expert has two opinions: from the last few jobs, and from many. */
enum pace { PACE_FAST, PACE_SLOW, PACES };

/* The voices of the mixture: the opinions of all kinds of experts, and two
 * that come from what is running. */
#define VOICES (EXPERT_KINDS * PACES + 2)

#define SAMPLES_MAX 1000000

/* What an expert has seen of the past, which is cut into segments, since one began. */
struct memory {
	int64_t since;   /* a segment; 0: nothing */
	int64_t samples; /* jobs seen, at most SAMPLES_MAX */
	int32_t first;   /* the place of the first duration; the only one without `full` */
	struct full_memory {
		struct histogram histograms[PACES];
		int32_t offsets[VOICES]; /* BY_USER: of the voices' logits */
	} * full;
};

/* It remembers the last whole segment and the current one, and the current one alone if
 * that is not the same: see learner.h. */
struct expert {
	int64_t id;
	enum expert_kind kind;
	struct memory memories[2];
	struct expert *older, *newer; /* by when they learned last */
};

/* The expert that learned longest ago makes room for a new one: the order in which
 * they learned is part of the state. Those that did so before the last whole segment are
 * as good as gone: what they knew is forgotten. */
struct experts {
	struct map by_id;
	struct expert *oldest, *newest;
	int64_t segment; /* the current one */
};

#define EXPERTS_MIN EXPERT_KINDS /* what a single job needs */

/* What is known of the key: since the last whole segment began, or later; NULL: nothing. */
const struct memory *experts_memory(const struct experts *experts, int64_t id);
/* Adds a duration, with `most` experts at the most. Returns the expert. */
struct expert *experts_learn(struct experts *experts, int64_t id, enum expert_kind kind,
                             const struct kernel *kernel, int64_t most);
void experts_free(struct experts *experts);

/* The histogram, in `space` if there was a single duration. */
const struct histogram *memory_histogram(const struct memory *memory, enum pace pace,
                                         struct histogram *space);

#endif
