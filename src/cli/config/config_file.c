/* config_file.c - where contexts and tokens are kept, and that nobody else reads them */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/config/config.h"

enum { FILE_MAX_BYTES = 1 << 20 };

bool config_path(struct buffer *path, struct error *error)
{
	const char *said = getenv("GPU_SCHEDULER_CONFIG"), *base = getenv("XDG_CONFIG_HOME"),
		   *home = getenv("HOME");
	if (said && *said)
		buffer_text(path, said);
	else if (base && *base == '/')
		buffer_print(path, "%s/gpu-scheduler/config.yaml", base);
	else if (home && *home)
		buffer_print(path, "%s/.config/gpu-scheduler/config.yaml", home);
	else
		return error_set(error, ERROR_NOT_FOUND,
		                 "there is no HOME to look for a configuration in: set "
		                 "GPU_SCHEDULER_CONFIG");
	return true;
}

/* All of a file; its mode in `*mode`. False with errno where it cannot be read. */
static bool config_file_read_file(const char *path, struct buffer *to, mode_t *mode)
{
	char data[4096];
	struct stat status;
	ssize_t got = -1;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	if (fstat(file, &status) == 0) {
		*mode = status.st_mode;
		while ((got = read(file, data, sizeof(data))) > 0 && to->size < FILE_MAX_BYTES)
			buffer_bytes(to, data, (size_t)got);
	}
	int kept = errno;
	close(file);
	explicit_bzero(data, sizeof(data));
	buffer_text(to, "");
	errno = got > 0 ? EFBIG : kept;
	return got == 0;
}

static bool is_private(mode_t mode)
{
	return (mode & (S_IRWXG | S_IRWXO)) == 0;
}

static bool refuse_open(const char *path, struct error *error)
{
	return error_set(error, ERROR_FORBIDDEN,
	                 "%.140s has a token in it and can be read by others: chmod 600 it", path);
}

static bool has_token(const struct config *config)
{
	for (size_t i = 0; i < config->count; i++)
		if (config->contexts[i].token)
			return true;
	return false;
}

bool config_load(struct config *config, const char *path, struct error *error)
{
	struct buffer text = { 0 };
	mode_t mode = 0;
	bool good = config_file_read_file(path, &text, &mode);
	if (!good && (errno == ENOENT || errno == ENOTDIR))
		good = true;
	else if (!good)
		error_set(error, ERROR_FORBIDDEN, "cannot read %.140s: %s", path, strerror(errno));
	else
		good = config_parse(config, path, text.data, text.size, error);
	if (good && has_token(config) && !is_private(mode))
		good = refuse_open(path, error);
	if (text.data)
		explicit_bzero(text.data, text.size);
	buffer_free(&text);
	return good;
}

const char *config_read_token(const char *path, struct arena *arena, struct error *error)
{
	struct buffer text = { 0 };
	mode_t mode = 0;
	const char *token = NULL;
	if (!config_file_read_file(path, &text, &mode)) {
		error_set(error, ERROR_FORBIDDEN, "cannot read the token in %.140s: %s", path,
		          strerror(errno));
	} else if (S_ISREG(mode) && !is_private(mode)) {
		refuse_open(path, error);
	} else {
		size_t size = strcspn(text.data, " \t\r\n");
		text.data[size] = '\0';
		if (size == 0)
			error_set(error, ERROR_INVALID, "there is no token in %.140s", path);
		else
			token = arena_string(arena, text.data);
	}
	if (text.data)
		explicit_bzero(text.data, text.size);
	buffer_free(&text);
	return token;
}

/* The directories that lead to a file, each for its owner alone where it is new. */
static bool make_directories(const char *path)
{
	char *copy = memory_text(path);
	bool good = true;
	for (char *at = strchr(copy + 1, '/'); at && good; at = strchr(at + 1, '/')) {
		*at = '\0';
		good = mkdir(copy, 0700) == 0 || errno == EEXIST;
		*at = '/';
	}
	free(copy);
	return good;
}

static bool config_file_write_all(int file, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t written = write(file, data, size);
		if (written < 0 && errno != EINTR)
			return false;
		if (written > 0) {
			data += written;
			size -= (size_t)written;
		}
	}
	return fsync(file) == 0;
}

bool config_write_private(const char *path, const char *data, size_t size, struct error *error)
{
	struct buffer temporary = { 0 };
	bool good = make_directories(path);
	buffer_print(&temporary, "%s.XXXXXX", path);
	int file = good ? mkstemp(temporary.data) : -1;
	good = file >= 0 && config_file_write_all(file, data, size);
	if (file >= 0 && close(file) != 0)
		good = false;
	if (good && rename(temporary.data, path) != 0)
		good = false;
	if (!good) {
		error_set(error, ERROR_FORBIDDEN, "cannot write %.140s: %s", path, strerror(errno));
		if (file >= 0)
			unlink(temporary.data);
	}
	buffer_free(&temporary);
	return good;
}

bool config_save(const struct config *config, const char *path, struct error *error)
{
	struct buffer text = { 0 };
	config_print(config, &text);
	bool good = config_write_private(path, text.data, text.size, error);
	explicit_bzero(text.data, text.size);
	buffer_free(&text);
	return good;
}
