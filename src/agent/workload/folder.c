/* folder.c - a folder for each task on the node, with its script in it */
#include "agent/workload/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "base/clock.h"

bool folder_is_open(const char *directory)
{
	char *path = geteuid() == 0 ? realpath(directory, NULL) : NULL;
	bool open = path != NULL || geteuid() != 0;

	for (char *end = path ? path + strlen(path) : NULL; open && end;) {
		struct stat status;
		*end = '\0';
		open = stat(*path ? path : "/", &status) == 0 && (status.st_mode & S_IXOTH) != 0;
		end = strrchr(path, '/');
	}
	free(path);
	return open;
}

char *folder_base(const char *state_directory, const char *label)
{
	if (folder_is_open(state_directory))
		return file_path("%s/tasks", state_directory);
	return file_path("/tmp/gpu-agent-%s.tasks", label);
}

static bool is_ours(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
	       (status.st_mode & 022) == 0;
}

bool folder_make(const char *path, struct error *error)
{
	bool ours = (mkdir(path, 0711) == 0 || errno == EEXIST) && is_ours(path);

	if (!ours) {
		char *away =
		    file_path("%s.not-of-the-agent-%lld", path, (long long)clock_boot_ms());
		ours = rename(path, away) == 0 && mkdir(path, 0711) == 0 && is_ours(path);
		free(away);
	}
	if (!ours || chmod(path, 0711) != 0)
		return error_set(error, ERROR_UNAVAILABLE, "cannot make the directory %s", path);
	return true;
}

static char *path_of(const struct run_settings *settings, int64_t reservation_id, const char *name)
{
	return file_path("%s/%lld%s", settings->folders, (long long)reservation_id, name);
}

static bool write_script(const char *path, const struct spec *spec, struct error *error)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0500);
	size_t size = strlen(spec->script);
	bool written = fd >= 0;

	for (size_t at = 0; written && at < size;) {
		ssize_t wrote = write(fd, spec->script + at, size - at);
		written = wrote > 0;
		at += written ? (size_t)wrote : 0;
	}
	written = written && fchmod(fd, 0500) == 0 &&
	          (spec->uid < 0 || fchown(fd, (uid_t)spec->uid, (gid_t)spec->gid) == 0);
	int reason = errno;
	if (fd >= 0)
		close(fd);
	return written || error_set(error, ERROR_UNAVAILABLE, "cannot write the script %s: %s",
	                            path, strerror(reason));
}

/* Without a first line that names its interpreter it is the shell's. */
static void set_command(struct arena *arena, struct spec *spec, const char *path)
{
	bool named = strncmp(spec->script, "#!", 2) == 0;
	size_t count = 0, at = 0;

	while (spec->arguments[count])
		count++;
	char **list = arena_alloc(arena, (count + 3) * sizeof(*list));
	if (!named)
		list[at++] = arena_string(arena, "/bin/sh");
	list[at++] = arena_string(arena, path);
	memcpy(list + at, spec->arguments, (count + 1) * sizeof(*list));
	spec->arguments = list;
	spec->script = arena_string(arena, path);
}

bool folder_begin(const struct run_settings *settings, int64_t reservation_id, struct arena *arena,
                  struct run_plan *plan, struct error *error)
{
	if (!plan->spec.script)
		return true;
	char *folder = path_of(settings, reservation_id, "");
	char *script = path_of(settings, reservation_id, "/script");
	folder_end(settings, reservation_id);
	bool good = folder_make(settings->folders, error) && folder_make(folder, error) &&
	            write_script(script, &plan->spec, error);
	if (good)
		set_command(arena, &plan->spec, script);
	free(folder);
	free(script);
	return good;
}

void folder_end(const struct run_settings *settings, int64_t reservation_id)
{
	char *folder = path_of(settings, reservation_id, "");
	char *script = path_of(settings, reservation_id, "/script");

	unlink(script);
	/* The last one leaves nothing behind. */
	if (rmdir(folder) == 0)
		rmdir(settings->folders);
	free(folder);
	free(script);
}
