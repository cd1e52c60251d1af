/* commands.h - what gpu-scheduler does beside serving: backups, checks, the first token */
#ifndef SERVER_COMMANDS_H
#define SERVER_COMMANDS_H

#include "server/options.h"

/* Does what the options say, with words on standard output and, where it fails, on
 * standard error. Returns the exit status. */
int command_run(const struct options *options, struct config *config);

#endif
