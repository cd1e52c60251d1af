/* keeper_child.h - the first process of a work, and what runs before and after it */
#ifndef AGENT_KEEPER_KEEPER_CHILD_H
#define AGENT_KEEPER_KEEPER_CHILD_H

#include "agent/keeper/spec.h"

/* How a start failed: at the system (the node's fault, and the work may run elsewhere), or at
 * the command (the work's own). */
enum child_fault { CHILD_NO_FAULT, CHILD_SYSTEM_FAULT, CHILD_COMMAND_FAULT };

/* Starts the first process, in its cgroup and a session of its own, with its input from
 * `in` (negative: none) and its output to `out` and `errors`. Returns when it runs its command: its
 * number; or 0, with whose fault it is and a reason. `network` is its network namespace; negative:
 * the keeper's. */
pid_t keeper_child_start(const struct spec *spec, int in, int out, int errors, int network,
                         enum child_fault *fault, struct error *error);

/* Runs a program of the administrator as the keeper's user, in the environment that the agent
 * made for hooks, and waits for it, `most_ms` at the longest. Returns its exit code as a shell
 * shows it. */
int keeper_child_hook(const struct spec *spec, const char *program, int out, int64_t most_ms);

/* Runs the spec's clean-up in this group and waits for it like keeper_child_hook(). It runs as the
 * work's user: a container runtime reads configuration that this user can write. Processes may be
 * left in the group. */
int keeper_child_clean_up(const struct spec *spec, const struct cgroup *group, int64_t most_ms);

/* Starts a process that looks at the spec's checkpoint path every second as the work's user, so
 * that nobody learns of files that this user cannot see. It writes a mark, an int64_t that is not
 * 0, to the pipe whose other end is `*marks` whenever the file, or what is directly in the
 * directory, has changed. It is in no cgroup of the work. Its number; 0: it could not be
 * started. */
pid_t keeper_child_look(const struct spec *spec, int *marks);

#endif
