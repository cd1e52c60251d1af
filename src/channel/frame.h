/* frame.h - the frames of an interactive session, the same on every hop between client and task
 *
 * A session has two streams of bytes, each counted from its beginning: input, to the task, and
 * output, from it. The sender of a stream stays within a window of what the receiver has taken,
 * so every hop holds at most a window. A client whose connection breaks opens another one, and
 * both streams continue at the offsets that were taken.
 *
 * Client: INPUT, INPUT_END, WINDOW, SIGNAL, TAKEN (output), LEAVE.
 * Session: BEGIN first, then OUTPUT, TAKEN (input), NOTICE, and EXIT at the end; or REFUSED. */
#ifndef CHANNEL_FRAME_H
#define CHANNEL_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/text.h"

enum {
	FRAME_DATA_BYTES = 16 << 10, /* of one frame, at most */
	FRAME_BYTES_MAX = FRAME_DATA_BYTES + 32,
	FRAME_INPUT_WINDOW = 64 << 10,
	FRAME_OUTPUT_WINDOW = 256 << 10,
	FRAME_SIZE_MAX = 10000, /* columns and rows */
};

enum frame_kind {
	FRAME_INPUT = 'i',
	FRAME_INPUT_END = 'e', /* nothing follows what is before `offset` */
	FRAME_WINDOW = 'w',    /* the size of the client's terminal */
	FRAME_SIGNAL = 's',    /* for the command's processes */
	FRAME_TAKEN = 't',     /* everything before `offset` was taken */
	FRAME_LEAVE = 'l',     /* the client leaves, or has seen EXIT */
	FRAME_BEGIN = 'b', /* output follows from `offset`; input was taken up to `input_offset` */
	FRAME_OUTPUT = 'o',
	FRAME_NOTICE = 'n', /* a sentence for people */
	FRAME_EXIT = 'x',   /* `code`, as a shell shows it; `data`: why, where it did not end itself
	                     */
	FRAME_REFUSED = 'r', /* `code` is an enum error_code, `data` the reason */
};

/* What does not belong to its kind is 0. */
struct frame {
	enum frame_kind kind;
	int64_t offset, input_offset;
	int columns, rows;
	int code;      /* EXIT, REFUSED; SIGNAL: its number */
	bool terminal; /* BEGIN: output is that of a terminal, and not marked by streams */
	struct text data;
};

/* Appends a frame. */
void frame_write(struct buffer *buffer, const struct frame *frame);
/* False if the bytes are not exactly one frame. `data` points into them. */
bool frame_read(struct text bytes, struct frame *frame);
/* True for the kinds that clients send. */
bool frame_is_of_client(enum frame_kind kind);

/* Output without a terminal comes from two streams: each part has a head of STREAM_HEAD_BYTES with
 * the stream (1: output, 2: errors) and the size. */
enum { STREAM_HEAD_BYTES = 5, STREAM_PART_MAX = 1 << 20 };
void stream_head_write(char head[STREAM_HEAD_BYTES], int stream, size_t size);
/* Takes such output apart as it comes, in any pieces. */
struct stream_parts {
	char head[STREAM_HEAD_BYTES];
	size_t head_size; /* of which are there */
	size_t left;      /* of the part */
	int stream;
};
/* Takes the next bytes of one stream from the beginning of `*bytes`. 0: there are none yet; -1: it
 * is not such output. Otherwise the stream, with its bytes in `*part`. */
int stream_parts_next(struct stream_parts *parts, struct text *bytes, struct text *part);

#endif
