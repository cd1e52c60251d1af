/* answer.h - the answer of a model's server, read as it arrives */
#ifndef GATEWAY_TEXT_ANSWER_H
#define GATEWAY_TEXT_ANSWER_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "wire/text/headers.h"

enum { ANSWER_HEAD_MAX = 64 << 10, ANSWER_HEADERS_MAX = 100 };

enum answer_event {
	ANSWER_MORE, /* all bytes are taken; more are needed */
	ANSWER_HEAD, /* status and headers are there */
	ANSWER_PART, /* a part of the body */
	ANSWER_END,  /* the answer is complete */
	ANSWER_BAD,  /* it is no proper HTTP/1.1 */
};

/* Zero-initialised waits for an answer. Headers live until answer_reset or answer_forget_head. */
struct answer_reader {
	enum answer_stage {
		ANSWER_IN_HEAD,
		ANSWER_IN_LENGTH,     /* `left` bytes to come */
		ANSWER_TO_END,        /* until the connection ends */
		ANSWER_IN_CHUNK_SIZE, /* its digits */
		ANSWER_IN_CHUNK_NOTE, /* what follows them on the line */
		ANSWER_IN_CHUNK,
		ANSWER_BEHIND_CHUNK, /* its line end */
		ANSWER_IN_TRAILER,
		ANSWER_COMPLETE,
		ANSWER_BROKEN,
	} stage;
	struct buffer head;
	int64_t left;
	int digits;       /* of a chunk's size, or bytes of a line */
	int trailer_size; /* of all lines of it */
	int status;
	struct header *headers;
	size_t header_count, header_capacity;
	bool keeps;      /* the connection may be used again */
	bool has_length; /* content_length says how long it is */
	int64_t content_length;
	const char *why; /* ANSWER_BAD */
};

/* Takes bytes off `bytes` up to the next event. A part is valid while they are. Interim answers
 * (1xx) are passed over. */
enum answer_event answer_next(struct answer_reader *reader, struct text *bytes, struct text *part);
/* The connection has ended: true if that ends the answer properly. */
bool answer_ended(struct answer_reader *reader);
/* Frees what the head took, in the middle of a long answer. */
void answer_forget_head(struct answer_reader *reader);
/* For the next answer; keeps the memory. */
void answer_reset(struct answer_reader *reader);
void answer_free(struct answer_reader *reader);

#endif
