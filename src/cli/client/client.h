/* client.h - asks the service */
#ifndef CLI_CLIENT_CLIENT_H
#define CLI_CLIENT_CLIENT_H

#include <jansson.h>

#include "cli/client/connection.h"
#include "cli/client/http_answer.h"

/* Where to ask and as whom. Texts belong to whoever made it. */
struct client {
	struct address address;
	const char *token;             /* NULL: none */
	const char *ca_file;           /* NULL: whom the system trusts */
	int64_t connect_ms, most_ms;   /* to wait for a connection, and for an answer */
	struct connection *connection; /* from the last request, if it can be used again */
};

void client_close(struct client *client);

/* A request: `path` begins with a slash and is escaped already. */
struct client_request {
	const char *method, *path;
	const char *body;            /* NULL: none */
	const char *idempotency_key; /* NULL: none */
	int64_t most_ms;             /* 0: the client's */
};

/* Asks for JSON. The document (json_decref), or NULL with the service's own sentence as the
 * reason. An answer without a body is an empty object. */
json_t *client_ask(struct client *client, const struct client_request *request,
                   struct error *error);

/* An answer that comes over time, on a connection of its own. `answer` must have been begun;
 * once its headers are there it has its status. */
struct connection *client_start(const struct client *client, const struct client_request *request,
                                struct error *error);

/* The reason in an answer that is a refusal. */
void client_refusal(const struct http_answer *answer, const struct client *client,
                    struct error *error);

/* Appends the head of a request. `extra` are more header lines, or "". */
void client_write_head(const struct client *client, const struct client_request *request,
                       const char *extra, struct buffer *to);

/* Appends a part of a path, with what may not stand in one escaped. */
void client_escape(struct buffer *to, const char *text);

#endif
