/* job_forward.h - connections to this machine, carried to a port of a task */
#ifndef CLI_JOB_JOB_FORWARD_H
#define CLI_JOB_JOB_FORWARD_H

#include "cli/session.h"

struct job_forward {
	const char *job;
	int64_t task, port;
};

/* Listens on loopback. `*port` is 0 for any, and then the one that it is. Negative with a reason.
 */
int job_forward_listen(int64_t *port, struct error *error);
/* Connects to the task's port once, and closes the connection. False with a reason: ERROR_CONFLICT
 * where nothing listens there. */
bool job_forward_probe(struct session *session, const struct job_forward *forward,
                       struct error *error);
/* Carries connections, each in a process of its own, until an interruption or, where `over` says
 * so, until that returns true, which is asked every second. */
void job_forward_serve(struct session *session, const struct job_forward *forward, int listener,
                       bool (*over)(void *context), void *context);

#endif
