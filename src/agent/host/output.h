/* output.h - what a task writes: files with rotation, read back by offset */
#ifndef AGENT_HOST_OUTPUT_H
#define AGENT_HOST_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* An output is a row of files in a directory, each named after the offset at which it
 * begins: output-0, output-67108864, ... The oldest are removed when there are more than
 * allowed; offsets stay what they were. Standard error is such a row of its own (errors-0)
 * where it is kept apart. */
enum output_stream { STREAM_OUTPUT, STREAM_ERRORS };

struct output_limits {
	int64_t file_bytes; /* a file that is larger is followed by another */
	int64_t files;      /* the most files to keep, at least 1 */
};

struct output_writer {
	char *directory;
	enum output_stream stream;
	struct output_limits limits;
	int fd;
	int64_t start; /* of the file that is written */
};

/* Appends to what is there. False with a reason. */
bool output_open(struct output_writer *writer, const char *directory, enum output_stream stream,
                 const struct output_limits *limits, struct error *error);
/* Output that cannot be written (a full disk) is lost, and the task continues. */
void output_append(struct output_writer *writer, const void *data, size_t size);
void output_close(struct output_writer *writer);

/* From where to where there is something. False where there is no output. */
bool output_bounds(const char *directory, enum output_stream stream, int64_t *first, int64_t *end);
/* Reads from `*offset` on, or, where that is gone, from the first byte that is kept, which is
 * then in `*offset`. How many bytes; 0 at the end; -1 where there is no output. */
ssize_t output_read(const char *directory, enum output_stream stream, int64_t *offset, void *data,
                    size_t size);

#endif
