/* buffer.c - bytes that are appended to: for text, encodings and digests */
#include "buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "memory.h"

void buffer_bytes(struct buffer *buffer, const void *data, size_t size)
{
	if (size == 0)
		return;
	array_reserve(buffer->data, buffer->capacity, buffer->size + size);
	memcpy(buffer->data + buffer->size, data, size);
	buffer->size += size;
}

void buffer_text(struct buffer *buffer, const char *text)
{
	buffer_bytes(buffer, text, strlen(text) + 1);
	buffer->size--;
}

void buffer_print(struct buffer *buffer, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	va_list again;
	va_copy(again, arguments);
	size_t room = buffer->capacity - buffer->size;
	char *end = buffer->data ? buffer->data + buffer->size : NULL;
	int length = vsnprintf(end, room, format, arguments);
	va_end(arguments);
	INVARIANT(length >= 0);
	if ((size_t)length >= room) {
		array_reserve(buffer->data, buffer->capacity, buffer->size + (size_t)length + 1);
		vsnprintf(buffer->data + buffer->size, (size_t)length + 1, format, again);
	}
	va_end(again);
	buffer->size += (size_t)length;
}

void buffer_long_varint(struct buffer *buffer, uint64_t value)
{
	array_reserve(buffer->data, buffer->capacity, buffer->size + VARINT_BYTES_MAX);
	while (value >= 0x80) {
		buffer->data[buffer->size++] = (char)(unsigned char)(value | 0x80);
		value >>= 7;
	}
	buffer->data[buffer->size++] = (char)value;
}

void buffer_clear(struct buffer *buffer)
{
	buffer->size = 0;
}

void buffer_free(struct buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct buffer){ 0 };
}
