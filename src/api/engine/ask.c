/* ask.c - something wanted of the core or of the store, and what came of it */
#include "api/engine/ask.h"

void ask_reset(struct ask *ask)
{
	struct arena arena = ask->arena;
	struct buffer text = ask->text;
	arena_reset(&arena);
	buffer_clear(&text);
	*ask = (struct ask){ .arena = arena, .text = text };
}

void ask_free(struct ask *ask)
{
	arena_free(&ask->arena);
	buffer_free(&ask->text);
}
