/* leases_local.h - what the files of leases share */
#ifndef API_MODEL_LEASES_LOCAL_H
#define API_MODEL_LEASES_LOCAL_H

#include "api/auth/streams.h"
#include "api/model/leases.h"
#include "api/session/agents.h"
#include "base/map.h"

/* A request of the core. `call` is of who waits for a place; once it has one, or was told that
 * there is none now (`is_asked`), it is NULL. */
struct lease {
	struct leases *leases;
	int64_t id, model_id, tenant_id;
	int64_t slot_id, node_id, until_ms; /* slot_id 0: it has no place */
	char *address;
	char key[SLOT_KEY_BYTES_MAX + 1]; /* its own; "": it has none, or that of the slot */
	int64_t wait_ms, lease_ms;        /* lease_ms 0: as configured */
	bool is_asked, awaits_node;       /* awaits_node: it has not said that it holds the key */
	struct request *request;
	struct stream stream; /* while `call` is there */
	struct timer timer;
	struct lease *next, **link;
};

struct leases {
	struct service *service;
	struct loop *loop;
	struct map by_id;
	struct lease *first;
	int64_t last_id;
};

struct lease_wish {
	int64_t model_id, tenant_id, wait_ms, lease_ms;
};
/* Asks the core for a place, and answers. */
void leases_ask(struct leases *leases, struct request *request, const struct lease_wish *wish);
/* Gives it back, and answers. The lease is gone after this. */
void leases_end(struct lease *lease, struct request *request, enum request_end end);

/* Tells the node of its slot its key and until when it holds. False: it has none of its own. */
bool leases_tell_key(struct lease *lease);

/* Answers with the lease as JSON. */
void leases_answer(const struct lease *lease, struct request *request, int status);

#endif
