/* output.c - what a task writes: files with rotation, read back by offset */
#include "agent/host/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "base/memory.h"
#include "base/number_text.h"

static const char *const stream_names[] = { "output", "errors" };

static char *path_of(const char *directory, enum output_stream stream, int64_t start)
{
	return file_path("%s/%s-%" PRId64, directory, stream_names[stream], start);
}

/* The files there are, as offsets in ascending order. */
struct starts {
	int64_t *at;
	size_t count, capacity;
};

static int compare_starts(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static struct starts list_files(const char *directory, enum output_stream stream)
{
	struct starts starts = { 0 };
	DIR *open_directory = opendir(directory);
	const struct dirent *entry;
	size_t size = strlen(stream_names[stream]);

	while (open_directory && (entry = readdir(open_directory))) {
		int64_t start;
		if (strncmp(entry->d_name, stream_names[stream], size) != 0 ||
		    entry->d_name[size] != '-')
			continue;
		if (!number_read(text_of(entry->d_name + size + 1), 0, INT64_MAX, &start))
			continue;
		array_reserve(starts.at, starts.capacity, starts.count + 1);
		starts.at[starts.count++] = start;
	}
	if (open_directory)
		closedir(open_directory);
	if (starts.count > 0)
		qsort(starts.at, starts.count, sizeof(*starts.at), compare_starts);
	return starts;
}

static int open_file(const char *directory, enum output_stream stream, int64_t start, int flags)
{
	char *path = path_of(directory, stream, start);
	int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);

	free(path);
	return fd;
}

static int64_t size_of(int fd)
{
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 ? status.st_size : 0;
}

bool output_open(struct output_writer *writer, const char *directory, enum output_stream stream,
                 const struct output_limits *limits, struct error *error)
{
	struct starts starts = list_files(directory, stream);

	*writer =
	    (struct output_writer){ .directory = memory_text(directory),
		                    .stream = stream,
		                    .limits = *limits,
		                    .start = starts.count > 0 ? starts.at[starts.count - 1] : 0 };
	free(starts.at);
	writer->fd = open_file(directory, stream, writer->start, O_WRONLY | O_CREAT | O_APPEND);
	if (writer->fd >= 0)
		return true;
	error_set(error, ERROR_UNAVAILABLE, "cannot write the output to %s: %s", directory,
	          strerror(errno));
	output_close(writer);
	return false;
}

static void remove_oldest(const struct output_writer *writer)
{
	struct starts starts = list_files(writer->directory, writer->stream);
	size_t most = writer->limits.files > 1 ? (size_t)writer->limits.files : 1;

	for (size_t i = 0; i + most < starts.count; i++) {
		char *path = path_of(writer->directory, writer->stream, starts.at[i]);
		unlink(path);
		free(path);
	}
	free(starts.at);
}

static void rotate(struct output_writer *writer)
{
	int64_t start = writer->start + size_of(writer->fd);
	int fd = open_file(writer->directory, writer->stream, start, O_WRONLY | O_CREAT | O_APPEND);

	if (fd < 0)
		return;
	close(writer->fd);
	writer->fd = fd;
	writer->start = start;
	remove_oldest(writer);
}

void output_append(struct output_writer *writer, const void *data, size_t size)
{
	const char *at = data;

	if (writer->fd < 0)
		return;
	if (size_of(writer->fd) >= writer->limits.file_bytes)
		rotate(writer);
	while (size > 0) {
		ssize_t done = write(writer->fd, at, size);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return;
		at += done;
		size -= (size_t)done;
	}
}

void output_close(struct output_writer *writer)
{
	if (writer->fd >= 0)
		close(writer->fd);
	free(writer->directory);
	*writer = (struct output_writer){ .fd = -1 };
}

bool output_bounds(const char *directory, enum output_stream stream, int64_t *first, int64_t *end)
{
	struct starts starts = list_files(directory, stream);
	bool any = starts.count > 0;

	if (any) {
		*first = starts.at[0];
		*end = starts.at[starts.count - 1];
		int fd = open_file(directory, stream, *end, O_RDONLY);
		*end += size_of(fd);
		if (fd >= 0)
			close(fd);
	}
	free(starts.at);
	return any;
}

/* The file that has this offset, or the first one behind it. */
static size_t file_with(const struct starts *starts, int64_t offset)
{
	size_t at = 0;

	while (at + 1 < starts->count && starts->at[at + 1] <= offset)
		at++;
	return at;
}

ssize_t output_read(const char *directory, enum output_stream stream, int64_t *offset, void *data,
                    size_t size)
{
	struct starts starts = list_files(directory, stream);
	ssize_t got = starts.count > 0 ? 0 : -1;

	for (size_t i = starts.count > 0 ? file_with(&starts, *offset) : 0;
	     i < starts.count && got == 0; i++) {
		if (*offset < starts.at[i])
			*offset = starts.at[i];
		int fd = open_file(directory, stream, starts.at[i], O_RDONLY);
		if (fd < 0)
			continue;
		got = pread(fd, data, size, *offset - starts.at[i]);
		got = got < 0 ? 0 : got;
		close(fd);
	}
	free(starts.at);
	return got;
}
