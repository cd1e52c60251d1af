/* buffer.h - bytes that are appended to: for text, encodings and digests */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

/* `data` has `size` bytes and, after any buffer_print or buffer_text, a NUL
 * behind them that is not counted. Zero-initialised is empty. */
struct buffer {
	char *data;
	size_t size, capacity;
};

void buffer_bytes(struct buffer *buffer, const void *data, size_t size);
void buffer_text(struct buffer *buffer, const char *text);
void buffer_print(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Unsigned LEB128, and zigzag LEB128 for signed numbers. */
enum { VARINT_BYTES_MAX = 10 };
void buffer_long_varint(struct buffer *buffer, uint64_t value);
static inline void buffer_varint(struct buffer *buffer, uint64_t value)
{
	if (value < 0x80 && buffer->size < buffer->capacity)
		buffer->data[buffer->size++] = (char)value;
	else
		buffer_long_varint(buffer, value);
}
static inline void buffer_signed(struct buffer *buffer, int64_t value)
{
	buffer_varint(buffer, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}
/* Empties it and keeps the memory; frees the memory. */
void buffer_clear(struct buffer *buffer);
void buffer_free(struct buffer *buffer);

#endif
