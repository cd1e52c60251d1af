/* spec_fuzz.c - whatever a keeper is given, it is read or refused; what is read can be written */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/keeper/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct buffer bytes = { 0 };
	struct spec spec, again;

	if (spec_decode(&arena, (const char *)data, size, &spec)) {
		spec_encode(&bytes, &spec);
		if (!spec_decode(&arena, bytes.data, bytes.size, &again) ||
		    again.reservation_id != spec.reservation_id ||
		    strcmp(again.status_path, spec.status_path) != 0)
			abort();
		buffer_free(&bytes);
	}
	arena_free(&arena);
	return 0;
}
