/* client.h - requests to the service */
#ifndef CLI_CLIENT_CLIENT_H
#define CLI_CLIENT_CLIENT_H

#include <jansson.h>

#include "cli/client/address.h"
#include "fetch/fetch.h"

/* The service and the credentials for it. Texts belong to the caller. */
struct client {
	struct address address;
	const char *token;           /* NULL: none */
	const char *ca_file;         /* NULL: the system's certificates */
	int64_t connect_ms, most_ms; /* to wait for a connection, and for an answer */
	struct fetcher *fetcher;     /* NULL: nothing was requested yet */
};

void client_close(struct client *client);

/* A request: `path` begins with a slash and is escaped already. */
struct client_request {
	const char *method, *path;
	const char *body;            /* NULL: none */
	size_t body_size;            /* of one that is no text: not sent as JSON; 0: a text */
	const char *idempotency_key; /* NULL: none */
	int64_t most_ms;             /* 0: the client's */
};

/* Requests JSON. The document (json_decref), or NULL with the service's own sentence as the
 * reason. An answer without a body is an empty object. */
json_t *client_ask(struct client *client, const struct client_request *request,
                   struct error *error);

/* An answer that comes over time. Its address is its identity: it must not move. */
struct client_stream {
	struct fetch_stream *fetch;                                 /* NULL: closed */
	struct fetch_answer answer;                                 /* the body of a refusal */
	void (*part)(void *context, const char *data, size_t size); /* of a body with status 200 */
	void *context;
	struct client_call *call; /* the texts of the request */
};

/* Requests `path`. `part` and `context` must be set. False with a reason. */
bool client_stream_open(struct client_stream *stream, const struct client *client, const char *path,
                        struct error *error);
/* Like client_stream_open(), with any request; its body must last until the stream is closed. */
bool client_stream_send(struct client_stream *stream, const struct client *client,
                        const struct client_request *request, struct error *error);
void client_stream_close(struct client_stream *stream);

/* Explains an answer that is a refusal. */
void client_refusal(const struct fetch_answer *answer, const struct client *client,
                    struct error *error);

/* The texts of a request to the service, as fetch takes them. */
struct client_call {
	struct fetch_request request;
	struct buffer url, server, authorization, key;
	const char *headers[4];
};

void client_call_begin(struct client_call *call, const struct client *client,
                       const struct client_request *request);
/* Wipes the token as well. */
void client_call_end(struct client_call *call);

/* Appends a part of a path, with what may not stand in one escaped. */
void client_escape(struct buffer *to, const char *text);

#endif
