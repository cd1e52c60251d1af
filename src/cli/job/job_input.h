/* job_input.h - standard input, passed on to the tasks of a job that have one */
#ifndef CLI_JOB_JOB_INPUT_H
#define CLI_JOB_JOB_INPUT_H

#include <poll.h>

#include "cli/client/client.h"

/* At most one part of it is in memory: more is read when all tasks have taken that. A file is read
 * again for a task that starts again; what came through a pipe is gone. */
struct job_input;

/* Whether standard input is there to be passed on: not /dev/null, not closed, and no terminal that
 * another job of the shell reads. */
bool job_input_is_there(void);

/* Texts belong to the caller. */
struct job_input *job_input_new(const struct client *client, const char *job);
void job_input_free(struct job_input *input);

/* What to wait for. */
struct pollfd job_input_poll(const struct job_input *input);
/* Reads and sends what can be without waiting; `job` is how the job is now. False: there is
 * nothing more to do, or with an error: a task started again and cannot be given what was read. */
bool job_input_advance(struct job_input *input, const json_t *job, struct error *error);

#endif
