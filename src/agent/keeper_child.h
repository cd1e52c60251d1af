/* keeper_child.h - the first process of a work, and what runs before and after it */
#ifndef AGENT_KEEPER_CHILD_H
#define AGENT_KEEPER_CHILD_H

#include "agent/spec.h"

/* How a start failed: at the system (the node's fault, and the work may run elsewhere), or at
 * the command (the work's own). */
enum child_fault { CHILD_NO_FAULT, CHILD_SYSTEM_FAULT, CHILD_COMMAND_FAULT };

/* Starts the first process, in its cgroup and a session of its own, with its output to `out`
 * and `errors`. Returns when it runs its command: its number; or 0, with whose fault it is and
 * a reason. */
pid_t keeper_child_start(const struct spec *spec, int out, int errors, enum child_fault *fault,
                         struct error *error);

/* Runs a program of the administrator (or a line for the shell), with the work's environment
 * and as the keeper's user, and waits for it, `most_ms` at the longest. Its exit code, as a
 * shell shows it. */
int keeper_child_hook(const struct spec *spec, const char *program, bool by_shell, int out,
                      int64_t most_ms);

#endif
