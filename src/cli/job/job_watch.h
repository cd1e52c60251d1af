/* job_watch.h - follows a job until it finishes, and shows its output */
#ifndef CLI_JOB_JOB_WATCH_H
#define CLI_JOB_JOB_WATCH_H

#include "cli/session.h"

struct job_watch {
	const char *job;
	bool output;        /* show what it writes */
	bool cancels;       /* an interruption cancels it; the second one leaves at once */
	bool quiet;         /* say nothing about its states */
	bool any_end;       /* however it ends is fine */
	int64_t task;       /* only this one's output; -1: all */
	bool until_running; /* ends with CLI_FINE when the job runs */
	bool input;         /* passes standard input on to the tasks that have one */
};

/* From here on an interruption does not end the program: it is what `cancels` heeds. */
void job_watch_catch(void);

/* Waits until the job finishes. Returns the exit status: the job's code, CLI_NO_JOB if it was
 * cancelled, or that of an error, with the reason on stderr. */
int job_watch(struct session *session, const struct job_watch *watch);

/* Whether a job in this state does nothing any more. */
bool job_is_over(const char *state);

#endif
