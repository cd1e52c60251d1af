/* link_local.h - the inside of the link: what its files share */
#ifndef AGENT_LINK_LOCAL_H
#define AGENT_LINK_LOCAL_H

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>

#include "agent/link.h"
#include "wire/grpc_frame.h"

enum link_stage { LINK_WAITING, LINK_RESOLVING, LINK_CONNECTING, LINK_SECURING, LINK_OPEN };

/* One try to connect. It outlives its end until libuv has closed its socket. */
struct connection {
	struct link *link; /* NULL: given up */
	uv_tcp_t socket;
	uv_getaddrinfo_t resolve;
	uv_connect_t connect;
	bool resolving, opened, closing; /* of what libuv still has */
	SSL *ssl;
	nghttp2_session *session;
	int32_t stream;
	struct buffer waiting; /* messages that the stream has not taken */
	size_t waiting_from;
	bool deferred; /* the stream waits for something to send */
	struct grpc_frame_reader frames;
	int64_t http_status;
	char grpc_status[16], grpc_message[128];
};

struct link {
	struct link_settings settings;
	char **addresses;
	size_t address_count, next_address;
	SSL_CTX *tls;
	enum link_stage stage;
	struct connection *connection;
	uv_timer_t retry;
	bool dirty; /* there is something to flush */
	int64_t wait_ms;
	uint64_t seed;
	char host[256], port[16];
};

/* link_http2.c */
bool link_http2_begin(struct link *link);
/* Bytes from the scheduler, in clear. False: the connection is over, with a reason. */
bool link_http2_receive(struct link *link, const void *data, size_t size, struct error *error);
/* Hands what the session wants to send to `link_write`. */
bool link_http2_flush(struct link *link, struct error *error);
void link_http2_end(struct connection *connection);

/* link_tls.c */
bool link_tls_new(struct link *link, struct error *error);
bool link_tls_begin(struct link *link, struct error *error);
/* Bytes from the socket. What was in them goes to the session. */
bool link_tls_receive(struct link *link, const void *data, size_t size, struct error *error);
bool link_tls_send(struct link *link, const void *data, size_t size, struct error *error);

/* link.c: to the socket. */
void link_write(struct link *link, const void *data, size_t size);
/* There is something to flush. */
void link_touch(struct link *link);
/* The connection is ready for HTTP/2. */
bool link_ready(struct link *link, struct error *error);

#endif
