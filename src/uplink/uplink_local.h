/* uplink_local.h - the inside of the link: what its files share */
#ifndef UPLINK_UPLINK_LOCAL_H
#define UPLINK_UPLINK_LOCAL_H

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>

#include "base/buffer.h"
#include "uplink/uplink.h"
#include "wire/text/grpc_frame.h"

enum uplink_stage {
	UPLINK_WAITING,
	UPLINK_RESOLVING,
	UPLINK_CONNECTING,
	UPLINK_SECURING,
	UPLINK_OPEN
};

/* One try to connect. It outlives its end until libuv has closed its socket. */
struct uplink_connection {
	struct uplink *link; /* NULL: given up */
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

struct uplink {
	struct uplink_settings settings;
	char **addresses;
	size_t address_count, next_address;
	SSL_CTX *tls;
	enum uplink_stage stage;
	struct uplink_connection *connection;
	uv_timer_t retry;
	bool dirty; /* there is something to flush */
	int64_t wait_ms;
	uint64_t seed;
	char host[256], port[16];
};

/* uplink_http2.c */
bool uplink_http2_begin(struct uplink *link);
/* Bytes from the scheduler, in clear. False: the connection has ended, with a reason. */
bool uplink_http2_receive(struct uplink *link, const void *data, size_t size, struct error *error);
/* Hands what the session wants to send to `uplink_write`. */
bool uplink_http2_flush(struct uplink *link, struct error *error);
void uplink_http2_end(struct uplink_connection *connection);

/* uplink_tls.c */
bool uplink_tls_new(struct uplink *link, struct error *error);
bool uplink_tls_begin(struct uplink *link, struct error *error);
/* Bytes from the socket. What was in them goes to the session. */
bool uplink_tls_receive(struct uplink *link, const void *data, size_t size, struct error *error);
bool uplink_tls_send(struct uplink *link, const void *data, size_t size, struct error *error);

/* uplink.c: to the socket. */
void uplink_write(struct uplink *link, const void *data, size_t size);
/* There is something to flush. */
void uplink_touch(struct uplink *link);
/* The connection is ready for HTTP/2. */
bool uplink_ready(struct uplink *link, struct error *error);

#endif
