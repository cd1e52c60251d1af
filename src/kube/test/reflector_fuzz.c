/* reflector_fuzz.c - whatever a server sends, what was said to be there is said to be gone once */
#include <stdlib.h>
#include <string.h>

#include "kube/reflector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hear(void *context, enum reflector_event event, const json_t *object)
{
	(void)context;
	if ((event == REFLECTOR_SYNCED) != (object == NULL))
		abort();
}

/* The first byte says in how large pieces the rest comes, and whether as lists. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reflector reflector = { .path = "/x", .query = "", .sink = hear };
	struct error error;

	if (size == 0)
		return 0;
	size_t piece = (data[0] & 0x7f) + (size_t)1;
	reflector.paged = data[0] >> 7;
	for (size_t at = 1, round = 0; at < size && round < 8; round++) {
		struct buffer path = { 0 };
		reflector_request(&reflector, &path);
		if (strchr(path.data, ' ') || strchr(path.data, '\n'))
			abort();
		buffer_free(&path);
		while (at < size) {
			size_t part = size - at < piece ? size - at : piece;
			bool right =
			    reflector_feed(&reflector, (const char *)data + at, part, &error);
			at += part;
			if (!right)
				break;
		}
		reflector_end(&reflector, &error);
	}
	reflector_free(&reflector);
	return 0;
}
