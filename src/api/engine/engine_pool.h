/* engine_pool.h - memory of engine requests, used again */
#ifndef API_ENGINE_ENGINE_POOL_H
#define API_ENGINE_ENGINE_POOL_H

#include "api/engine/engine_request.h"

/* Objects of one type, each with its struct engine_request as the first member. `all` has
 * every object, also those that the engine has; `spare` those that are free. */
struct engine_pool {
	size_t size; /* of an object; set by the owner */
	size_t made; /* objects in `all` */
	struct engine_request *spare, *all;
};

/* An object with an empty engine request. Its other members are 0, or as they were when it was
 * given back. */
void *engine_pool_take(struct engine_pool *pool);
/* Empties the engine request, which the engine must not have any more. */
void engine_pool_give_back(struct engine_pool *pool, void *object);
/* Frees all objects, after `release` (may be NULL) has freed what else each holds. The engine must
 * be gone, or have none of them. */
void engine_pool_free(struct engine_pool *pool, void (*release)(void *object));

#endif
