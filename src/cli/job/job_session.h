/* job_session.h - interactive sessions as commands use them: opened, attached to, and their ends
 * told */
#ifndef CLI_JOB_JOB_SESSION_H
#define CLI_JOB_JOB_SESSION_H

#include "cli/session.h"

/* Runs the command in a task of the job, and stays with it. Returns the exit status: the command's
 * code, or that of an error, told on stderr. */
struct job_command {
	const char *job;
	int64_t task;
	const char *const *words;
	size_t word_count;
	bool input, terminal;
};
int job_session_run(struct session *session, const struct job_command *command);

/* Stays with a session that there is. */
int job_session_attach(struct session *session, const char *job, int64_t task, const char *id,
                       bool input);

/* Makes a request for a job whose first task has a terminal: where to start, and TERM. */
void job_session_ask_terminal(json_t *job);
/* Waits until such a job runs, stays with its terminal, and returns its exit status. An
 * interruption while it waits cancels it. */
int job_session_stay(struct session *session, const char *job, bool quiet);

#endif
