/* frame.c - the frames of an interactive session */
#include "channel/frame.h"

#include <string.h>

#include "base/error.h"

enum { NUMBER_BYTES = 8, SHORT_BYTES = 2 };

static void put_number(struct buffer *buffer, int64_t number, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--) {
		char byte = (char)((uint64_t)number >> (8 * i) & 0xff);
		buffer_bytes(buffer, &byte, 1);
	}
}

/* Takes a number of that many bytes from the front. False: they are not there, or it is negative.
 */
static bool take_number(struct text *bytes, int size, int64_t *number)
{
	uint64_t value = 0;

	if (bytes->size < (size_t)size)
		return false;
	for (int i = 0; i < size; i++)
		value = value << 8 | (unsigned char)bytes->data[i];
	bytes->data += size;
	bytes->size -= (size_t)size;
	*number = (int64_t)value;
	return value <= INT64_MAX / 2;
}

static bool take_small(struct text *bytes, int size, int *number)
{
	int64_t value;
	bool taken = take_number(bytes, size, &value);

	*number = taken ? (int)value : 0;
	return taken;
}

void frame_write(struct buffer *buffer, const struct frame *frame)
{
	char kind = (char)frame->kind;

	INVARIANT(frame->data.size <= FRAME_DATA_BYTES);
	buffer_bytes(buffer, &kind, 1);
	switch (frame->kind) {
	case FRAME_INPUT:
	case FRAME_INPUT_END:
	case FRAME_OUTPUT:
	case FRAME_TAKEN:
		put_number(buffer, frame->offset, NUMBER_BYTES);
		break;
	case FRAME_WINDOW:
		put_number(buffer, frame->columns, SHORT_BYTES);
		put_number(buffer, frame->rows, SHORT_BYTES);
		break;
	case FRAME_BEGIN:
		put_number(buffer, frame->offset, NUMBER_BYTES);
		put_number(buffer, frame->input_offset, NUMBER_BYTES);
		put_number(buffer, frame->terminal, 1);
		break;
	case FRAME_SIGNAL:
	case FRAME_EXIT:
	case FRAME_REFUSED:
		put_number(buffer, frame->code, 1);
		break;
	case FRAME_LEAVE:
	case FRAME_NOTICE:
		break;
	}
	buffer_bytes(buffer, frame->data.data, frame->data.size);
}

static bool read_window(struct text *left, struct frame *frame)
{
	return take_small(left, SHORT_BYTES, &frame->columns) &&
	       take_small(left, SHORT_BYTES, &frame->rows) && frame->columns <= FRAME_SIZE_MAX &&
	       frame->rows <= FRAME_SIZE_MAX;
}

static bool read_begin(struct text *left, struct frame *frame)
{
	int terminal = 0;
	bool good = take_number(left, NUMBER_BYTES, &frame->offset) &&
	            take_number(left, NUMBER_BYTES, &frame->input_offset) &&
	            take_small(left, 1, &terminal) && terminal <= 1;

	frame->terminal = terminal == 1;
	return good;
}

/* The kinds that data may stand behind. */
static bool has_data(enum frame_kind kind)
{
	return kind == FRAME_INPUT || kind == FRAME_OUTPUT || kind == FRAME_NOTICE ||
	       kind == FRAME_EXIT || kind == FRAME_REFUSED;
}

bool frame_read(struct text bytes, struct frame *frame)
{
	struct text left = bytes;
	int kind = 0;
	bool good = take_small(&left, 1, &kind);

	*frame = (struct frame){ .kind = (enum frame_kind)kind };
	if (!good)
		return false;
	switch (frame->kind) {
	case FRAME_INPUT:
	case FRAME_INPUT_END:
	case FRAME_OUTPUT:
	case FRAME_TAKEN:
		good = take_number(&left, NUMBER_BYTES, &frame->offset);
		break;
	case FRAME_WINDOW:
		good = read_window(&left, frame);
		break;
	case FRAME_BEGIN:
		good = read_begin(&left, frame);
		break;
	case FRAME_SIGNAL:
	case FRAME_EXIT:
	case FRAME_REFUSED:
		good = take_small(&left, 1, &frame->code);
		break;
	case FRAME_LEAVE:
	case FRAME_NOTICE:
		break;
	default:
		return false;
	}
	frame->data = left;
	return good && left.size <= FRAME_DATA_BYTES && (left.size == 0 || has_data(frame->kind));
}

bool frame_is_of_client(enum frame_kind kind)
{
	return kind == FRAME_INPUT || kind == FRAME_INPUT_END || kind == FRAME_WINDOW ||
	       kind == FRAME_SIGNAL || kind == FRAME_TAKEN || kind == FRAME_LEAVE;
}

void stream_head_write(char head[STREAM_HEAD_BYTES], int stream, size_t size)
{
	INVARIANT(size <= STREAM_PART_MAX);
	head[0] = (char)stream;
	for (int i = 1; i < STREAM_HEAD_BYTES; i++)
		head[i] = (char)(size >> (8 * (STREAM_HEAD_BYTES - 1 - i)) & 0xff);
}

/* Completes the head of the next part. False: it is not one. */
static bool take_head(struct stream_parts *parts, struct text *bytes)
{
	while (parts->head_size < STREAM_HEAD_BYTES && bytes->size > 0) {
		parts->head[parts->head_size++] = *bytes->data++;
		bytes->size--;
	}
	if (parts->head_size < STREAM_HEAD_BYTES)
		return true;
	parts->stream = (unsigned char)parts->head[0];
	parts->left = 0;
	for (int i = 1; i < STREAM_HEAD_BYTES; i++)
		parts->left = parts->left << 8 | (unsigned char)parts->head[i];
	parts->head_size = 0;
	return (parts->stream == 1 || parts->stream == 2) && parts->left <= STREAM_PART_MAX;
}

int stream_parts_next(struct stream_parts *parts, struct text *bytes, struct text *part)
{
	while (parts->left == 0 && bytes->size > 0)
		if (!take_head(parts, bytes))
			return -1;
	if (bytes->size == 0)
		return 0;
	part->data = bytes->data;
	part->size = bytes->size < parts->left ? bytes->size : parts->left;
	bytes->data += part->size;
	bytes->size -= part->size;
	parts->left -= part->size;
	return parts->stream;
}
