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

struct expert {
	int64_t id;
	enum expert_kind kind;
	int64_t samples; /* jobs seen, at most SAMPLES_MAX */
	int64_t used;    /* number of the last job seen, over all experts */
	struct histogram histograms[PACES];
	int32_t *offsets;             /* BY_USER: of the voices' logits; NULL: none */
	struct expert *older, *newer; /* by `used` */
};

/* At most `capacity` experts. The one that learned longest ago makes room for a
 * new one. The order in which they learned is part of the state: `used` never
 * falls from `oldest` to `newest`, and equals only among experts of one job,
 * which learn in the order of their kinds. */
struct experts {
	struct map by_id;
	struct expert *oldest, *newest;
	int64_t capacity;
};

#define EXPERTS_MIN EXPERT_KINDS /* what a single job needs */

/* NULL if there is none. */
struct expert *experts_find(const struct experts *experts, int64_t id);
/* The expert of the job's user, which has offsets; NULL if there is none. */
struct expert *experts_user(const struct experts *experts, const struct traits *traits);
/* A new expert, which becomes the newest. There must be none with this id, and room. */
struct expert *experts_add(struct experts *experts, int64_t id, enum expert_kind kind);
/* The expert has learned from job number `used`: it becomes the newest. */
void experts_touch(struct experts *experts, struct expert *expert, int64_t used);
/* Removes the oldest and returns its id; 0 if there is room for `more` experts. */
int64_t experts_evict(struct experts *experts, int64_t more);
/* Puts them in order after they were added in any. */
void experts_sort(struct experts *experts);
void experts_free(struct experts *experts);

/* Adds a duration to both histograms. */
void expert_learn(struct expert *expert, int32_t place);

#endif
