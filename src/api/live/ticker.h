/* ticker.h - what is told to listeners from time to time: figures, decisions, GPUs */
#ifndef API_LIVE_TICKER_H
#define API_LIVE_TICKER_H

#include "api/read/identity.h"
#include "wire/websocket.h"

struct service;
struct ticker;

enum tick {
	TICK_METRICS = 1,   /* figures of the cluster, every few seconds */
	TICK_DECISIONS = 2, /* decisions, as they are found in the store */
	TICK_GPUS = 4,      /* GPUs whose ledger changed, and measurements, each second */
};

struct ticker *ticker_new(struct service *service);
void ticker_free(struct ticker *ticker);
/* The timer runs while there are listeners. `ticks`: of enum tick. */
void ticker_add(struct ticker *ticker, struct websocket *socket, const struct identity *identity,
                int64_t tenant_id, unsigned ticks);
void ticker_remove(struct ticker *ticker, struct websocket *socket);

#endif
