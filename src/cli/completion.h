/* completion.h - what a shell offers while a command is typed */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "cli/cli.h"

/* Prints the completions of the last of `words`, one on a line. `words` are the arguments of
 * gpu-cli. Names of jobs, nodes and so on come from the service, which has a second to answer. A
 * line
 * '@files' stands for file names. */
void completion_print(int count, char *const *words);

#endif
