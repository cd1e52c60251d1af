/* privileges.h - what a task can never gain, whatever it runs */
#ifndef AGENT_HOST_PRIVILEGES_H
#define AGENT_HOST_PRIVILEGES_H

#include <stdbool.h>

/* For the process that becomes a task, in two steps because the first needs privileges that the
 * second gives up. Both return false with errno.
 *
 * Before it becomes its user: empties the ambient set and cuts the bounding set, to nothing for
 * an ordinary user and to what container runtimes give their root where `root`. An agent that
 * lacks CAP_SETPCAP cannot do that; there the second step is what counts. */
bool privileges_bound(bool root);
/* As its user: no_new_privs, and nothing inheritable. setuid programs and file capabilities have
 * no effect from here on. */
bool privileges_seal(void);

#endif
