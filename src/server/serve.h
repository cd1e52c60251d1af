/* serve.h - the service from its start to its end */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include "server/options.h"

/* Serves until a signal ends it, or something fails. Takes the config over. `options`
 * and `environment` are for reading the settings again. Returns the exit status. */
int serve(const struct options *options, struct config *config, char *const *environment);

#define EXIT_RESTART 3

#endif
