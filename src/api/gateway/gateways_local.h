/* gateways_local.h - what the files of gateways share */
#ifndef API_GATEWAY_GATEWAYS_LOCAL_H
#define API_GATEWAY_GATEWAYS_LOCAL_H

#include "api/auth/streams.h"
#include "api/gateway/gateways.h"
#include "base/map.h"
#include "gateway.pb-c.h"

/* A place of a gateway in a slot: a request of the core. `slot_id` 0: it waits for one. */
struct place {
	struct gateways *gateways;
	struct gateway_peer *peer; /* NULL: a guard, until gateways have reported */
	int64_t id, model_id, slot_id;
	int64_t until_ms; /* that it is held, if it is not renewed */
	int64_t lowered;  /* version of the shares without it; 0: it is in use */
	struct place *next;
};

/* A call of Connect. */
struct gateway_link {
	struct stream stream;
	struct gateways *gateways;
	struct request *request;
	struct gateway_peer *peer; /* NULL until it said hello */
	struct buffer waiting;     /* messages that were not taken: a size and the bytes of each */
};

/* What a gateway wants of a model. */
struct gateway_wish {
	int64_t model_id;
	int64_t wanted, peak; /* places now; and lately, which sinks slowly */
	int64_t have; /* scratch: places that it has or waits for, and is not to give back */
};

/* What a gateway has in flight in a slot. */
struct gateway_occupied {
	int64_t slot_id, requests;
};

/* A gateway that is connected, or was a moment ago. */
struct gateway_peer {
	struct gateways *gateways;
	char *name;
	struct gateway_link *link; /* NULL: away */
	int64_t boot, seen_ms;
	int64_t routes_version, shares_version, tokens_version; /* sent */
	int64_t told_routes, told_shares;                       /* that it goes by */
	uint64_t tokens_hash;
	struct gateway_occupied *occupied; /* slots with requests in flight */
	size_t occupied_count, occupied_capacity;
	struct gateway_wish *wishes;
	size_t wish_count, wish_capacity;
	struct place *places;
	bool shares_dirty, routes_dirty, has_reported;
	struct gateway_peer *next;
};

/* An order to stop a slot that waits for the last request there. */
struct held_stop {
	struct arena arena;
	struct effect effect;
	int64_t slot_id, since_ms;
	struct held_stop *next;
};

struct gateways {
	struct service *service;
	struct loop *loop;
	struct timer tick;
	struct gateway_peer *peers;
	struct map places; /* by id */
	struct place *guards;
	struct held_stop *stops;
	int64_t last_place, version, guarded_until_ms;
	struct text_map counted; /* of struct counted, by NAME/BOOT */
	int64_t parts;           /* what a limit was divided into: gateways_part() */
	int64_t budgets_ms;      /* when budgets were looked at */
	uint64_t budgets_hash;   /* of the tenants whose budget is used up */
	struct text_map known;   /* names of gateways that there were, before they are back */
	struct arena packing;
	bool begun;
};

/* gateways.c */
void gateways_send(struct gateway_link *link, const Gateway__Envelope *envelope);
/* Looks at everything soon. */
void gateways_touch(struct gateways *gateways);

/* gateway_places.c */
/* Asks for what the gateway needs beyond what it has, and takes back what it does not. */
void places_balance(struct gateway_peer *peer);
void places_take_load(struct gateway_peer *peer, const Gateway__Load *load);
void places_tell(struct gateway_peer *peer);
/* Gives all of a list back. */
void places_drop_all(struct place **head);
bool places_are_used(const struct gateway_peer *peer, int64_t slot_id);
/* Holds slots that somebody may be using. */
void places_guard(struct gateways *gateways);
int64_t places_share(const struct gateway_peer *peer, int64_t slot_id);

/* gateway_routes.c */
void routes_tell(struct gateway_peer *peer);
/* Sends tokens if they are others than those it knows. */
void tokens_tell(struct gateway_peer *peer);
void verdict_tell(struct gateway_peer *peer, const Gateway__Question *question);

/* gateway_usage.c */
void usage_take(struct gateway_peer *peer, const Gateway__Usage *usage);
int64_t usage_counted(const struct gateways *gateways, const char *name, int64_t boot);
void usage_load(struct gateways *gateways, const struct kept *keep);
void usage_free(struct gateways *gateways);
/* Whether all of the tenant's own budget for this month is used up. */
bool usage_is_exhausted(const struct gateways *gateways, const struct tenant_record *tenant);
/* Tells gateways when a budget is used up, or a month has begun. */
void usage_watch_budgets(struct gateways *gateways);

/* gateways.c */
/* What of a limit is the part of one gateway: equal parts of those that are connected, at least
 * 1. 0: there is no limit. */
int64_t gateways_part(const struct gateways *gateways, int64_t limit);

#endif
