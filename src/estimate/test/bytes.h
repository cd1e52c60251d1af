/* bytes.h - GGUF files and readers that tests construct byte by byte */
#ifndef ESTIMATE_TEST_BYTES_H
#define ESTIMATE_TEST_BYTES_H

#include "base/buffer.h"
#include "estimate/gguf.h"

/* Little-endian numbers of 1, 2, 4 or 8 bytes. */
void put_number(struct buffer *buffer, uint64_t number, int bytes);
/* A text with its length before it. */
void put_text(struct buffer *buffer, const char *text);

/* Magic, version and the two counts. */
void put_preamble(struct buffer *buffer, uint32_t version, uint64_t tensors, uint64_t values);
/* Values: a number of 32 bits, a text, a list of 32-bit numbers. */
void put_u32(struct buffer *buffer, const char *key, uint32_t number);
void put_string(struct buffer *buffer, const char *key, const char *text);
void put_list(struct buffer *buffer, const char *key, const uint32_t *numbers, uint64_t count);

/* A model that is put together value by value and tensor by tensor. The counts
 * are filled in, and offsets follow each other, when it is finished. */
struct gguf_builder {
	struct buffer values, tensors, file;
	uint64_t value_count, tensor_count, data_bytes;
};
void build_u32(struct gguf_builder *builder, const char *key, uint32_t number);
void build_string(struct gguf_builder *builder, const char *key, const char *text);
void build_list(struct gguf_builder *builder, const char *key, const uint32_t *numbers,
                uint64_t count);
/* A tensor of rows x columns of the GGUF type with this number, or a vector if
 * rows is 0; a third dimension if experts is not 0. */
void build_tensor(struct gguf_builder *builder, const char *name, uint32_t type, uint64_t columns,
                  uint64_t rows, uint64_t experts);
/* Makes `file` the header, and returns how long the whole file would be. */
int64_t build_finish(struct gguf_builder *builder);
void build_free(struct gguf_builder *builder);

/* A large file of which only the header exists: the rest reads as 0xff, and how
 * far was read is remembered. */
struct header_only {
	const struct buffer *header;
	int64_t furthest; /* the end of what was read */
};
struct reader reader_of_header(struct header_only *file, const struct buffer *header,
                               int64_t size_bytes);

#endif
