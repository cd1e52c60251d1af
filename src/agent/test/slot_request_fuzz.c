/* slot_request_fuzz.c - whatever a client sends to a slot, in whatever pieces: what passes is the
 * same, and nothing passes without the key */
#define _GNU_SOURCE /* memmem */
#include <stdlib.h>

#include "agent/proxy/slot_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct slot_keys keys = {
	.client = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	.agent = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210",
};

struct outcome {
	struct buffer passed;
	int requests, status;
};

static struct outcome run_pieces(struct text bytes, size_t piece, enum slot_paths paths)
{
	struct slot_request request = { .keys = &keys, .paths = paths };
	struct outcome outcome = { 0 };

	while (bytes.size > 0 && outcome.status == 0) {
		struct text now = { bytes.data, bytes.size < piece ? bytes.size : piece }, part;
		enum slot_request_event event;
		bytes = text_from(bytes, now.size);
		while ((event = slot_request_next(&request, &now, &part)) != SLOT_REQUEST_MORE) {
			if (event == SLOT_REQUEST_PASS)
				buffer_bytes(&outcome.passed, part.data, part.size);
			outcome.requests += event == SLOT_REQUEST_END;
			if (event == SLOT_REQUEST_REFUSED) {
				INVARIANT(request.why && request.status >= 400);
				outcome.status = request.status;
				break;
			}
		}
	}
	slot_request_free(&request);
	return outcome;
}

static bool has(struct text bytes, const char *key)
{
	return memmem(bytes.data, bytes.size, key, SLOT_KEY_SIZE) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	struct text bytes = { (const char *)data + 1, size - 1 };
	enum slot_paths paths = data[0] & 1 ? SLOT_PATHS_ALL : SLOT_PATHS_INFERENCE;
	struct outcome whole = run_pieces(bytes, SIZE_MAX, paths),
		       pieces = run_pieces(bytes, (size_t)(data[0] >> 1) + 1, paths);

	INVARIANT(whole.requests == pieces.requests && whole.status == pieces.status);
	/* Of a body that is refused, more or less may have passed before. */
	INVARIANT(whole.status != 0 ||
	          (whole.passed.size == pieces.passed.size &&
	           (whole.passed.size == 0 ||
	            memcmp(whole.passed.data, pieces.passed.data, whole.passed.size) == 0)));
	INVARIANT(whole.passed.size == 0 || has(bytes, keys.client) || has(bytes, keys.agent));
	buffer_free(&whole.passed);
	buffer_free(&pieces.passed);
	return 0;
}
