/* grpc_frame.c - messages with their length before them, as gRPC sends them */
#include "wire/text/grpc_frame.h"

#include "base/error.h"

static size_t message_size(const char *prefix)
{
	const unsigned char *bytes = (const unsigned char *)prefix;
	return (size_t)bytes[1] << 24 | (size_t)bytes[2] << 16 | (size_t)bytes[3] << 8 | bytes[4];
}

/* Moves bytes into `partial` until it has `size` of them, or there are no more. */
static bool grpc_frame_gather(struct grpc_frame_reader *reader, struct text *bytes, size_t size)
{
	size_t missing = size - reader->partial.size;
	size_t taken = bytes->size < missing ? bytes->size : missing;
	buffer_bytes(&reader->partial, bytes->data, taken);
	*bytes = text_from(*bytes, taken);
	return taken == missing;
}

static enum grpc_frame_result judge(const char *prefix, size_t most)
{
	if (prefix[0] != 0 && prefix[0] != 1)
		return GRPC_FRAME_INVALID;
	return message_size(prefix) > most ? GRPC_FRAME_TOO_LARGE : GRPC_FRAME_MESSAGE;
}

enum grpc_frame_result grpc_frame_next(struct grpc_frame_reader *reader, struct text *bytes,
                                       size_t most, struct text *message, bool *is_compressed)
{
	struct buffer *partial = &reader->partial;
	/* A complete message that was given out last time. */
	if (partial->size >= GRPC_FRAME_PREFIX &&
	    partial->size == GRPC_FRAME_PREFIX + message_size(partial->data))
		buffer_clear(partial);
	if (bytes->size == 0)
		return GRPC_FRAME_MORE;

	if (partial->size == 0 && bytes->size >= GRPC_FRAME_PREFIX) {
		enum grpc_frame_result result = judge(bytes->data, most);
		size_t size = message_size(bytes->data);
		if (result != GRPC_FRAME_MESSAGE)
			return result;
		if (bytes->size - GRPC_FRAME_PREFIX >= size) {
			*is_compressed = bytes->data[0] == 1;
			*message = (struct text){ bytes->data + GRPC_FRAME_PREFIX, size };
			*bytes = text_from(*bytes, GRPC_FRAME_PREFIX + size);
			return GRPC_FRAME_MESSAGE;
		}
	}
	if (partial->size < GRPC_FRAME_PREFIX &&
	    !grpc_frame_gather(reader, bytes, GRPC_FRAME_PREFIX))
		return GRPC_FRAME_MORE;
	enum grpc_frame_result result = judge(partial->data, most);
	if (result != GRPC_FRAME_MESSAGE)
		return result;
	size_t size = message_size(partial->data);
	if (!grpc_frame_gather(reader, bytes, GRPC_FRAME_PREFIX + size))
		return GRPC_FRAME_MORE;
	*is_compressed = partial->data[0] == 1;
	*message = (struct text){ partial->data + GRPC_FRAME_PREFIX, size };
	return GRPC_FRAME_MESSAGE;
}

bool grpc_frame_is_between(const struct grpc_frame_reader *reader)
{
	const struct buffer *partial = &reader->partial;
	return partial->size == 0 ||
	       (partial->size >= GRPC_FRAME_PREFIX &&
	        partial->size == GRPC_FRAME_PREFIX + message_size(partial->data));
}

void grpc_frame_reader_free(struct grpc_frame_reader *reader)
{
	buffer_free(&reader->partial);
}

void grpc_frame_prefix(char prefix[GRPC_FRAME_PREFIX], size_t size, bool is_compressed)
{
	INVARIANT(size <= UINT32_MAX);
	prefix[0] = (char)is_compressed;
	for (int i = 0; i < 4; i++)
		prefix[1 + i] = (char)(unsigned char)(size >> (24 - 8 * i) & 0xff);
}
