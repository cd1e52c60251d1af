/* checkpoint.h - moves the GPU memory of processes to host memory and back, by the driver */
#ifndef AGENT_GPU_CHECKPOINT_H
#define AGENT_GPU_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* What became of the processes: exit statuses of the program. */
enum checkpoint_result {
	CHECKPOINT_DONE,
	CHECKPOINT_REFUSED = 3, /* all are as before */
	CHECKPOINT_LOST = 4,    /* at least one of them is destroyed */
};

/* Moves all of them, or none. What was done for some of them already, by a call that was
 * interrupted, is not done again. Processes that do not use CUDA are left out; it is refused if
 * none does. All of them must be able to run: the driver works inside them. `library`: of the
 * driver; NULL: where the system finds it. A result other than done has a reason. */
enum checkpoint_result checkpoint_suspend(const char *library, const pid_t *pids, size_t count,
                                          struct error *reason);
enum checkpoint_result checkpoint_resume(const char *library, const pid_t *pids, size_t count,
                                         struct error *reason);

#endif
