/* answer.c - the answer of a model's server, read as it arrives */
#include "gateway/text/answer.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"

enum { LINE_MAX = 4096, CHUNK_DIGITS_MAX = 15 };

static enum answer_event answer_fail(struct answer_reader *reader, const char *why)
{
	reader->stage = ANSWER_BROKEN;
	reader->why = why;
	return ANSWER_BAD;
}

/* Where the head ends in the buffer, looking again at `from` and later; 0: it has not ended. */
static size_t head_end(const struct buffer *head, size_t from)
{
	from = from > 3 ? from - 3 : 0;
	const char *end = memmem(head->data + from, head->size - from, "\r\n\r\n", 4);

	return end ? (size_t)(end - head->data) + 4 : 0;
}

static bool read_status(struct answer_reader *reader, struct text line)
{
	if (line.size < 12 || memcmp(line.data, "HTTP/1.", 7) != 0 || line.data[8] != ' ' ||
	    (line.data[7] != '0' && line.data[7] != '1'))
		return false;
	reader->keeps = line.data[7] == '1';
	reader->status = 0;
	for (int i = 9; i < 12; i++) {
		if (line.data[i] < '0' || line.data[i] > '9')
			return false;
		reader->status = reader->status * 10 + line.data[i] - '0';
	}
	return reader->status >= 100 && (line.size == 12 || line.data[12] == ' ');
}

static bool is_name(struct text name)
{
	for (size_t i = 0; i < name.size; i++)
		if (name.data[i] <= ' ' || name.data[i] >= 0x7f || name.data[i] == '"')
			return false;
	return name.size > 0;
}

/* Names become lower case, in place. */
static bool read_header(struct answer_reader *reader, char *line, size_t size)
{
	char *colon = memchr(line, ':', size);

	if (!colon || reader->header_count == ANSWER_HEADERS_MAX)
		return false;
	struct text name = { line, (size_t)(colon - line) };
	if (!is_name(name))
		return false;
	for (char *at = line; at < colon; at++)
		*at |= *at >= 'A' && *at <= 'Z' ? 0x20 : 0;
	struct text value = text_trim((struct text){ colon + 1, size - name.size - 1 });
	if (memchr(value.data, '\0', value.size) || memchr(value.data, '\r', value.size) ||
	    memchr(value.data, '\n', value.size))
		return false;
	array_reserve(reader->headers, reader->header_capacity, reader->header_count + 1);
	reader->headers[reader->header_count++] = (struct header){ name, value };
	return true;
}

static bool read_lines(struct answer_reader *reader, size_t size)
{
	char *at = reader->head.data, *end = at + size - 2;

	reader->header_count = 0;
	for (bool first = true; at < end; first = false) {
		char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2);
		size_t line_size = (size_t)(line_end - at);
		if (first ? !read_status(reader, (struct text){ at, line_size })
		          : !read_header(reader, at, line_size))
			return false;
		at = line_end + 2;
	}
	return reader->status > 0;
}

/* -1: not a length. */
static int64_t read_length(struct text text)
{
	int64_t length = 0;

	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] < '0' || text.data[i] > '9' || length > INT64_MAX / 16)
			return -1;
		length = length * 10 + text.data[i] - '0';
	}
	return text.size > 0 ? length : -1;
}

/* How the body is delimited. Two ways at once are none. */
static bool frame(struct answer_reader *reader)
{
	const struct headers headers = { reader->headers, reader->header_count };
	struct text length = headers_get(&headers, "content-length");
	bool chunked = headers_get(&headers, "transfer-encoding").data != NULL;

	reader->has_length = false;
	if (headers_has_token(&headers, "connection", "close"))
		reader->keeps = false;
	if (headers_count(&headers, "content-length") > 1 || (length.data && chunked))
		return false;
	if (chunked && (headers_count(&headers, "transfer-encoding") > 1 ||
	                !text_is_any_case(headers_get(&headers, "transfer-encoding"), "chunked")))
		return false;
	if (reader->status == 204 || reader->status == 304) {
		reader->stage = ANSWER_COMPLETE;
	} else if (chunked) {
		reader->stage = ANSWER_IN_CHUNK_SIZE;
		reader->left = 0;
		reader->digits = 0;
	} else if (length.data) {
		reader->left = reader->content_length = read_length(length);
		reader->has_length = true;
		reader->stage = reader->left == 0 ? ANSWER_COMPLETE : ANSWER_IN_LENGTH;
		return reader->left >= 0;
	} else {
		reader->stage = ANSWER_TO_END;
		reader->keeps = false;
	}
	return true;
}

static enum answer_event take_head(struct answer_reader *reader, struct text *bytes)
{
	size_t before = reader->head.size, room = ANSWER_HEAD_MAX - before;
	size_t size = bytes->size < room ? bytes->size : room;

