/* names.h - models, slots and tenants as the scheduler last said, and what names mean */
#ifndef GATEWAY_STATE_NAMES_H
#define GATEWAY_STATE_NAMES_H

#include "base/map.h"
#include "base/text.h"
#include "gateway.pb-c.h"
#include "gateway/state/fair.h"
#include "gateway/state/prefix.h"
#include "gateway/state/rate.h"
#include "gateway/state/speed.h"

enum slot_state { SLOT_IS_LOADING, SLOT_IS_READY, SLOT_IS_CLOSING, SLOT_IS_ASLEEP };

/* A slot. It stays while requests are there, even if the scheduler does not name it any more;
 * then it is closing. */
struct gateway_slot {
	int64_t id;
	struct gateway_model *model;
	char *address, *key; /* http://HOST:PORT; empty: none */
	char *certificate;   /* that it shows: SHA-256, hexadecimal; empty: no TLS */
	enum slot_state state;
	int64_t share, ready_ms;  /* ready_ms: when it is expected to be */
	int64_t requests, tokens; /* in flight there, ours */
	int64_t ahead;     /* tokens that a new request waits for: of prompts that nobody there has
	                      answered yet, and of answers */
	int64_t computed;  /* tokens that it was sent and had not cached, in all */
	int prefix_slot;   /* in the model's prefixes; -1: not there */
	int64_t failed_ms; /* a connection was refused then; 0: none was */
	bool named;        /* in the last routes */
};

/* A model. `said` is the scheduler's. */
struct gateway_model {
	int64_t id;
	const Gateway__Model *said; /* NULL: it is gone, and the last slots with it */
	struct fair queue;
	struct speed speed;
	struct gateway_model *next_hungry; /* of those where something waits */
	bool hungry;
	struct gateway_slot **slots;
	size_t slot_count, slot_capacity;
	struct prefixes *prefixes; /* of its slots; NULL: there was one slot at a time so far */
};

/* Limits of a tenant or of a token, and what is used of them. */
struct gateway_limits {
	struct rate requests, tokens;
	int64_t streams, streams_most; /* open now; 0: no limit */
};

struct gateway_tenant {
	int64_t id;
	const Gateway__Tenant *said;
	struct gateway_limits limits;
	int64_t waiting; /* its requests in all queues */
};

struct names {
	Gateway__Routes *routes;
	struct map models, slots, tenants; /* by id; tenants by id + 1 */
	struct gateway_model **all_models;
	size_t model_count, model_capacity;
	struct gateway_slot **all_slots;
	size_t slot_count, slot_capacity;
	struct text_map by_name; /* name, alias or model-N to struct name_list */
};

void names_free(struct names *names);
/* Replaces what is known; takes `routes` over. */
void names_take(struct names *names, Gateway__Routes *routes, int64_t now_ms);
/* Forgets slots that are not named and have no requests. */
void names_settle(struct names *names);

struct gateway_model *names_model(const struct names *names, int64_t id);
struct gateway_slot *names_slot(const struct names *names, int64_t id);
/* Made where it is not known: every tenant may have limits. */
struct gateway_tenant *names_tenant(struct names *names, int64_t id);

/* Whether a tenant (0: an administrator) may use the model. */
bool names_may_use(const struct names *names, const struct gateway_model *model, int64_t tenant_id);
/* The model that a name means for the tenant: its name, an alias or its id, its own before those of
 * others; then the part behind the last colon may be an adapter. NULL: there is none. `several`:
 * the name means more than one. */
struct gateway_model *names_find(struct names *names, const char *name, int64_t tenant_id,
                                 const char **adapter, bool *several);
void limits_set(struct gateway_limits *limits, const Gateway__Limits *said, int64_t now_ms);

#endif
