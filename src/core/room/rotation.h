/* rotation.h - turns among models: a slot that is always busy makes way for one that waits */
#ifndef CORE_ROOM_ROTATION_H
#define CORE_ROOM_ROTATION_H

#include "core/model/replica.h"

/* A slot with requests is never evicted, so steady requests for one model could keep
 * another waiting for ever. Once the oldest request of a model without a slot has
 * waited long enough (rotation_due_ms), slots are closed for it: they take no new
 * requests, and once the last one has ended they may be evicted for that model alone.
 * If the model needs them no more they take requests again. What was closed, and the
 * GPUs that are kept, is volatile like the requests: route_reset() ends both.
 *
 * Closed are, on the node where it costs least, the slots with the least right to stay:
 * idle ones, then those of models with other slots, then those that were ready longest.
 * An idle slot that nobody has asked since then keeps its time to live.
 * A slot is safe until it was ready for `slot_stay_ms`, or for two loads of its model.
 *
 * Of each GPU's time at most `loading` thousandths go into loads that take the place of
 * others: a load puts off the next eviction for a model there until its share of the
 * time has passed. Time without loads counts for LOAD_CREDIT_MS at the most.
 *
 * The GPUs that are nearest to having room are kept for the most urgent model: smaller ones would
 * take what comes free there, and it would wait for ever. Before its turn comes they are at most
 * half of all GPUs. */

#define KEPT_MAX 64 /* GPUs that are kept for models at a time */

struct kept_gpu {
	struct gpu *gpu;
	int64_t model_id;
};

struct rotation {
	int64_t kept[KEPT_MAX]; /* ids of GPUs whose `kept_for` is set */
	int count;
	struct wanting *waiting; /* scratch of rotation_run() */
	size_t capacity;
};

#define TURN_LOADS 3 /* a model waits that many loads, and a slot stays one less */
#define LOAD_CREDIT_MS 60000

/* What loading a slot of the model is expected to take. */
int64_t rotation_load_ms(const struct model *model);
/* When the turn of a model comes that waits and has no slot: early enough for it to be
 * loaded once its oldest request has waited for max(turn_wait_ms, TURN_LOADS loads).
 * INT64_MAX if no request waits. */
int64_t rotation_due_ms(const struct sched *sched, const struct model *model);
/* Until when the slot stays open, whoever waits. */
int64_t rotation_stay_ms(const struct sched *sched, const struct slot *slot);
/* Until when nothing on its GPUs goes for another model. */
int64_t rotation_rest_ms(const struct slot *slot);
/* Whether a slot that may be evicted may go for this model (NULL: for a job) now. */
bool rotation_lets_go(const struct sched *sched, const struct slot *slot,
                      const struct model *model);
/* Loading a slot onto its GPUs took that long, whatever came of it. */
void rotation_loaded(struct sched *sched, const struct slot *slot, int64_t took_ms);

/* In a pass, after what is idle was evicted: opens and closes slots, and keeps GPUs. */
void rotation_run(struct sched *sched);
/* No slot is closed, and no GPU kept. */
void rotation_reset(struct sched *sched);
/* The slots that are closed for the model, and how many of them still serve requests. */
int rotation_closed_for(const struct sched *sched, const struct model *model, int *busy);

#endif
