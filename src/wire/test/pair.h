/* pair.h - a loop and a client in one thread, joined by a pair of sockets */
#ifndef WIRE_TEST_PAIR_H
#define WIRE_TEST_PAIR_H

#include "base/buffer.h"
#include "wire/wire.h"

/* The loop only runs within pair_run. `answers` is what the client was sent so far. */
struct pair {
	struct loop *loop;
	int client; /* -1: closed */
	struct buffer answers;
	bool is_ended; /* the server has closed its side */
};

struct pair pair_new(const struct limits *limits);
/* Connects the client to a handler; an old connection is closed. */
void pair_connect(struct pair *pair, const struct handler *handler);
/* Sends bytes and has the loop deal with them. */
void pair_send(struct pair *pair, struct text bytes);
/* Has the loop deal with what there is, and collects answers. */
void pair_run(struct pair *pair);
/* The client closes its side, or goes altogether. */
void pair_shut(struct pair *pair);
/* Goes without a check that nothing is left: the handler may still hold exchanges. */
void pair_hang_up(struct pair *pair);
void pair_close(struct pair *pair);
void pair_free(struct pair *pair);

/* A handler that echoes at once what is asked for at /now, keeps what is asked for at
 * /later until pair_answer_kept, streams bodies at /stream, refuses in `head` at /refuse,
 * and echoes WebSocket and gRPC messages. */
extern const struct handler pair_handler;
/* Answers what was kept, the last first. */
void pair_answer_kept(void);

#endif
