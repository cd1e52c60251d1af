/* completion.h - what a shell offers while a command is typed */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "cli/cli.h"

/* Prints what can stand where the last of `words` is being typed, one on a line; the words are
 * those behind gpu-cli. Names of jobs, nodes and such are asked of the service, which has a
 * second to answer. A line '@files' says that files can stand there. */
void completion_print(int count, char *const *words);

#endif
