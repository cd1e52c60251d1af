/* grpc_frame.h - messages with their length before them, as gRPC sends them */
#ifndef WIRE_TEXT_GRPC_FRAME_H
#define WIRE_TEXT_GRPC_FRAME_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/text.h"

enum { GRPC_FRAME_PREFIX = 5 };

enum grpc_frame_result {
	GRPC_FRAME_MORE,      /* all bytes were taken and the next message is not complete */
	GRPC_FRAME_MESSAGE,   /* here is one; call again for the next */
	GRPC_FRAME_TOO_LARGE, /* its length exceeds the limit */
	GRPC_FRAME_INVALID,   /* its first byte is neither 0 nor 1 */
};

/* What has arrived of a message that is not complete. Zero-initialised has nothing. */
struct grpc_frame_reader {
	struct buffer partial; /* prefix and what there is of the message */
};

/* Takes bytes off `bytes`. The message is valid until the next call and until `bytes`
 * change. After TOO_LARGE or INVALID the rest makes no sense. */
enum grpc_frame_result grpc_frame_next(struct grpc_frame_reader *reader, struct text *bytes,
                                       size_t most, struct text *message, bool *is_compressed);
/* True if the bytes so far end with a complete message. */
bool grpc_frame_is_between(const struct grpc_frame_reader *reader);
void grpc_frame_reader_free(struct grpc_frame_reader *reader);

/* The five bytes before a message; less than 4 GiB. */
void grpc_frame_prefix(char prefix[GRPC_FRAME_PREFIX], size_t size, bool is_compressed);

#endif
