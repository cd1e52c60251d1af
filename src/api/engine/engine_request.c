/* engine_request.c - a request to the core or to the store, and its outcome */
#include "api/engine/engine_request.h"

void engine_request_reset(struct engine_request *engine)
{
	struct arena arena = engine->arena;
	struct buffer text = engine->text;
	struct engine_request *next_of_all = engine->next_of_all;
	arena_reset(&arena);
	buffer_clear(&text);
	*engine =
	    (struct engine_request){ .arena = arena, .text = text, .next_of_all = next_of_all };
}

void engine_request_free(struct engine_request *engine)
{
	arena_free(&engine->arena);
	buffer_free(&engine->text);
}
