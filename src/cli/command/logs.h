/* logs.h - output that is read from a node */
#ifndef CLI_COMMAND_LOGS_H
#define CLI_COMMAND_LOGS_H

#include "cli/session.h"

/* What a line is taken to have at the most, where the last ones are wanted. */
enum { LOGS_LINE_BYTES = 1024 };

/* Prints what the path answers, or its last `lines` lines where that is more than 0. Returns the
 * exit status. */
int logs_show(struct session *session, const char *path, int64_t lines);

#endif
