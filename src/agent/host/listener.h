/* listener.h - whose socket it is that listens on a port of this machine */
#ifndef AGENT_HOST_LISTENER_H
#define AGENT_HOST_LISTENER_H

#include "agent/host/cgroup.h"

enum listener_owner {
	LISTENER_NONE,    /* nobody listens on the port */
	LISTENER_OWN,     /* every socket that does is held by a process of the group */
	LISTENER_FOREIGN, /* one of them is held by none of its processes */
	LISTENER_UNKNOWN, /* the system does not say */
};

/* Looks at TCP sockets of both families and all addresses in the network namespace of the
 * calling process, which is where requests to the port arrive. Reads /proc, and may take a
 * while: for a thread. `uid`: FOREIGN: the user whose socket it is. */
enum listener_owner listener_look(const struct cgroup *group, int64_t port, int64_t *uid);

/* One line of /proc/net/tcp or tcp6: false if that is no socket that listens on the port. */
struct listener {
	uint64_t inode;
	int64_t uid;
};
bool listener_read_line(const char *line, int64_t port, struct listener *listener);

#endif
