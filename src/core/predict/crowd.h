/* crowd.h - how long the jobs of a user have been running */
#ifndef CORE_PREDICT_CROWD_H
#define CORE_PREDICT_CROWD_H

#include "base/map.h"
#include "core/predict/traits.h"

/* A job that will be long teaches nothing until it ends; but that others of its
 * user are still running tells something before. Derived from the running
 * jobs, so it is not stored. Zero-initialized is empty. */
struct crowd {
	struct map groups; /* hash -> struct crowd_group * */
};

/* Running jobs that are counted together. */
struct crowd_group {
	int64_t count;
	int64_t started_ms; /* sum */
};

void crowd_enter(struct crowd *crowd, const struct traits *traits, int64_t started_ms);
/* It must have entered with the same time. */
void crowd_leave(struct crowd *crowd, const struct traits *traits, int64_t started_ms);

/* Running jobs of the same user, and how long they have run on average: as a place on
 * the scale of durations, where a bin begins, so that it seldom changes. */
struct crowd_view {
	int64_t count; /* 0: there are none, or the job has no user */
	int32_t place;
};
/* Of the same size only if `same_size`. */
struct crowd_view crowd_see(const struct crowd *crowd, const struct traits *traits, bool same_size,
                            int64_t now_ms);

/* How many of the job's user run. */
int64_t crowd_count(const struct crowd *crowd, const struct traits *traits);

void crowd_free(struct crowd *crowd);

#endif
