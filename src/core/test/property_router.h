/* property_router.h - requests as a router sees them: each is answered, and given back once */
#ifndef CORE_TEST_PROPERTY_ROUTER_H
#define CORE_TEST_PROPERTY_ROUTER_H

#include "core/record/command.h"
#include "core/record/effects.h"
#include "core/sched.h"
#include "core/test/property_keeper.h"

/* A request that is not over. */
struct tracked {
	int64_t id, model_id, number;
	int64_t slot_id; /* in flight there; 0: waits, or not answered yet */
	int64_t until_ms;
	bool answered;
};

/* When a slot was last used: a request began or ended. */
struct slot_use {
	int64_t slot_id, active, used_ms;
};

struct router {
	struct tracked *at; /* in no order */
	size_t count, capacity;
	struct slot_use *uses; /* of slots that are kept and were used since their reset */
	size_t use_count, use_capacity;
	int64_t last_number;
	int64_t granted, refused, expired, moved; /* so far; moved: lost their slot */
};

void router_free(struct router *router);

/* The state of the slot as requests see it. */
struct slot_use router_slot(const struct router *router, int64_t slot_id);

/* Follows an applied command with the records after it, and panics if a request
 * is not answered, or answered twice, or lost, or sent where there is no place,
 * or before one that came earlier. */
void router_follow(struct router *router, const struct keeper *keeper,
                   const struct command *command, const struct effects *effects, int64_t now_ms);
/* Panics unless the core counts the same requests. */
void router_compare(const struct router *router, const struct keeper *keeper,
                    const struct sched *sched);

#endif
