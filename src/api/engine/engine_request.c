/* engine_request.c - something wanted of the core or of the store, and what came of it */
#include "api/engine/engine_request.h"

void engine_request_reset(struct engine_request *engine)
{
	struct arena arena = engine->arena;
	struct buffer text = engine->text;
	arena_reset(&arena);
	buffer_clear(&text);
	*engine = (struct engine_request){ .arena = arena, .text = text };
}

void engine_request_free(struct engine_request *engine)
{
	arena_free(&engine->arena);
	buffer_free(&engine->text);
}
