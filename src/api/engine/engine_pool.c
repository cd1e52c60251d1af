/* engine_pool.c - memory of engine requests, used again */
#include "api/engine/engine_pool.h"

#include <stdlib.h>

#include "base/memory.h"

void *engine_pool_take(struct engine_pool *pool)
{
	struct engine_request *engine = pool->spare;

	INVARIANT(pool->size >= sizeof(*engine));
	if (engine) {
		memory_unpoison(engine, pool->size);
		pool->spare = engine->next_spare;
		return engine;
	}
	engine = memory_zero(1, pool->size);
	engine->next_of_all = pool->all;
	pool->all = engine;
	pool->made++;
	return engine;
}

void engine_pool_give_back(struct engine_pool *pool, void *object)
{
	struct engine_request *engine = object;

	engine_request_reset(engine);
	engine->next_spare = pool->spare;
	pool->spare = engine;
	memory_poison(engine, pool->size);
}

void engine_pool_free(struct engine_pool *pool, void (*release)(void *object))
{
	while (pool->all) {
		struct engine_request *engine = pool->all;
		memory_unpoison(engine, pool->size);
		pool->all = engine->next_of_all;
		if (release)
			release(engine);
		engine_request_free(engine);
		free(engine);
	}
	pool->spare = NULL;
	pool->made = 0;
}
