/* file.c - small files: read whole, written whole; processes by /proc */
#include "agent/host/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/number_text.h"

bool file_read(const char *path, size_t most, struct buffer *buffer)
{
	char piece[4096];
	ssize_t got = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	buffer_clear(buffer);
	if (fd < 0)
		return false;
	while (buffer->size <= most && (got = read(fd, piece, sizeof(piece))) > 0)
		buffer_bytes(buffer, piece, (size_t)got);
	int reason = got < 0 ? errno : EFBIG;
	close(fd);
	errno = reason;
	buffer_text(buffer, "");
	return got == 0;
}

int64_t file_number(const char *path, int64_t otherwise)
{
	struct buffer buffer = { 0 };
	int64_t number = otherwise;

	/* Whatever follows the number, such as the end of the line, does not count. */
	if (file_read(path, 4096, &buffer)) {
		bool is_negative = *buffer.data == '-';
		struct text text = text_of(buffer.data + is_negative);
		if (number_take(&text, INT64_MAX, &number) && is_negative)
			number = -number;
	}
	buffer_free(&buffer);
	return number;
}

bool file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	size_t size = strlen(text);
	bool done = write(fd, text, size) == (ssize_t)size;
	int reason = errno;
	close(fd);
	errno = reason;
	return done;
}

static bool write_new(const char *path, const char *data, size_t size, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	bool done = fd >= 0 && fchmod(fd, mode) == 0;

	while (done && size > 0) {
		ssize_t wrote = write(fd, data, size);
		done = wrote > 0;
		data += done ? wrote : 0;
		size -= done ? (size_t)wrote : 0;
	}
	done = done && fsync(fd) == 0;
	int reason = errno;
	if (fd >= 0)
		close(fd);
	errno = reason;
	return done;
}

/* The new name lasts when its directory does. */
static bool sync_parent(const char *path)
{
	char *directory = memory_text(path);
	char *slash = strrchr(directory, '/');
	int fd = -1;

	if (slash && slash > directory) {
		*slash = '\0';
		fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	bool synced = fd >= 0 && fsync(fd) == 0;
	if (fd >= 0)
		close(fd);
	free(directory);
	return synced;
}

bool file_replace(const char *path, const char *data, size_t size, mode_t mode, struct error *error)
{
	char *new_path = file_path("%s.new", path);
	bool done = write_new(new_path, data, size, mode) && rename(new_path, path) == 0 &&
	            sync_parent(path);

	if (!done) {
		error_set(error, ERROR_UNAVAILABLE, "cannot write %s: %s", path, strerror(errno));
		unlink(new_path);
	}
	free(new_path);
	return done;
}

bool file_make_directories(const char *path, mode_t mode, struct error *error)
{
	char *copy = memory_text(path);
	bool made = true;

	for (char *at = copy + 1; made; at++) {
		if (*at != '/' && *at != '\0')
			continue;
		char rest = *at;
		*at = '\0';
		if (mkdir(copy, mode) != 0 && errno != EEXIST)
			made = error_set(error, ERROR_UNAVAILABLE,
			                 "cannot make the directory %s: %s", copy, strerror(errno));
		*at = rest;
		if (rest == '\0')
			break;
	}
	free(copy);
	return made;
}

char *file_path(const char *format, ...)
{
	char *path = NULL;
	va_list arguments;

	va_start(arguments, format);
	int size = vasprintf(&path, format, arguments);
	va_end(arguments);
	INVARIANT(size >= 0);
	return path;
}

/* What follows the name in /proc/PID/stat, which may have anything in it. */
static bool read_stat(pid_t pid, char *state, long *parent, unsigned long long *start)
{
	char path[64], text[1024];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return false;
	text[got] = '\0';
	const char *rest = strrchr(text, ')');
	return rest && sscanf(rest + 1,
	                      " %c %ld %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
	                      "%*s %*s %*s %llu",
	                      state, parent, start) == 3;
}

int64_t process_start(pid_t pid)
{
	unsigned long long start = 0;
	long parent = 0;
	char state = 0;

	if (pid <= 0 || !read_stat(pid, &state, &parent, &start) || state == 'Z' || state == 'X')
		return 0;
	return (int64_t)start;
}

bool process_exists(pid_t pid)
{
	return kill(pid, 0) == 0 || errno != ESRCH;
}

pid_t process_parent(pid_t pid)
{
	unsigned long long start = 0;
	long parent = 0;
	char state = 0;

	return read_stat(pid, &state, &parent, &start) ? (pid_t)parent : 0;
}
