/* guarding.h - a hard limit of GPU memory for works: libgpuguard.so and its segment */
#ifndef AGENT_WORKLOAD_GUARDING_H
#define AGENT_WORKLOAD_GUARDING_H

#include "agent/host/environment.h"
#include "agent/workload/run.h"
#include "node/node.h"

/* Where the guard and its segment are in a container. */
#define GUARDING_CONTAINER_LIBRARY "/run/gpu-guard/libgpuguard.so"
#define GUARDING_CONTAINER_BOOKS "/run/gpu-guard/books"

/* True if a work is to be under the guard: where it shares a GPU, or where the node or the
 * work itself (`wanted`) asks for it. */
bool guarding_is_due(const struct run_settings *settings, const struct node_order *order,
                     bool wanted);
/* Makes a planned work preload the guard, with its limits. Its segment is a file that all
 * processes of the work share. */
void guarding_prepare(const struct run_settings *settings, const struct node_order *order,
                      const struct run_plan *plan, struct environment *environment);
/* The path of a planned work's segment on this node; to be freed. */
char *guarding_books(const struct run_settings *settings, int64_t reservation_id,
                     const struct run_plan *plan);
/* Creates the segment, for the user of the plan. False with a reason. Does nothing, and
 * succeeds, without a guard. */
bool guarding_begin(const struct run_settings *settings, const struct node_order *order,
                    const struct run_plan *plan, struct error *error);
/* Reads the counters; false if there is no segment. */
bool guarding_read(const struct run_settings *settings, const struct node_order *order,
                   struct guard_reading *reading);

/* Reads those of a segment that the keeper has put away (see keeper_budget_path). */
bool guarding_read_kept(const char *path, const struct node_order *order,
                        struct guard_reading *reading);

/* Marks the processes of this work that are not under its guard. Puts its limits right. Tells the
 * guard what NVML measured for processes in containers, which cannot measure themselves, and which
 * of `pids`, all processes of the work, are gone. Appends what it has that NVML does not show to
 * `hidden`, as struct hidden_reading. False: it has no segment. */
bool guarding_look(const struct run_settings *settings, const struct node_order *order,
                   const int64_t *pids, size_t pid_count, struct process_reading *processes,
                   size_t process_count, struct guard_reading *reading, struct buffer *hidden);

/* Removes the segment. */
void guarding_end(const struct run_settings *settings, int64_t reservation_id);

#endif
