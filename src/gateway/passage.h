/* passage.h - a request on its way through: what its files share */
#ifndef GATEWAY_PASSAGE_H
#define GATEWAY_PASSAGE_H

#include "gateway/program.h"
#include "gateway/reply.h"
#include "gateway/text/body.h"
#include "gateway/text/meter.h"

enum { PASSAGE_ID_MAX = 64 };

/* A request that is passed on, from when its body is there to when both the client and the server
 * are done with it. */
struct passage {
	struct gateway_call call; /* first: one pointer is the other */
	struct upstream_request upstream;
	struct program *program;
	struct exchange *exchange; /* NULL: it is answered, or the client is gone */
	const struct endpoint *endpoint;
	struct passage *next, **link;
	struct text token; /* of the exchange */
	struct body_scan scan;
	struct body_edits edits;
	uint64_t *blocks;      /* of the prompt; NULL: there are none */
	struct buffer head;    /* of the request to the server */
	struct buffer answer;  /* of an answer that is passed on whole */
	struct buffer waiting; /* a part that the client has not taken */
	struct meter meter;
	struct spool_row *row;
	struct timer timer;
	int64_t came_ms, first_ms, last_ms; /* first and last part of the answer */
	int64_t next_sign_ms;               /* of life, for a client that waits */
	int64_t told_tokens;                /* of the answer, in the speed of its model */
	int status;                         /* that the server answered */
	char id[PASSAGE_ID_MAX];
	bool is_asking; /* waits for a verdict */
	bool is_called; /* the gateway has it */
	bool is_sent;   /* the server has it */
	bool is_begun;  /* the client has a status */
	bool is_whole;  /* the answer is collected and passed on with its length */
	bool is_event;  /* the answer is of the server, but goes as an event: see is_begun */
	bool is_cut;    /* the client or the server went */
	bool wants_end; /* the server is done, the client has not taken everything */
};

/* Refuses it, before or after its answer has begun, and ends it. */
void passage_refuse(struct passage *passage, const struct refusal *refusal);
/* Counts what it used and gives its place back, before the last byte goes to the client. */
void passage_settle(struct passage *passage);
/* Ends an answer that was passed on, and the passage. */
void passage_finish(struct passage *passage);
/* Ends it: nobody is there any more that waits for it. */
void passage_end(struct passage *passage);
/* Writes the head of the request to the server and sends it. */
void passage_start(struct passage *passage);
/* Headers of every answer. */
size_t passage_headers(struct passage *passage, struct header *headers, struct buffer *texts);

static inline struct program *passage_program(const struct passage *passage)
{
	return passage->program;
}

#endif
