/* delivery.h - what has become durable, on its way to the loop's thread */
#ifndef SERVER_DELIVERY_H
#define SERVER_DELIVERY_H

#include <pthread.h>

#include "api/engine/engine_port.h"

/* A queue from the engine's threads to the loop's thread. Everything that arrives while the loop is
 * busy is delivered together: there is one post for any number of batches. */
struct delivery;

/* The engine must last as long, and so must its loop until delivery_free. */
struct delivery *delivery_new(struct engine_port *port);
/* After the loop has ended; answers that were not delivered are lost. */
void delivery_free(struct delivery *delivery);

/* Its orders, routes and events, then the answers to the requests that are its cookies. */
void delivery_batch(struct delivery *delivery, const struct batch *batch);
/* The routes among these effects, then the answer: for what is never stored. */
void delivery_effects(struct delivery *delivery, const struct effects *effects,
                      struct engine_request *request);
/* An engine request that needs no batch to be durable. Its answer is in it. */
void delivery_ask(struct delivery *delivery, struct engine_request *request);
/* Calls this in the loop's thread, once. Not called when it is called again before. */
void delivery_call(struct delivery *delivery, void (*call)(void *context), void *context);

#endif
