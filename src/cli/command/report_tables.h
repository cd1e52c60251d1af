/* report_tables.h - reports of gpu-cli report that have tables of their own */
#ifndef CLI_COMMAND_REPORT_TABLES_H
#define CLI_COMMAND_REPORT_TABLES_H

#include "cli/session.h"

/* Asks the path of the report and prints its rows. Return the exit status. */
int report_predictions(struct session *session, const char *path);
int report_quotas(struct session *session, const char *path);

#endif
