/* grpc_frame_fuzz.c - however bytes are cut, the same messages come out of them */
#include <stdint.h>

#include "base/error.h"
#include "wire/text/grpc_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1000 };

/* Reads messages in steps of at most `step` bytes; appends them to `out` as they were. */
static enum grpc_frame_result grpc_frame_read_all(struct text bytes, size_t step,
                                                  struct buffer *out)
{
	struct grpc_frame_reader reader = { 0 };
	enum grpc_frame_result result = GRPC_FRAME_MORE;
	while (bytes.size > 0 && result == GRPC_FRAME_MORE) {
		struct text part = { bytes.data, bytes.size < step ? bytes.size : step };
		bytes = text_from(bytes, part.size);
		struct text message;
		bool is_compressed;
		while ((result = grpc_frame_next(&reader, &part, MOST, &message, &is_compressed)) ==
		       GRPC_FRAME_MESSAGE) {
			char prefix[GRPC_FRAME_PREFIX];
			INVARIANT(message.size <= MOST);
			grpc_frame_prefix(prefix, message.size, is_compressed);
			buffer_bytes(out, prefix, sizeof(prefix));
			buffer_bytes(out, message.data, message.size);
		}
		INVARIANT(result != GRPC_FRAME_MORE || part.size == 0);
	}
	if (result == GRPC_FRAME_MORE && grpc_frame_is_between(&reader))
		result = GRPC_FRAME_MESSAGE;
	grpc_frame_reader_free(&reader);
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text bytes = { (const char *)data, size };
	struct buffer whole = { 0 }, cut = { 0 };
	enum grpc_frame_result result = grpc_frame_read_all(bytes, SIZE_MAX, &whole);
	for (size_t step = 1; step < 8; step += 2) {
		buffer_clear(&cut);
		INVARIANT(grpc_frame_read_all(bytes, step, &cut) == result);
		INVARIANT(cut.size == whole.size && whole.size <= size);
		INVARIANT(whole.size == 0 || memcmp(cut.data, whole.data, whole.size) == 0);
	}
	INVARIANT(whole.size == 0 || memcmp(whole.data, data, whole.size) == 0);
	INVARIANT(result != GRPC_FRAME_MESSAGE || whole.size == size);
	buffer_free(&whole);
	buffer_free(&cut);
	return 0;
}
