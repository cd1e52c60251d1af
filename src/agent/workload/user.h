/* user.h - as whom a task runs */
#ifndef AGENT_WORKLOAD_USER_H
#define AGENT_WORKLOAD_USER_H

#include "agent/host/environment.h"
#include "agent/workload/run.h"

/* Decides, fills uid, gid and groups of the spec and the variables that tell who and where
 * home is. `name` is the user that the task names, `tenant` whose it is; both may be NULL. An agent
 * that is root runs nothing as root unless that is allowed, and believes who a task is only where
 * `trusts_users`; one that is not root runs everything as itself. False with a reason. `home` is
 * where it begins by default. */
bool user_apply(const struct run_settings *settings, const char *name, const char *tenant,
                struct spec *spec, struct environment *environment, const char **home,
                struct error *error);

#endif
