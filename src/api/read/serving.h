/* serving.h - what gateways say about models: how they answer, and who waits */
#ifndef API_READ_SERVING_H
#define API_READ_SERVING_H

#include <stdint.h>

#include "gateway.pb-c.h"

/* In the loop's thread alone. Zero-initialized, there are no gateways. */
struct serving {
	struct serving_gateway *gateways;
};

enum { SERVING_WAITING_MAX = 32 };

/* A tenant that waits. */
struct serving_waiting {
	int64_t tenant_id; /* 0: administrators */
	int64_t requests, oldest_ms, tokens;
};

/* A model, over all gateways, in the last minute. Times are -1 where there is none. */
struct serving_model {
	int64_t answers; /* streams that began */
	int64_t first_token_p50_ms, first_token_p99_ms;
	int64_t tokens_per_1000s;
	int64_t oldest_wait_ms;
	struct serving_waiting waiting[SERVING_WAITING_MAX]; /* the longest first */
	int waiting_count;
};

/* A gateway is connected. `url`: where clients reach it; what is no address is not kept. */
void serving_hear_hello(struct serving *serving, const char *name, const char *url);
void serving_hear_load(struct serving *serving, const char *name, const Gateway__Load *load);
/* It is not connected any more. */
void serving_forget(struct serving *serving, const char *name);
void serving_free(struct serving *serving);

void serving_look(const struct serving *serving, int64_t model_id, struct serving_model *seen);
/* Requests that gateways have in flight in a slot. */
int64_t serving_in_slot(const struct serving *serving, int64_t slot_id);
/* The next address after `after`, which this gave (NULL: the first); NULL: there is none. */
const char *serving_url(const struct serving *serving, const char *after);

#endif
