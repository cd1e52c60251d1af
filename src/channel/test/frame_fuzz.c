/* frame_fuzz.c - any bytes are a frame or not, and a frame is written as it was read */
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "channel/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_apart(struct text bytes)
{
	struct stream_parts parts = { 0 };
	struct text left = bytes, part;
	size_t before;
	int stream;

	do {
		before = left.size;
		stream = stream_parts_next(&parts, &left, &part);
		INVARIANT(stream <= 0 || (part.data >= bytes.data && part.size <= before &&
		                          part.data + part.size <= bytes.data + bytes.size));
	} while (stream > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text bytes = { (const char *)data, size };
	struct buffer again = { 0 };
	struct frame frame;

	if (frame_read(bytes, &frame)) {
		frame_write(&again, &frame);
		INVARIANT(again.size == size && memcmp(again.data, data, size) == 0);
	}
	take_apart(bytes);
	buffer_free(&again);
	return 0;
}
