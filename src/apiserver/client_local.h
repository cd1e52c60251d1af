/* client_local.h - the inside of the client: what its files share */
#ifndef APISERVER_CLIENT_LOCAL_H
#define APISERVER_CLIENT_LOCAL_H

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>

#include "apiserver/client.h"

struct client_call {
	struct client *client;
	struct client_call *previous, *next;  /* of all calls of the client */
	struct client_connection *connection; /* NULL: waits for one */
	struct client_request request;
	int32_t stream;
	int status;
	int64_t retry_after_s, heard_ms;
	struct buffer body;
	size_t sent;  /* of the request's body */
	bool refused; /* the server did not look at it: it goes over the next connection */
	bool given_up;
};

enum client_stage { CLIENT_RESOLVING, CLIENT_CONNECTING, CLIENT_SECURING, CLIENT_OPEN };

/* It outlives its end until libuv has closed its socket. */
struct client_connection {
	struct client *client; /* NULL: given up */
	struct client_connection *next;
	uv_tcp_t socket;
	uv_getaddrinfo_t resolve;
	uv_connect_t connect;
	bool resolving, opened, closing; /* of what libuv still has */
	enum client_stage stage;
	SSL *ssl;
	nghttp2_session *session;
	bool leaving; /* takes no new calls */
	size_t calls;
	int64_t began_ms, heard_ms, pinged_ms;
	size_t busy; /* inside of the session: it may not be freed */
};

struct client {
	struct client_settings settings;
	char *host, *port, *prefix, *server_name, *user_agent;
	bool tls;
	SSL_CTX *context;
	struct client_connection *connections; /* the newest first */
	struct client_call *calls;
	size_t call_count;
	uv_timer_t timer;
	uv_prepare_t before_wait;
	int handles;
	bool freed, dirty;
	int64_t wait_ms, not_before_ms;
	char reason[ERROR_TEXT_MAX]; /* of the last connection's end */
};

/* client.c */
void client_write(struct client_connection *connection, const void *data, size_t size);
void client_lose(struct client_connection *connection, const char *reason);
bool client_ready(struct client_connection *connection, struct error *error);
int64_t client_now_ms(const struct client *client);
/* Ends it with what is known; the call is gone. */
void client_end_call(struct client_call *call, const char *reason);

/* client_http2.c */
bool client_http2_begin(struct client_connection *connection);
bool client_http2_receive(struct client_connection *connection, const void *data, size_t size,
                          struct error *error);
bool client_http2_flush(struct client_connection *connection, struct error *error);
/* Sends the call over the connection; false: it does not take more. */
bool client_http2_submit(struct client_connection *connection, struct client_call *call);
void client_http2_reset(struct client_call *call);
void client_http2_ping(struct client_connection *connection);

/* client_tls.c */
SSL_CTX *client_tls_context(const struct client_settings *settings, struct error *error);
bool client_tls_begin(struct client_connection *connection, struct error *error);
bool client_tls_receive(struct client_connection *connection, const void *data, size_t size,
                        struct error *error);
bool client_tls_send(struct client_connection *connection, const void *data, size_t size,
                     struct error *error);

#endif
