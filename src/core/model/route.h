/* route.h - requests: which slot serves them, and their leases */
#ifndef CORE_MODEL_ROUTE_H
#define CORE_MODEL_ROUTE_H

#include "base/heap.h"
#include "base/map.h"
#include "core/model/slot.h"
#include "core/record/effects.h"

/* A request is in flight (it holds a place in a slot: a lease) or it waits in
 * the queue of its model. Requests are volatile: nothing of them is a record,
 * and routing to a warm slot writes none, allocates nothing in the steady state,
 * and leaves the stored time as it is.
 *
 * What a loaded core equals: COMMAND_RESET_REQUESTS says that all routers restart.
 * Every request ends, each with one ROUTE_ENDED; all ready slots count as last
 * used at that time, and are held for HOLD_MS, so that what is in flight there can be told again
 * before anything is evicted or stops with its drained node, and their records say so; the clock
 * is written. A core that
 * is loaded from the records at any moment has no requests; it behaves exactly
 * like the one that wrote them, if that was given COMMAND_RESET_REQUESTS as its last command.
 * COMMAND_START resets requests too, so that a scheduler that begins from what is stored counts no
 * slot as idle for longer than it can know.
 *
 * Among the slots of a model that have a place the best is the one with the
 * fewest requests in flight, then on the node with the fewest, then the one used
 * last, then the oldest. A lease is given back exactly once: when the request is
 * done, whatever came of it; when it expires; when its slot is gone, and then
 * the request waits again, before those that came after it, or goes to another
 * slot at once. */
struct request_entry {
	int64_t id, tenant_id;
	struct model *model;
	struct slot *slot;                  /* in flight there; NULL: waits */
	struct request_entry *next, *back;  /* in its model's queue, or among its slot's leases */
	int64_t number;                     /* order of arrival */
	int64_t since_ms;                   /* when it arrived */
	int64_t request_lease_ms, until_ms; /* in flight: expires then, if not renewed */
	int32_t heap_index;                 /* in routes.leases; -1 */
};

/* Who has not been heard of for that long is lost. */
#define HOLD_MS 10000

struct routes {
	struct map by_id;             /* all requests */
	struct heap leases;           /* those in flight, by until_ms then arrival */
	struct request_entry *spare;  /* used again */
	int64_t last_number, waiting; /* arrivals so far; requests that wait, in all */
};

void routes_init(struct routes *routes);
void routes_free(struct routes *routes);

/* Commands. A request goes to a warm slot, or waits; it is refused (in an
 * effect, with the reason) when its model could never be loaded, was removed,
 * or is not for the tenant; the command itself fails only when it makes no
 * sense: an id that is in use, a model that is not known. One that names a slot is in flight
 * there, as after a restart, or the command fails. */
bool route_request(struct sched *sched, const struct request_command *request, struct error *error);
bool route_done(struct sched *sched, int64_t request_id, enum request_end end, struct error *error);
bool route_renew(struct sched *sched, int64_t request_id, int64_t lease_ms, struct error *error);
void route_reset(struct sched *sched);

/* Gives places to waiting requests of the model, the oldest first. */
void route_serve(struct sched *sched, struct model *model);
/* The slot takes no more requests: those in flight there wait again or go elsewhere. */
void route_evacuate(struct sched *sched, struct slot *slot, const char *reason);
/* Ends all requests of the model. */
void route_end_all(struct sched *sched, struct model *model, enum route_outcome outcome,
                   const char *reason);
/* Ends what was not renewed in time. */
void route_expire(struct sched *sched);

/* The order of a model's slots that have a place. It depends on what else their
 * nodes do, so that keeping it costs more than finding the first of a few: the
 * heap is in order only where a model has more than ROUTE_SCAN that can be used. */
#define ROUTE_SCAN 16
bool route_before(const void *a, const void *b);

/* Panics unless all counts equal a recount. */
void routes_check(const struct sched *sched);

#endif
