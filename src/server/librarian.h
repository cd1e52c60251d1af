/* librarian.h - a thread that reads what is stored, so that nobody else waits for the disk */
#ifndef SERVER_LIBRARIAN_H
#define SERVER_LIBRARIAN_H

#include "server/delivery.h"
#include "store/store.h"

struct librarian;

/* Connects when something is asked for the first time, and again after it failed. */
struct librarian *librarian_start(const struct store_options *options, struct delivery *delivery);
/* Calls request->read with a store that does not lead. The answer goes by the delivery. */
void librarian_ask(struct librarian *librarian, struct engine_request *request);
/* Finishes what it has begun. NULL is allowed. */
void librarian_stop(struct librarian *librarian);

#endif
