/* job_choice.h - the jobs that options choose: --state, --name, --label, --user, --mine, --array,
 * --since */
#ifndef CLI_JOB_JOB_CHOICE_H
#define CLI_JOB_JOB_CHOICE_H

#include "cli/session.h"

/* For commands that change the jobs that they select. */
extern const struct option job_choice_options[];

/* True if one of those options is given. */
bool job_choice_is_made(const struct arguments *arguments);

/* Whose jobs --mine or --user selects; NULL: everybody's. False with the reason. */
bool job_choice_user(struct session *session, const char **user, struct error *error);

/* The jobs (json_decref), the newest first unless --sort says otherwise, `most` at the most. A
 * name is meant whole with `exact`, else by its beginning. Without --state they are in one of
 * `states`, which is like its value; NULL: any. NULL with the reason. */
json_t *job_choice_list(struct session *session, const char *states, bool exact, size_t most,
                        struct error *error);

#endif
