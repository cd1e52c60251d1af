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

/* The arithmetic of the memory invariant for parts that were just reserved. */
enum { GPU_LINES_MAX = 64 };
struct gpu_lines {
	int64_t at[GPU_LINES_MAX * LINE_WIDTH], unexplained[GPU_LINES_MAX];
	int count;
	bool any_unexplained;
};
/* None yet; the rows need not be cleared. */
void lines_clear(struct gpu_lines *lines);
/* One row more: LINE_ASKED is the caller's. There is room for GPU_LINES_MAX. */
int64_t *lines_add_gpu(struct gpu_lines *lines, const struct gpu *gpu);
/* As many as there is room for. */
void lines_add(struct gpu_lines *lines, const struct reservation *reservation);
/* The decision's rows become these, as long as they live. */
void lines_give(const struct gpu_lines *lines, struct decision_record *decision);

#endif
