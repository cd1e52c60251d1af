/* property_checks.h - what must always hold, judged by records and effects alone */
#ifndef CORE_TEST_PROPERTY_CHECKS_H
#define CORE_TEST_PROPERTY_CHECKS_H

#include "core/record/command.h"
#include "core/record/effects.h"
#include "core/test/property_keeper.h"
#include "core/test/property_router.h"

/* All of these panic with what is wrong. They know nothing of the inside of the
 * core: what they compare is recounted from the records that it wrote. */

/* What tenants hold, by their place in the keeper's table. */
struct holdings {
	struct holding {
		int64_t tenant_id;
		struct amounts held, fixed;
	} * at;
	size_t count, capacity;
};

void holdings_count(struct holdings *holdings, const struct keeper *keeper);
void holdings_free(struct holdings *holdings);
/* Whether nobody holds more than it may, unless it held as much before. */
void check_bounds(const struct keeper *keeper, const struct holdings *before,
                  const struct holdings *after);

/* Checks that this command may have each of the effects, and that they follow from the records:
 * only passes grant rights, rights leave the ledger only when their node confirms it or is
 * given up, finished jobs stay finished, and nothing is lost. To be called before the keeper
 * applies them. */
void check_effects(const struct keeper *keeper, const struct command *command,
                   const struct effects *effects);

/* The memory invariant for all grants, with the records after the command: each GPU and node
 * has the capacity for everything on it, is open, and matches the request; gangs and splits
 * are complete. Reservations up to `last_id` were there before. */
void check_grants(const struct keeper *keeper, const struct command *command,
                  const struct effects *effects, int64_t last_id);

/* property_slots.c. Whether slots, models and reservations fit together, and no
 * GPU has two loads at once. */
void check_slots(const struct keeper *keeper);
/* Whether all that a pass evicts is idle beyond its time, not pinned, and without
 * requests. With the records and requests as they were before the command. */
void check_evictions(const struct keeper *keeper, const struct router *router,
                     const struct command *command, const struct effects *effects, int64_t now_ms);
/* Whether models that gained or lost a slot are within their replicas; after. */
void check_replicas(const struct keeper *keeper, const struct command *command,
                    const struct effects *effects, int64_t last_id);
/* MiB on each GPU of a split, by what people put; 0: not allowed. */
int64_t model_each_mib(const struct model_record *model, int64_t count);
/* Whether the slot has the parts that its model wants. */
void check_slot_parts(const struct keeper *keeper, const struct reservation_record *right);
/* Whether an order says what was decided. */
void check_load(const struct keeper *keeper, const struct load_order *order);

/* Slots that have a right with this command, and had none: those that were not
 * there, and claims. To be called before the keeper applies the effects. */
struct id_set {
	int64_t *at;
	size_t count, capacity;
};
void new_rights(struct id_set *set, const struct keeper *keeper, const struct effects *effects);
/* The memory invariant for these, after the command. */
void check_new_rights(const struct id_set *set, const struct keeper *keeper, int64_t last_id);

/* Whether jobs, tasks and reservations fit together. After a pass, also whether
 * every gang is whole, but for those in their time of grace. */
void check_jobs(const struct keeper *keeper, bool after_pass);

#endif
