/* reader.c - bytes of a file that may be far larger than what is read of it */
#include "estimate/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"

bool reader_bytes(const struct reader *reader, int64_t offset, void *to, int64_t size,
                  struct error *error)
{
	if (offset < 0 || size < 0 || offset > reader->size_bytes ||
	    size > reader->size_bytes - offset)
		return error_set(error, ERROR_INVALID,
		                 "it ends after %lld bytes, in the middle of its header",
		                 (long long)reader->size_bytes);
	if (size == 0)
		return true;
	return reader->read(reader->context, offset, to, (size_t)size, error);
}

static bool read_memory(void *context, int64_t offset, void *to, size_t size, struct error *error)
{
	(void)error;
	const struct memory_bytes *bytes = context;
	memcpy(to, (const char *)bytes->data + offset, size);
	return true;
}

struct reader reader_of_memory(struct memory_bytes *bytes)
{
	return (struct reader){ read_memory, bytes, (int64_t)bytes->size };
}

static bool reader_read_file(void *context, int64_t offset, void *to, size_t size,
                             struct error *error)
{
	const struct reader_file *file = context;
	size_t done = 0;
	while (done < size) {
		ssize_t got = pread(file->handle, (char *)to + done, size - done,
		                    (off_t)(offset + (int64_t)done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set(error, ERROR_INVALID, "it cannot be read: %s",
			                 strerror(errno));
		if (got == 0)
			return error_set(error, ERROR_INVALID,
			                 "it became shorter while it was read");
		done += (size_t)got;
	}
	return true;
}

bool reader_open_file(struct reader *reader, struct reader_file *file, const char *path,
                      struct error *error)
{
	struct stat status;
	/* Without O_NONBLOCK the opening of a pipe would wait for a writer. */
	file->handle = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file->handle < 0) {
		enum error_code code = errno == ENOENT ? ERROR_NOT_FOUND : ERROR_INVALID;
		return error_set(error, code, "it cannot be opened: %s", strerror(errno));
	}
	if (fstat(file->handle, &status) != 0 || !S_ISREG(status.st_mode)) {
		reader_close_file(file);
		return error_set(error, ERROR_INVALID, "it is not a regular file");
	}
	*reader = (struct reader){ reader_read_file, file, status.st_size };
	return true;
}

void reader_close_file(struct reader_file *file)
{
	if (file->handle >= 0)
		close(file->handle);
	file->handle = -1;
}

void cursor_start(struct cursor *cursor, const struct reader *reader, int64_t limit)
{
	cursor->reader = reader;
	cursor->offset = 0;
	cursor->limit = min64(limit, reader->size_bytes);
	cursor->buffer_start = 0;
	cursor->buffered = 0;
	error_clear(&cursor->error);
}

int64_t cursor_left(const struct cursor *cursor)
{
	return cursor->limit - cursor->offset;
}

/* True if `size` more bytes can be read; if not, that is the failure. */
static bool may_take(struct cursor *cursor, int64_t size)
{
	if (cursor_failed(cursor))
		return false;
	if (size >= 0 && size <= cursor_left(cursor))
		return true;
	if (cursor->limit < cursor->reader->size_bytes)
		return error_set(&cursor->error, ERROR_INVALID,
		                 "its header is longer than the limit of %lld bytes",
		                 (long long)cursor->limit);
	return error_set(&cursor->error, ERROR_INVALID,
	                 "it ends after %lld bytes, in the middle of its header",
	                 (long long)cursor->limit);
}

static bool reader_fill(struct cursor *cursor)
{
	cursor->buffer_start = cursor->offset;
	cursor->buffered = min64(CURSOR_BUFFER_BYTES, cursor_left(cursor));
	if (reader_bytes(cursor->reader, cursor->offset, cursor->buffer, cursor->buffered,
	                 &cursor->error))
		return true;
	cursor->buffered = 0;
	return false;
}

void cursor_read(struct cursor *cursor, void *to, int64_t size)
{
	char *at = to;
	if (!may_take(cursor, size)) {
		memset(to, 0, (size_t)max64(size, 0));
		return;
	}
	while (size > 0) {
		int64_t within = cursor->offset - cursor->buffer_start;
		if (within < 0 || within >= cursor->buffered) {
			if (!reader_fill(cursor)) {
				memset(at, 0, (size_t)size);
				return;
			}
			within = 0;
		}
		int64_t now = min64(size, cursor->buffered - within);
		memcpy(at, cursor->buffer + within, (size_t)now);
		at += now;
		size -= now;
		cursor->offset += now;
	}
}

void cursor_skip(struct cursor *cursor, int64_t size)
{
	if (may_take(cursor, size))
		cursor->offset += size;
}

static uint64_t little_endian(struct cursor *cursor, int64_t size)
{
	unsigned char bytes[8] = { 0 };
	uint64_t value = 0;
	cursor_read(cursor, bytes, size);
	for (int64_t i = size - 1; i >= 0; i--)
		value = value << 8 | bytes[i];
	return value;
}

uint8_t cursor_u8(struct cursor *cursor)
{
	return (uint8_t)little_endian(cursor, 1);
}

uint16_t cursor_u16(struct cursor *cursor)
{
	return (uint16_t)little_endian(cursor, 2);
}

uint32_t cursor_u32(struct cursor *cursor)
{
	return (uint32_t)little_endian(cursor, 4);
}

uint64_t cursor_u64(struct cursor *cursor)
{
	return little_endian(cursor, 8);
}
