/* lifetime.h - what a distribution of durations says about one job */
#ifndef CORE_PREDICT_LIFETIME_H
#define CORE_PREDICT_LIFETIME_H

#include "core/predict/histogram.h"

/* The durations that a job may have, none of which exceeds its limit. */
struct lifetime {
	struct distribution durations;
	int64_t limit_ms; /* 0: none */
};

/* Chances are in 1/65536. */
#define CHANCE_ONE 65536

/* The duration, from the start on, that the job does not exceed with a chance of
 * `chance`, given that it has run for `age_ms`; 0 <= chance <= CHANCE_ONE. Never
 * below the age, nor above the limit unless the age is. */
int64_t lifetime_duration(const struct lifetime *lifetime, int64_t age_ms, int64_t chance);

/* The chance that it ends within `within_ms` from now. */
int64_t lifetime_ends_within(const struct lifetime *lifetime, int64_t age_ms, int64_t within_ms);

/* The chance that its duration is within a factor of two of `duration_ms`. */
int64_t lifetime_within_twice(const struct lifetime *lifetime, int64_t duration_ms);

/* Gittins' index: the least expected time for each job of this kind that ends,
 * over all times at which one could stop waiting for it. The lower, the sooner
 * it should be served. */
int64_t lifetime_index(const struct lifetime *lifetime, int64_t age_ms);

#endif
