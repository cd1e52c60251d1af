/* guarding.h - a hard limit of GPU memory for works: libgpuguard.so and its books */
#ifndef AGENT_WORKLOAD_GUARDING_H
#define AGENT_WORKLOAD_GUARDING_H

#include "agent/host/environment.h"
#include "agent/workload/run.h"
#include "node/node.h"

/* Where the guard and its books are in a container. */
#define GUARDING_CONTAINER_LIBRARY "/run/gpu-guard/libgpuguard.so"
#define GUARDING_CONTAINER_BOOKS "/run/gpu-guard/books"

/* Whether a work is to be under the guard: where it shares a GPU, or where the node or the
 * work itself (`wanted`) asks for it. */
bool guarding_is_due(const struct run_settings *settings, const struct node_order *order,
                     bool wanted);
/* Has a work that is to be preload the guard, and tells it the limits. Its books are a file
 * that all processes of the work share. */
void guarding_prepare(const struct run_settings *settings, const struct node_order *order,
                      const struct run_plan *plan, struct environment *environment);
/* Where the books of a planned work are on this node; to be freed. */
char *guarding_books(const struct run_settings *settings, int64_t reservation_id,
                     const struct run_plan *plan);
/* Makes the books, for the user of the plan. False with a reason. Nothing is done, and nothing
 * is wrong, where there is no guard. */
bool guarding_begin(const struct run_settings *settings, const struct node_order *order,
                    const struct run_plan *plan, struct error *error);
/* What the books say now; false where there are none. */
bool guarding_read(const struct run_settings *settings, int64_t reservation_id,
                   struct guard_reading *reading);

/* Looks whether those of the processes that are this work's are under its guard, and marks
 * those that are not. Tells the guard what NVML measured of those in containers, which cannot
 * measure themselves, and who of `pids`, all that the work has, is gone. False: it has no
 * books. */
bool guarding_look(const struct run_settings *settings, int64_t reservation_id, const int64_t *pids,
                   size_t pid_count, struct process_reading *processes, size_t process_count,
                   struct guard_reading *reading);

/* Removes the books. */
void guarding_end(const struct run_settings *settings, int64_t reservation_id);

#endif