	buffer_bytes(&reader->head, bytes->data, size);
	size_t end = size > 0 ? head_end(&reader->head, before) : 0;
	if (end == 0) {
		*bytes = text_from(*bytes, size);
		return reader->head.size == ANSWER_HEAD_MAX
		           ? answer_fail(reader, "its head is too long")
		           : ANSWER_MORE;
	}
	*bytes = text_from(*bytes, end - before);
	if (!read_lines(reader, end))
		return answer_fail(reader, "its head is malformed");
	if (reader->status < 200) {
		buffer_clear(&reader->head);
		return reader->status == 101 ? answer_fail(reader, "it changes the protocol")
		                             : answer_next(reader, bytes, &(struct text){ 0 });
	}
	return frame(reader) ? ANSWER_HEAD : answer_fail(reader, "its length is unclear");
}

static int hex_value(char byte)
{
	return byte >= '0' && byte <= '9'   ? byte - '0'
	       : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
	       : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
	                                    : -1;
}

static bool take_size_byte(struct answer_reader *reader, char byte)
{
	int digit = hex_value(byte);

	if (digit >= 0) {
		reader->left = reader->left * 16 + digit;
		return ++reader->digits <= CHUNK_DIGITS_MAX;
	}
	if (reader->digits == 0 || (byte != '\r' && byte != ';' && byte != ' ' && byte != '\t'))
		return false;
	reader->stage = ANSWER_IN_CHUNK_NOTE;
	reader->digits = 0;
	return true;
}

static bool take_note_byte(struct answer_reader *reader, char byte)
{
	if (byte != '\n')
		return ++reader->digits < LINE_MAX;
	reader->digits = 0;
	reader->trailer_size = 0;
	reader->stage = reader->left > 0 ? ANSWER_IN_CHUNK : ANSWER_IN_TRAILER;
	return true;
}

static bool take_behind_byte(struct answer_reader *reader, char byte)
{
	if (byte == '\r' && reader->digits == 0) {
		reader->digits = 1;
		return true;
	}
	if (byte != '\n')
		return false;
	reader->digits = 0;
	reader->left = 0;
	reader->stage = ANSWER_IN_CHUNK_SIZE;
	return true;
}

/* Trailers are passed over; an empty line ends them. */
static bool take_trailer_byte(struct answer_reader *reader, char byte)
{
	if (byte == '\n') {
		if (reader->digits == 0)
			reader->stage = ANSWER_COMPLETE;
		reader->digits = 0;
	} else if (byte != '\r') {
		reader->digits++;
	}
	return ++reader->trailer_size < LINE_MAX;
}

static enum answer_event take_part(struct answer_reader *reader, struct text *bytes,
                                   struct text *part)
{
	size_t size = bytes->size;

	if (reader->stage != ANSWER_TO_END && (int64_t)size > reader->left)
		size = (size_t)reader->left;
	*part = (struct text){ bytes->data, size };
	*bytes = text_from(*bytes, size);
	if (reader->stage == ANSWER_TO_END)
		return ANSWER_PART;
	reader->left -= (int64_t)size;
	if (reader->left == 0)
		reader->stage =
		    reader->stage == ANSWER_IN_CHUNK ? ANSWER_BEHIND_CHUNK : ANSWER_COMPLETE;
	return ANSWER_PART;
}

static bool take_byte(struct answer_reader *reader, char byte)
{
	switch (reader->stage) {
	case ANSWER_IN_CHUNK_SIZE:
		return take_size_byte(reader, byte);
	case ANSWER_IN_CHUNK_NOTE:
		return take_note_byte(reader, byte);
	case ANSWER_BEHIND_CHUNK:
		return take_behind_byte(reader, byte);
	default:
		return take_trailer_byte(reader, byte);
	}
}

enum answer_event answer_next(struct answer_reader *reader, struct text *bytes, struct text *part)
{
	for (;;) {
		if (reader->stage == ANSWER_COMPLETE)
			return ANSWER_END;
		if (reader->stage == ANSWER_BROKEN)
			return ANSWER_BAD;
		if (bytes->size == 0)
			return ANSWER_MORE;
		if (reader->stage == ANSWER_IN_HEAD)
			return take_head(reader, bytes);
		if (reader->stage == ANSWER_IN_LENGTH || reader->stage == ANSWER_TO_END ||
		    reader->stage == ANSWER_IN_CHUNK)
			return take_part(reader, bytes, part);
		if (!take_byte(reader, *bytes->data))
			return answer_fail(reader, "its chunks are malformed");
		*bytes = text_from(*bytes, 1);
	}
}

bool answer_ended(struct answer_reader *reader)
{
	if (reader->stage == ANSWER_TO_END)
		reader->stage = ANSWER_COMPLETE;
	return reader->stage == ANSWER_COMPLETE;
}

void answer_reset(struct answer_reader *reader)
{
	struct buffer head = reader->head;

	buffer_clear(&head);
	reader->head = head;
	reader->stage = ANSWER_IN_HEAD;
	reader->header_count = 0;
	reader->status = 0;
	reader->left = 0;
	reader->digits = 0;
	reader->has_length = false;
	reader->keeps = false;
}

void answer_forget_head(struct answer_reader *reader)
{
	buffer_free(&reader->head);
	free(reader->headers);
	reader->headers = NULL;
	reader->header_count = reader->header_capacity = 0;
}

void answer_free(struct answer_reader *reader)
{
	answer_forget_head(reader);
}
