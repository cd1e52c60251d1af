/* program.h - what the parts of gpu-gateway share */
#ifndef GATEWAY_PROGRAM_H
#define GATEWAY_PROGRAM_H

#include "gateway/state/gateway.h"
#include "gateway/state/spool.h"
#include "gateway/upstream.h"
#include "wire/wire.h"

struct passage;
struct session;

struct program_settings {
	const char *name;
	const char *listen;     /* an address, numeric */
	int64_t port;           /* 0: any */
	const char *state;      /* directory of the spool */
	int64_t body_bytes;     /* of a request, at most */
	int64_t buffered_bytes; /* of all that wait */
	int64_t connections;
	int64_t queue_ms;      /* how long a request waits at most */
	int64_t keep_alive_ms; /* a waiting stream gets a comment after this time, repeatedly */
	int64_t stop_ms;       /* streams may take so long to end when it is told to stop */
	const char *cert_file, *key_file, *ca_file; /* of the listener; NULL: clear text */
	const char *url; /* where clients reach it; NULL: at the listener */
};

/* A histogram in milliseconds, for metrics. */
enum { TIMES_BUCKETS = 16 };
struct times {
	int64_t buckets[TIMES_BUCKETS + 1], count, sum_ms;
};
void times_add(struct times *times, int64_t ms);
/* Upper bounds of the buckets. */
extern const int64_t times_bounds_ms[TIMES_BUCKETS];

struct figures {
	struct times queue, first_token, between_tokens, whole;
	int64_t answers[6]; /* by hundreds of the status */
	int64_t prompt_tokens, cached_tokens, completion_tokens;
	int64_t bytes_in, bytes_out, cut;
};

enum { PROGRAM_URL_MAX = 256 };

struct program {
	struct program_settings settings;
	struct loop *loop;
	struct gateway *gateway;
	struct spool *spool;
	struct upstream *upstream;
	struct session *session; /* NULL: none, the routes are from a file */
	struct handler handler;
	struct figures figures;
	struct passage *passages, *spare; /* those that are open; for later */
	int64_t open_count;
	struct buffer scratch;     /* of one function at a time */
	char url[PROGRAM_URL_MAX]; /* that the scheduler is told */
	uint64_t id_seed;
	bool is_stopping, is_loopback;
};

static inline int64_t program_now_ms(const struct program *program)
{
	return loop_now_ms(program->loop);
}

/* passage.c */
/* The listener's handler. */
void passage_head(struct exchange *exchange);
void passage_request(struct exchange *exchange);
/* Sends what has got a place: for the gateway. */
void passage_send(void *context, struct gateway_call *call);
/* The scheduler has said whether a token holds, or cannot be asked: those who waited for it
 * continue.
 */
void passage_verdict(struct program *program, struct text token);
/* Refuses all that wait for a verdict: the scheduler is gone. */
void passage_no_verdicts(struct program *program);
void passages_free(struct program *program);

/* session.c: asks the scheduler about a token; false: it cannot be asked. */
bool session_ask(struct session *session, struct text token);
/* Something happened that it is to know soon. */
void session_touch(struct session *session);

/* own.c: what the gateway answers by itself. */
struct endpoint;
void own_answer(struct program *program, struct exchange *exchange, const struct endpoint *endpoint,
                struct text rest, const struct gateway_asker *asker);

#endif
