/* envelope_fuzz.c - whatever arrives, it is read or refused; what is read can be written */
#include <stdint.h>
#include <stdlib.h>

#include "agent/uplink/envelope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct envelope envelope, again;
	struct buffer bytes = { 0 };
	struct arena arena = { 0 };

	if (envelope_decode((struct text){ (const char *)data, size }, &arena, &envelope)) {
		envelope_encode(&bytes, &envelope);
		if (!envelope_decode((struct text){ bytes.data, bytes.size }, &arena, &again) ||
		    again.kind != envelope.kind)
			abort();
		buffer_free(&bytes);
	}
	arena_free(&arena);
	return 0;
}
