/* h2_client.h - an HTTP/2 client for tests, at the other end of a pair */
#ifndef WIRE_TEST_H2_CLIENT_H
#define WIRE_TEST_H2_CLIENT_H

#include "pair.h"

enum { H2_STREAMS_MAX = 1024 };

/* What a stream has received. `reset` is the error code of RST_STREAM, -1 before one. */
struct h2_stream {
	struct buffer body;
	int status, grpc_status; /* -1: not received */
	int64_t reset;
	bool is_closed;
};

/* `streams` is indexed by (stream id - 1) / 2. */
struct h2_client {
	struct pair *pair;
	struct nghttp2_session *session;
	struct body *bodies;
	size_t parsed; /* of pair->answers */
	struct h2_stream streams[H2_STREAMS_MAX];
	bool has_goaway;
};

/* Connects the pair and starts a session. `window` is the initial window of each stream. */
struct h2_client *h2_client_new(struct pair *pair, const struct handler *handler, uint32_t window);
/* Closes the session, not the pair. */
void h2_client_free(struct h2_client *client);

struct h2_request {
	const char *method; /* NULL: GET, or POST for gRPC */
	const char *path;
	const char *grpc_timeout; /* NULL: none */
	bool is_grpc;
	bool is_open;     /* the body continues with h2_client_send */
	struct text body; /* as it is sent, with the prefixes of gRPC */
};
/* Sends a request; its stream id. */
int32_t h2_client_request(struct h2_client *client, const struct h2_request *request);
/* More of an open body. */
void h2_client_send(struct h2_client *client, int32_t id, struct text part, bool is_end);
void h2_client_reset(struct h2_client *client, int32_t id);
void h2_client_ping(struct h2_client *client);
/* Opens the window of a stream and of the connection by this many bytes. */
void h2_client_open_window(struct h2_client *client, int32_t id, int32_t bytes);
/* Runs the loop until nothing more is exchanged. */
void h2_client_run(struct h2_client *client);

struct h2_stream *h2_client_stream(struct h2_client *client, int32_t id);

#endif
