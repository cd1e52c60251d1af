/* serve_gateway.h - the state machine of a gateway, between requests of a trace and the core
 *
 * The gateway and the core have a `slot_state` each, so what includes the gateway stands behind
 * this header. */
#ifndef SIM_SERVE_SERVE_GATEWAY_H
#define SIM_SERVE_SERVE_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct serve_gateway;

enum { SERVE_EXPECTED_ANSWER = 256 }; /* tokens that the gateway charges until it knows */

enum serve_slot_state { SERVE_SLOT_LOADING, SERVE_SLOT_READY, SERVE_SLOT_CLOSING };

struct serve_route {
	int64_t slot_id, model_id, share;
	enum serve_slot_state state;
};

/* Called when a request has got a place in a slot. */
typedef void serve_send(void *context, size_t request, int64_t slot_id);

struct serve_gateway_setup {
	size_t requests; /* how many there will be */
	const int64_t *model_ids;
	size_t models;
	size_t tenants;         /* besides tenant 0, who asks where nobody is named */
	const int64_t *weights; /* of tenants 1 and on, in thousandths; NULL: all alike */
	int64_t block_tokens;   /* of a block of a prompt, and how many a slot has cached; 0: the */
	int slot_blocks;        /* gateway's own */
	serve_send *send;
	void *context;
};

struct serve_gateway *serve_gateway_new(const struct serve_gateway_setup *setup);
void serve_gateway_free(struct serve_gateway *gateway);
/* All slots that there are, in place of what was said before. */
void serve_gateway_routes(struct serve_gateway *gateway, const struct serve_route *routes,
                          size_t count, int64_t now_ms);
struct serve_asked {
	int64_t model_id;
	size_t tenant;          /* 0, or from 1 on */
	int64_t prompt, answer; /* tokens; answer 0: nobody says how many */
	const uint64_t *blocks; /* of the prompt, until the request ends; NULL: unknown */
	int block_count;
};

/* False: it is refused. */
bool serve_gateway_ask(struct serve_gateway *gateway, size_t request,
                       const struct serve_asked *asked, int64_t now_ms);
/* Gives places to those who are next. */
void serve_gateway_serve(struct serve_gateway *gateway, int64_t now_ms);
/* Its first token has come. */
void serve_gateway_begun(struct serve_gateway *gateway, size_t request);
/* The greatest difference of counters, in tokens of weight one, between two tenants that wait. */
int64_t serve_gateway_spread(const struct serve_gateway *gateway);
void serve_gateway_finish(struct serve_gateway *gateway, size_t request, int64_t prompt,
                          int64_t answer, int64_t now_ms);

#endif
