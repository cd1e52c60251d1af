/* blueprint.c - what a model is made of, as far as its memory depends on it */
#include "estimate/blueprint.h"

#include <stdlib.h>

#include "base/memory.h"

bool blueprint_set_layers(struct blueprint *blueprint, int64_t layer_count, struct error *error)
{
	if (layer_count < 1 || layer_count > BLUEPRINT_LAYERS_MAX)
		return error_set(error, ERROR_INVALID,
		                 "it has %lld layers, and should have from 1 to %d",
		                 (long long)layer_count, BLUEPRINT_LAYERS_MAX);
	blueprint->layer_count = layer_count;
	blueprint->layers = memory_zero((size_t)layer_count, sizeof(*blueprint->layers));
	return true;
}

void blueprint_free(struct blueprint *blueprint)
{
	free(blueprint->layers);
	*blueprint = (struct blueprint){ 0 };
}

void blueprint_text(char to[BLUEPRINT_NAME_MAX], const char *text)
{
	size_t i = 0;
	for (; text[i] != '\0' && i < BLUEPRINT_NAME_MAX - 1; i++)
		to[i] = text[i];
	/* No half of a character at the end, where it was cut. */
	if (text[i] != '\0') {
		while (i > 0 && ((unsigned char)text[i] & 0xc0) == 0x80)
			i--;
	}
	to[i] = '\0';
	for (i = 0; to[i] != '\0'; i++) {
		if ((unsigned char)to[i] < ' ' || to[i] == 0x7f)
			to[i] = '?';
	}
}
