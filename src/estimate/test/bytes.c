/* bytes.c - GGUF files and readers that tests construct byte by byte */
#include "bytes.h"

#include <string.h>

#include "base/number.h"

void put_number(struct buffer *buffer, uint64_t number, int bytes)
{
	for (int i = 0; i < bytes; i++) {
		unsigned char byte = (unsigned char)(number >> (8 * i));
		buffer_bytes(buffer, &byte, 1);
	}
}

void put_text(struct buffer *buffer, const char *text)
{
	put_number(buffer, strlen(text), 8);
	buffer_bytes(buffer, text, strlen(text));
}

void put_preamble(struct buffer *buffer, uint32_t version, uint64_t tensors, uint64_t values)
{
	buffer_bytes(buffer, "GGUF", 4);
	put_number(buffer, version, 4);
	put_number(buffer, tensors, 8);
	put_number(buffer, values, 8);
}

void put_u32(struct buffer *buffer, const char *key, uint32_t number)
{
	put_text(buffer, key);
	put_number(buffer, GGUF_U32, 4);
	put_number(buffer, number, 4);
}

void put_string(struct buffer *buffer, const char *key, const char *text)
{
	put_text(buffer, key);
	put_number(buffer, GGUF_TEXT, 4);
	put_text(buffer, text);
}

void put_list(struct buffer *buffer, const char *key, const uint32_t *numbers, uint64_t count)
{
	put_text(buffer, key);
	put_number(buffer, GGUF_ARRAY, 4);
	put_number(buffer, GGUF_U32, 4);
	put_number(buffer, count, 8);
	for (uint64_t i = 0; i < count; i++)
		put_number(buffer, numbers[i], 4);
}

void build_u32(struct gguf_builder *builder, const char *key, uint32_t number)
{
	put_u32(&builder->values, key, number);
	builder->value_count++;
}

void build_string(struct gguf_builder *builder, const char *key, const char *text)
{
	put_string(&builder->values, key, text);
	builder->value_count++;
}

void build_list(struct gguf_builder *builder, const char *key, const uint32_t *numbers,
                uint64_t count)
{
	put_list(&builder->values, key, numbers, count);
	builder->value_count++;
}

void build_tensor(struct gguf_builder *builder, const char *name, uint32_t type, uint64_t columns,
                  uint64_t rows, uint64_t experts)
{
	const struct tensor_type *known = tensor_type_of_gguf(type);
	uint64_t blocks = columns / (uint64_t)known->block_values;
	uint64_t size =
	    blocks * (uint64_t)known->block_bytes * (rows ? rows : 1) * (experts ? experts : 1);
	put_text(&builder->tensors, name);
	put_number(&builder->tensors, experts ? 3 : rows ? 2 : 1, 4);
	put_number(&builder->tensors, columns, 8);
	if (rows)
		put_number(&builder->tensors, rows, 8);
	if (experts)
		put_number(&builder->tensors, experts, 8);
	put_number(&builder->tensors, type, 4);
	put_number(&builder->tensors, builder->data_bytes, 8);
	builder->data_bytes += (size + 31) / 32 * 32;
	builder->tensor_count++;
}

int64_t build_finish(struct gguf_builder *builder)
{
	put_preamble(&builder->file, 3, builder->tensor_count, builder->value_count);
	buffer_bytes(&builder->file, builder->values.data, builder->values.size);
	buffer_bytes(&builder->file, builder->tensors.data, builder->tensors.size);
	return (int64_t)((builder->file.size + 31) / 32 * 32 + builder->data_bytes);
}

void build_free(struct gguf_builder *builder)
{
	buffer_free(&builder->values);
	buffer_free(&builder->tensors);
	buffer_free(&builder->file);
}

static bool read_header(void *context, int64_t offset, void *to, size_t size, struct error *error)
{
	(void)error;
	struct header_only *file = context;
	file->furthest = max64(file->furthest, offset + (int64_t)size);
	/* The reader asks for whole buffers; what is behind the header is not there. */
	memset(to, 0xff, size);
	if ((size_t)offset < file->header->size) {
		size_t there = file->header->size - (size_t)offset;
		memcpy(to, file->header->data + offset, there < size ? there : size);
	}
	return true;
}

struct reader reader_of_header(struct header_only *file, const struct buffer *header,
                               int64_t size_bytes)
{
	*file = (struct header_only){ header, 0 };
	return (struct reader){ read_header, file, size_bytes };
}
