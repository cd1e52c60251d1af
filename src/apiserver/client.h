/* client.h - requests to a Kubernetes API server, many at a time over HTTP/2 */
#ifndef APISERVER_CLIENT_H
#define APISERVER_CLIENT_H

#include <uv.h>

#include "base/buffer.h"
#include "base/error.h"

/* In the loop's thread only. One connection carries all calls; it is made when a call needs it,
 * and made again after it ended. A server that says GOAWAY finishes the calls that it took, and
 * the others go over the next connection. */
struct client;

struct client_settings {
	uv_loop_t *loop;
	const char *server; /* https://HOST:PORT, http:// for tests; a path in it is a prefix */
	const char *server_name; /* in the certificate; NULL: the host */
	const char *ca_pem;      /* whom to trust; NULL: the system's */
	bool trust_all;          /* do not verify the certificate: only if the kubeconfig says so */
	const char *cert_pem, *key_pem; /* who we are; NULL */
	const char *user_agent;
	/* Appends the value of the authorization header, without a newline; NULL: none. */
	void (*authorize)(void *context, struct buffer *value);
	void *context;
};

/* The texts are copied. NULL with a reason, such as a certificate that cannot be read. */
struct client *client_new(const struct client_settings *settings, struct error *error);
/* Ends all calls with status 0; handles are closed, and it is freed when the loop has done that. */
void client_free(struct client *client);
/* Other credentials from now on; calls in flight continue. False: it keeps the old ones. */
bool client_renew(struct client *client, const struct client_settings *settings,
                  struct error *error);

struct client_call;
struct client_request {
	const char *method, *path, *content_type, *body; /* copied; body NULL: none */
	int64_t timeout_ms; /* without a byte from the server; 0: 30 s */
	/* The head of the answer, before any of its body; NULL. */
	void (*head)(void *context, int status);
	/* False: give the call up. NULL: the body is kept and given to `done`. */
	bool (*data)(void *context, const char *data, size_t size);
	/* Once, unless client_give_up() was called. Status 0: no answer, and `reason` says why. The
	 * call is gone then; others may be started. */
	void (*done)(void *context, int status, int64_t retry_after_s, const struct buffer *body,
	             const char *reason);
	void *context;
};

struct client_call *client_start(struct client *client, const struct client_request *request);
void client_give_up(struct client_call *call);
/* Sends what there is to send, for who starts calls when the loop is about to wait. */
void client_flush(struct client *client);
/* Calls that did not end yet. */
size_t client_calls(const struct client *client);

#endif
