/* submit.h - what commands that submit jobs share */
#ifndef CLI_COMMAND_SUBMIT_H
#define CLI_COMMAND_SUBMIT_H

#include "cli/session.h"

/* Sends a job, which is given away, for the tenant that it, an option or the context names; with
 * --dry-run it is printed. The answer; NULL with what to end with. */
json_t *submit_send(struct session *session, json_t *job, int *status);
void submit_say(const struct session *session, const json_t *answer);

/* submit --file */
int job_file_submit(const struct arguments *arguments);

#endif
