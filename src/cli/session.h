/* session.h - one command that calls the service: address, credentials, form of the output */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include <jansson.h>

#include "cli/cli.h"
#include "cli/client/client.h"
#include "cli/config/config.h"
#include "cli/text/terminal.h"

extern const struct option session_options[];        /* --server, --context, ... */
extern const struct option session_output_options[]; /* -o */

enum form { FORM_TABLE, FORM_WIDE, FORM_JSON, FORM_YAML, FORM_NAME };

/* Texts are in the arena. */
struct session {
	const struct arguments *arguments;
	const struct cli_command *command;
	struct client client;
	const char *server;
	const char *tenant; /* whose what is made is, as it was said; NULL: it was not */
	const char *only;   /* lists show this tenant alone; NULL: all that may be seen. The
	                       context's tenant is for what is made, not for what is shown */
	enum form form;
	struct terminal terminal; /* that stdout is */
	struct config config;
	json_t *tenants; /* by id, once it was asked for */
	struct arena arena;
};

/* Reads options, environment and configuration. Options override the environment, which overrides
 * the context. False, with a message on stderr: exit with `*status`. */
bool session_open(struct session *session, const struct arguments *arguments, int *status);
/* Like session_open(), without a message on failure. */
bool session_open_quietly(struct session *session, const struct arguments *arguments,
                          struct error *error);
void session_close(struct session *session);

/* A path, each %s in it escaped. In the arena. */
const char *session_path(struct session *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Asks; the document, or NULL with the reason. `body` may be NULL and is given away. */
json_t *session_ask(struct session *session, const char *method, const char *path, json_t *body,
                    struct error *error);
json_t *session_get(struct session *session, const char *path, struct error *error);
/* All pages of a list: `path` has no query but what `query` says ("" or "a=b&c=d"), and the
 * answer has the list under `key`, or is the list where that is NULL. At most `most`. */
json_t *session_list(struct session *session, const char *path, const char *query, const char *key,
                     size_t most, struct error *error);

/* The name of a tenant, by its id; the id itself where it is not known. */
const char *session_tenant_name(struct session *session, const char *id);
/* The tenant of a request: as given, or the only one there is. NULL with the reason; "" if
 * the service is to take it from the token. */
const char *session_tenant(struct session *session, struct error *error);

/* Who the caller is to the service, as on the caller's jobs. NULL with the reason, also where
 * nobody signs in: then jobs have no user. */
const char *session_user(struct session *session, struct error *error);

/* A job's id as people write it: job-12, or 12. In the arena. */
const char *session_job(struct session *session, const char *text);

/* Fails as cli_fail does. */
int session_fail(const struct session *session, const struct error *error);

#endif
