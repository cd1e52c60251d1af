/* reader.h - bytes of a file that may be far larger than what is read of it */
#ifndef ESTIMATE_READER_H
#define ESTIMATE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A place to read from: a file, or bytes in memory. `read` fills `to` with
 * exactly `size` bytes from `offset`; it is only called for ranges within
 * `size_bytes`, and fails when the bytes cannot be had after all. */
struct reader {
	bool (*read)(void *context, int64_t offset, void *to, size_t size, struct error *error);
	void *context;
	int64_t size_bytes;
};

/* Reads `size` bytes at `offset`. A range that is not within the reader is an
 * error, whatever the numbers are. */
bool reader_bytes(const struct reader *reader, int64_t offset, void *to, int64_t size,
                  struct error *error);

/* Memory as a reader. The bytes must outlive it. */
struct memory_bytes {
	const void *data;
	size_t size;
};
struct reader reader_of_memory(struct memory_bytes *bytes);

/* A file as a reader; `handle` keeps it open until reader_close_file. What is
 * not a regular file is refused. */
struct reader_file {
	int handle;
};
bool reader_open_file(struct reader *reader, struct reader_file *file, const char *path,
                      struct error *error);
void reader_close_file(struct reader_file *file);

/* Walks a reader from its start, a buffer at a time. The first failure sticks:
 * everything after it reads as zero, so that a parser can look at `error` once
 * per entry. */
enum { CURSOR_BUFFER_BYTES = 65536 };
struct cursor {
	const struct reader *reader;
	int64_t offset;       /* of the next byte */
	int64_t limit;        /* no byte at or behind this is read */
	int64_t buffer_start; /* the buffer has [buffer_start, buffer_start + buffered) */
	int64_t buffered;
	struct error error; /* the first failure */
	unsigned char buffer[CURSOR_BUFFER_BYTES];
};

/* Starts at offset 0; nothing behind `limit` is read. */
void cursor_start(struct cursor *cursor, const struct reader *reader, int64_t limit);
static inline bool cursor_failed(const struct cursor *cursor)
{
	return cursor->error.code != ERROR_NONE;
}
/* How many bytes there are up to the limit. */
int64_t cursor_left(const struct cursor *cursor);
void cursor_read(struct cursor *cursor, void *to, int64_t size);
void cursor_skip(struct cursor *cursor, int64_t size);
/* Little-endian numbers. */
uint8_t cursor_u8(struct cursor *cursor);
uint16_t cursor_u16(struct cursor *cursor);
uint32_t cursor_u32(struct cursor *cursor);
uint64_t cursor_u64(struct cursor *cursor);

#endif
