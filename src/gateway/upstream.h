/* upstream.h - connections to the servers of models: kept, streaming, with back-pressure */
#ifndef GATEWAY_UPSTREAM_H
#define GATEWAY_UPSTREAM_H

#include <uv.h>

#include "gateway/text/answer.h"

/* In the loop's thread alone. Connections are kept for a few seconds after an answer. */
struct upstream;
struct upstream_connection;

enum { UPSTREAM_PIECES_MAX = 12 };

enum upstream_end {
	UPSTREAM_COMPLETE,
	UPSTREAM_REFUSED, /* no connection could be made */
	UPSTREAM_RESET,   /* it ended before a byte of the answer came */
	UPSTREAM_CUT,     /* it ended in the middle of the answer */
	UPSTREAM_GARBLED, /* the answer is no proper HTTP */
};

/* A request. The pieces are sent one after the other and must last until its end. `end` is called
 * once, unless it is canceled; afterwards it may be used again. */
struct upstream_request {
	const char *address; /* http://HOST:PORT */
	/* SHA-256 of the certificate that the server must show, hexadecimal; NULL or empty: it is
	 * asked in the clear. Both are read during upstream_send() alone. */
	const char *certificate;
	struct text pieces[UPSTREAM_PIECES_MAX];
	int piece_count;
	bool keeps_head; /* until its end */
	/* Unless it sets `keeps_head`, the head is gone when it returns. */
	void (*head)(struct upstream_request *request, const struct answer_reader *reader);
	void (*part)(struct upstream_request *request, struct text part);
	void (*end)(struct upstream_request *request, enum upstream_end how, const char *why);

	/* Its own. */
	struct upstream_connection *connection; /* NULL: none, or it has ended */
	bool has_answer;                        /* a byte has come */
	const struct answer_reader *reader;     /* during `end` of one that is complete */
};

/* `flush` sends what was passed on: it is called after every few reads, because libuv may read from
 * thousands of servers before it looks at anything else, and the first would wait for the last. */
struct upstream *upstream_new(uv_loop_t *loop, void (*flush)(void *context), void *context);
/* Closes what is idle; the rest is closed at its end. */
void upstream_stop(struct upstream *upstream);
/* After the loop has run out. */
void upstream_free(struct upstream *upstream);

/* `end` may be called before it returns only for an address that makes no sense. */
void upstream_send(struct upstream *upstream, struct upstream_request *request);
/* Closes its connection at once; nothing is called any more. */
void upstream_cancel(struct upstream_request *request);
/* Reads no further while paused. May be called from `part`; what was read before still comes. */
void upstream_pause(struct upstream_request *request, bool paused);

/* Connections: to be counted. */
size_t upstream_connections(const struct upstream *upstream);

#endif
