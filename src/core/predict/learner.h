/* learner.h - a mixture that is a function of the last jobs that ended */
#ifndef CORE_PREDICT_LEARNER_H
#define CORE_PREDICT_LEARNER_H

#include "core/predict/mixture.h"

/* What is kept of the past is a window of experiences, one small record each, and not
 * what was made of them: so a job that ends costs one record, and memory and the time of
 * a start are bounded. Experiences are cut into segments: the mixture knows the last whole
 * one and the current one. */
struct learner {
	struct mixture mixture;
	int64_t filled, before;  /* experiences in the current segment, and in the one before */
	int64_t second, learned; /* experiences of the second in which the last one ended */
	struct memo *memo;       /* what was foreseen since the last one; forgotten at will */
};

void learner_init(struct learner *learner);
void learner_free(struct learner *learner);

/* Where more jobs than this end in a second, it learns from the first ones alone. Otherwise
 * short jobs would push out of the window within a minute what was learned in days, and
 * learning would take a notable part of the time. */
#define LEARNED_PER_S 256
/* True if it learns from a job that ends now. */
bool learner_accepts(const struct learner *learner, int64_t now_ms);

/* Learns, with `most` experts in each of the mixtures at the most. True if that filled the
 * segment, which has `size` experiences or more then: the ones before it are not needed. */
bool learner_learn(struct learner *learner, const struct experience *experience, int64_t most,
                   int64_t size);
/* Learns again from one of segment `segment`, in the order of the first time; `closes`:
 * it filled the segment. */
void learner_replay(struct learner *learner, const struct experience *experience, int64_t most,
                    int64_t segment, bool closes);

/* What is expected of a job as of `now_ms`: valid until the next call. */
const struct foresight *learner_foresee(struct learner *learner, const struct crowd *crowd,
                                        const struct traits *traits, int64_t now_ms, uint64_t *key);
/* The current segment, from 1 on. */
int64_t learner_segment(const struct learner *learner);
/* Experts that it has. */
int64_t learner_experts(const struct learner *learner);

#endif
