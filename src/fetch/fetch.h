/* fetch.h - requests to other servers, on libcurl
 *
 * For clients whose speed does not matter: gpu-cli, health checks, webhooks. Every request has
 * a time limit, verifies certificates by name, follows no redirects, and goes through the proxy
 * that the environment names unless the server is on this machine. */
#ifndef FETCH_FETCH_H
#define FETCH_FETCH_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

struct sockaddr;

/* A moment of the monotonic clock, in milliseconds, after which requests are given up; 0: there
 * is none. Another thread may set it at any time. */
typedef _Atomic int64_t fetch_end_ms;

/* Keeps OpenSSL from freeing its tables when the process exits: a thread that nobody waits for may
 * still be in a request then. Called first in main(), before anything uses OpenSSL. */
void fetch_outlive_exit(void);

/* A request. Texts belong to the caller. */
struct fetch_request {
	const char *method;         /* NULL: GET */
	const char *url;            /* http:// or https:// */
	const char *server;         /* what errors call it, such as "the service at http://HOST" */
	const char *const *headers; /* "Name: value", the last one NULL; NULL: none */
	const char *body;           /* NULL: none */
	size_t body_size;
	const char *user_agent;
	const char *ca_file;        /* trusted certificates; NULL: the system's */
	int64_t connect_ms;         /* time limit to connect */
	int64_t total_ms;           /* time limit of the whole request; 0: none */
	size_t answer_bytes;        /* largest body; 0: any */
	bool is_direct;             /* uses no proxy */
	const fetch_end_ms *end_ms; /* NULL: never */
	/* Refuses private addresses (ERROR_FORBIDDEN) before a connection is made; NULL: none. */
	bool (*allows)(void *context, const struct sockaddr *address);
	/* Takes the body as it comes; NULL: it is kept in the answer. */
	void (*part)(void *context, const char *data, size_t size);
	void *context;
};

/* The answer. Freed with fetch_answer_free. */
struct fetch_answer {
	int status; /* 0: the headers have not come yet */
	struct buffer body;
};

void fetch_answer_free(struct fetch_answer *answer);

/* True if an address belongs to this machine, to a private network, or to no network at all. */
bool fetch_is_private(const struct sockaddr *address);
/* True if a host is written as such an address, or is "localhost". A name that resolves to one
 * is only found when a connection is made. */
bool fetch_is_private_host(const char *host);

/* Keeps connections open between requests. Used by one thread at a time. */
struct fetcher;

struct fetcher *fetcher_new(void);
void fetcher_free(struct fetcher *fetcher);

/* Sends the request and waits for all of the answer. True: an answer came, whatever its status. */
bool fetcher_ask(struct fetcher *fetcher, const struct fetch_request *request,
                 struct fetch_answer *answer, struct error *error);

/* An answer that comes over time. */
struct fetch_stream;

enum fetch_state { FETCH_RUNS, FETCH_COMPLETE, FETCH_FAILED };

/* Connects and sends the request; request and answer stay the caller's until fetch_close. The
 * body is handed to `part` by fetch_advance. NULL with a reason. */
struct fetch_stream *fetch_open(const struct fetch_request *request, struct fetch_answer *answer,
                                struct error *error);
/* Takes what has come, without waiting. */
enum fetch_state fetch_advance(struct fetch_stream *stream, struct error *error);
/* Waits up to `most_ms` for something to come. A signal ends the wait. */
void fetch_wait(struct fetch_stream *stream, int64_t most_ms);
/* To poll for reading. */
int fetch_descriptor(const struct fetch_stream *stream);
void fetch_close(struct fetch_stream *stream);

/* A bare connection to a server, through proxy and TLS, for a protocol of the caller's own. */
struct fetch_tunnel;

/* Only the URL's scheme, host and port matter. NULL with a reason. */
struct fetch_tunnel *fetch_tunnel(const struct fetch_request *request, struct error *error);
/* Sends all of it, within `most_ms`. */
bool fetch_tunnel_send(struct fetch_tunnel *tunnel, const void *data, size_t size, int64_t most_ms);

enum { FETCH_TUNNEL_ENDED = 0, FETCH_TUNNEL_FAILED = -1, FETCH_TUNNEL_WAITS = -2 };
/* Receives what has come: the number of bytes, or one of the above. Waits up to `most_ms` for
 * the first byte; a signal ends the wait. */
long fetch_tunnel_receive(struct fetch_tunnel *tunnel, void *data, size_t size, int64_t most_ms);
/* To poll for reading. Bytes may be waiting inside even if it is not readable. */
int fetch_tunnel_descriptor(const struct fetch_tunnel *tunnel);
void fetch_tunnel_close(struct fetch_tunnel *tunnel);

#endif
