/* leases_local.h - what the files of leases share */
#ifndef API_MODEL_LEASES_LOCAL_H
#define API_MODEL_LEASES_LOCAL_H

#include "api/model/leases.h"
#include "base/map.h"

/* A request of the core. `exchange` is of who waits for a place; once it has one, or was
 * told that there is none now (`is_asked`), it is NULL. */
struct lease {
	struct leases *leases;
	int64_t id, model_id, tenant_id;
	int64_t slot_id, node_id, until_ms; /* slot_id 0: it has no place */
	char *address;
	int64_t wait_ms, lease_ms; /* lease_ms 0: as configured */
	bool is_asked;
	struct exchange *exchange;
	struct stream stream; /* while `exchange` is there */
	struct timer timer;
	struct lease *next, **link;
};

struct lease_ask {
	struct ask ask; /* first: one pointer is the other */
	struct leases *leases;
	struct exchange *exchange;
	int64_t lease_id, lease_ms;
	struct lease_ask *next, *next_of_all;
};

struct leases {
	struct desk *desk; /* gone before this is freed */
	struct loop *loop;
	const struct roster *roster;
	struct streams *streams;
	struct map by_id;
	struct lease *first;
	struct lease_ask *spare, *all; /* all: also those that are under way */
	int64_t last_id;
};

struct lease_wish {
	int64_t model_id, tenant_id, wait_ms, lease_ms;
	const struct identity *identity; /* of who waits */
};
/* Asks the core for a place; answers and ends the exchange. */
void leases_ask(struct leases *leases, struct exchange *exchange, const struct lease_wish *wish);
/* Gives it back; answers and ends the exchange. The lease is gone after this. */
void leases_end(struct lease *lease, struct exchange *exchange, enum request_end end);

struct lease_ask *leases_take_ask(struct leases *leases, enum command_kind kind,
                                  void (*done)(struct ask *ask));
void leases_give_ask(struct lease_ask *ask);

/* Answers with the lease as JSON, or with an error. */
void leases_answer(const struct lease *lease, struct exchange *exchange, int status);
void leases_fail(struct exchange *exchange, const struct error *error);

#endif
