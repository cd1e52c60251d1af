/* options.h - the command line of gpu-scheduler */
#ifndef SERVER_OPTIONS_H
#define SERVER_OPTIONS_H

#include <stdio.h>

#include "server/settings/config.h"

enum action {
	ACTION_SERVE,
	ACTION_CHECK_CONFIG,
	ACTION_DESCRIBE_CONFIG,
	ACTION_DESCRIBE_METRICS,
	ACTION_BACKUP,
	ACTION_RESTORE,
	ACTION_CHECK,
	ACTION_REPAIR,
	ACTION_CREATE_TOKEN,
	ACTION_VERSION,
	ACTION_HELP,
};

/* Texts are the arguments' own. */
struct options {
	enum action action;
	const char *config_path; /* NULL: none */
	/* For settings: NULL where they are not given. */
	const char *data_dir, *listen, *http_port, *grpc_port, *metrics_port, *verbosity;
	const char *kubeconfig_path, *scheduler_names;
	bool kubernetes;
	const char *file;        /* BACKUP, RESTORE */
	bool yes;                /* REPAIR, RESTORE: do it */
	const char *role, *note; /* CREATE_TOKEN */
	const char *tenant, *node, *expires_in, *days;
};

/* False with a reason for unknown or missing arguments. */
bool options_read(struct options *options, int argc, char **argv, struct error *error);
/* Reads the file, the environment and the settings among the options, in this
 * order, and checks them together. NULL with a reason. */
struct config *options_config(const struct options *options, char *const *environment,
                              struct error *error);
void options_print_help(FILE *to);

#endif
