/* guarding.h - a hard limit of GPU memory for tasks: libgpuguard.so and its books */
#ifndef AGENT_GUARDING_H
#define AGENT_GUARDING_H

#include "agent/environment.h"
#include "agent/run.h"

/* Has tasks with GPUs preload the guard, where one is configured, and tells it their limits.
 * Its books are a file that all processes of the task share. */
void guarding_prepare(const struct run_settings *settings, const struct node_order *order,
                      struct environment *environment);
/* Makes the books, for the user of the spec. False with a reason. Nothing is done, and nothing
 * is wrong, where there is no guard. */
bool guarding_begin(const struct run_settings *settings, const struct node_order *order,
                    const struct spec *spec, struct error *error);
/* Removes them. */
void guarding_end(const struct run_settings *settings, int64_t reservation_id);

#endif
