/* budget.h - the budget of a task: how much of its GPU memory each process has
 *
 * Every change is made under the segment's lock, so that processes that race for
 * the last byte never get it twice. */
#ifndef GUARD_BUDGET_BUDGET_H
#define GUARD_BUDGET_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "guard/budget/lock.h"
#include "guard/budget/segment.h"

/* Gives the process a place in the segment: `member` is then complete. What an
 * earlier program of the same process left there (it called exec) is given back.
 * False if all places are taken by processes that live. */
bool budget_join(struct member *member, struct segment *segment, struct process_identity identity);

/* Gives back what an earlier program of this process has left, without joining. */
void budget_forget(struct segment *segment, struct process_identity identity);

/* The number of a GPU in the segment. One that is not listed is listed with what
 * holds for others; -1 if there is no room for it. */
int budget_gpu(const struct member *member, const uint8_t uuid[16]);

/* Like budget_gpu(), but does not add a GPU that is not listed: returns -1. */
int budget_find_gpu(const struct segment *segment, const uint8_t uuid[16]);

/* Charges bytes to the process, if they are within the limit once those who are
 * gone have been taken off. A refusal is not counted yet. */
bool budget_take(const struct member *member, int gpu, int64_t bytes);

/* Charges bytes that are there already, within the limit or not. */
void budget_take_fact(const struct member *member, int gpu, int64_t bytes);

/* Gives back bytes that were charged to the process. */
void budget_give(const struct member *member, int gpu, int64_t bytes);

/* So much more of what is charged to the process is memory that NVML does not give to it. */
void budget_hide(const struct member *member, int gpu, int64_t bytes);

/* What of its charge NVML must show: all but hidden memory. */
int64_t budget_visible(const struct segment_process *process, int gpu);

/* Counts a refusal, for those who watch. */
void budget_refuse(const struct member *member, int gpu, int64_t bytes);

/* Counts a request within the limit for which the GPU had no memory left. */
void budget_fail(const struct member *member, int gpu, int64_t bytes);

/* The process holds that many more pieces of memory that other processes exported. */
void budget_import(const struct member *member, int change);

/* Before a context is made: charges what it is expected to take as overhead, if that
 * is within the limit, which is not 0. Where nothing is known of contexts, as many do, but no more
 * than an eighth of the limit. */
bool budget_expect_context(const struct member *member, int gpu);

/* Before kernels get memory of their own: charges so much more overhead, if it is within the
 * limit; less if it is negative. */
bool budget_promise(const struct member *member, int gpu, int64_t bytes);

/* Sets the overhead of a process, as it was measured: a fact, within the limit or
 * not. */
void budget_measure(const struct member *member, uint32_t place, int gpu, int64_t bytes);

/* Removes all processes that are gone, and recounts the totals. */
void budget_reap(const struct member *member);

/* Removes one process, which the caller knows to be gone. */
void budget_reap_place(const struct member *member, uint32_t place);

/* For share.h, under the lock: adds `bytes` to a process's charge, or removes them. */
void budget_move(struct segment *segment, uint32_t place, uint32_t gpu, int64_t bytes);

/* Under the lock: whether so much more is within the limit. */
bool budget_fits(const struct segment *segment, uint32_t gpu, int64_t bytes);

/* Takes the lock with totals that are right. */
void budget_lock(const struct member *member);

#endif
