/* serve_server.h - servers of models on GPUs, by the lengths of their steps */
#ifndef SIM_SERVE_SERVE_SERVER_H
#define SIM_SERVE_SERVE_SERVER_H

#include "sim/serve/serve_trace.h"

enum { SERVER_BATCH_MAX = 64 };

/* A request in a server. */
struct served {
	int64_t input, output; /* tokens */
	int64_t tokens;        /* of the answer so far */
	int64_t booked;        /* of the server's KV cache; 0: it waits there */
	int64_t first_us, last_us;
	size_t next; /* in the server's queue */
};

/* A server: it works in steps, like vLLM. A step computes the prompts that were let in, at most
 * PREFILL_TOKENS of them, or else the next token of every running request. A request is let in
 * when the KV cache has room for its prompt and for 1.3 times the mean answer. */
struct server {
	const struct serve_kind *kind;
	int64_t kv_tokens, kv_used;
	double mean_output;
	size_t queue_first, queue_last; /* requests that wait here; SIZE_MAX: none */
	size_t running[SERVER_BATCH_MAX];
	int count;
	bool prefills; /* the step under way */
	int prefilled; /* the first of `running` whose prompts it computes, from there on */
};

void server_begin(struct server *server, const struct serve_kind *kind, double kv_gb,
                  double mean_output);
void server_add(struct server *server, struct served *all, size_t request);
bool server_has_work(const struct server *server);
/* Begins a step: how long it takes, in us. */
int64_t server_step(struct server *server, struct served *all);
/* It has ended at that time. Requests that have their last token are left: how many, in `ended`,
 * which has room for SERVER_BATCH_MAX. */
int server_end_step(struct server *server, struct served *all, int64_t now_us, size_t *ended);

#endif
