/* commit.h - an applicant that was placed: orders, states and the decision */
#ifndef CORE_ROOM_COMMIT_H
#define CORE_ROOM_COMMIT_H

#include "core/place/applicant.h"

struct sched;

/* Commits the open plan, in which the applicant was placed, and writes what follows:
 * orders, states and a decision. DECISION_START becomes DECISION_CLAIM,
 * DECISION_GROW or DECISION_LOAD as things are. The decision's victims, evicted
 * slots and comparison are the caller's. */
void applicant_commit(struct sched *sched, struct search *search, struct decision_record *decision);

/* The arithmetic of the memory invariant for parts that were just reserved: rows of
 * enum gpu_line from the `count`-th on, of GPU_LINES_MAX at the most. How many there are
 * then. */
#define GPU_LINES_MAX 64
int lines_add(const struct reservation *reservation, int64_t *lines, int count);

#endif
