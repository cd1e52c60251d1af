/* file.c - a whole file, read at once */
#include "server/settings/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool file_read(const char *path, size_t bytes_max, struct buffer *content, struct error *error)
{
	char piece[4096];
	ssize_t count;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return error_set(error, ERROR_NOT_FOUND, "%s: %s", path, strerror(errno));
	while ((count = read(file, piece, sizeof(piece))) > 0 && content->size <= bytes_max)
		buffer_bytes(content, piece, (size_t)count);
	int reason = errno;
	close(file);
	if (count < 0)
		return error_set(error, ERROR_UNAVAILABLE, "%s: %s", path, strerror(reason));
	if (content->size > bytes_max)
		return error_set(error, ERROR_INVALID, "%s has more than %zu bytes", path,
		                 bytes_max);
	return true;
}
