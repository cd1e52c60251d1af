/* job_terminal.h - the client's side of an interactive session of a job */
#ifndef CLI_JOB_JOB_TERMINAL_H
#define CLI_JOB_JOB_TERMINAL_H

#include "cli/session.h"

struct job_terminal {
	const char *job, *id; /* of the session: "main" is the job's own command */
	int64_t task;
	bool input;    /* passes standard input on */
	bool terminal; /* the session has one: keys go there as they are typed */
	bool opened;   /* by this client: all of its output is wanted */
};

enum terminal_end {
	TERMINAL_EXITED,   /* the command has ended, with the code */
	TERMINAL_DETACHED, /* the client has left, and the session continues */
	TERMINAL_LOST,     /* with the reason in `error` */
};

/* Stays with the session until it ends, or the client leaves it. A connection that breaks is made
 * again, for up to ten minutes, and both streams continue where they were. */
enum terminal_end job_terminal_run(struct session *session, const struct job_terminal *wanted,
                                   int *code, struct error *error);

/* The size of the caller's terminal; 80 by 24 where there is none. */
void job_terminal_size(int *columns, int *rows);

#endif
