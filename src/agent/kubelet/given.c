/* given.c - what a node gives to containers that use its GPUs */
#include "agent/kubelet/given.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "agent/host/file.h"

static bool has_rule(const struct buffer *rules, dev_t device)
{
	const struct device_rule *rule = (const void *)rules->data;

	for (size_t i = 0; i < rules->size / sizeof(*rule); i++)
		if (rule[i].major == (int)major(device) && rule[i].minor == (int)minor(device))
			return true;
	return false;
}

static void list_devices(struct given *given, const struct buffer *rules, const char *path)
{
	DIR *directory = opendir(path);
	struct stat status;

	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		char *file = file_path("%s/%s", path, entry->d_name);
		if (strncmp(entry->d_name, "nvidia", 6) == 0 && given->device_count < GIVEN_MAX &&
		    stat(file, &status) == 0 && S_ISCHR(status.st_mode) &&
		    has_rule(rules, status.st_rdev))
			given->devices[given->device_count++] = arena_string(&given->arena, file);
		free(file);
	}
	if (directory)
		closedir(directory);
}

/* What a program needs of the driver, beside its device files. */
static const char *const libraries[] = {
	"libcuda.so.1",          "libnvidia-ml.so.1",     "libnvidia-ptxjitcompiler.so.1",
	"libnvidia-nvvm.so.4",   "libnvidia-nvvm70.so.4", "libcudadebugger.so.1",
	"libnvidia-opencl.so.1", "libnvidia-cfg.so.1",
};
static const char *const directories[] = { "/usr/lib/x86_64-linux-gnu",
	                                   "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib" };

static bool is_mounted(const struct given *given, const char *to)
{
	const char *name = strrchr(to, '/');

	for (int64_t i = 0; i < given->mount_count; i++)
		if (strcmp(strrchr(given->mounts[i].to, '/'), name) == 0)
			return true;
	return false;
}

/* The file as the runtime sees it: links are followed within the root. */
static void list_mount(const char *root, struct given *given, const char *path)
{
	char *here = file_path("%s%s", root, path), real[PATH_MAX];
	size_t size = strlen(root);

	if (given->mount_count < GIVEN_MAX && !is_mounted(given, path) && realpath(here, real) &&
	    strncmp(real, root, size) == 0)
		given->mounts[given->mount_count++] =
		    (struct cdi_mount){ .from = arena_string(&given->arena, real + size),
			                .to = arena_string(&given->arena, path),
			                .read_only = true };
	free(here);
}

static void list_libraries(const char *root, struct given *given)
{
	for (size_t d = 0; d < sizeof(directories) / sizeof(*directories); d++)
		for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++) {
			char *path = file_path("%s/%s", directories[d], libraries[i]);
			list_mount(root, given, path);
			free(path);
		}
	list_mount(root, given, "/usr/bin/nvidia-smi");
}

void given_add(struct given *given, struct gpu_source *source, const char *uuid)
{
	if (source->kind->devices)
		source->kind->devices(source, uuid, &given->rules);
}

void given_find(struct given *given, const char *root)
{
	if (given->rules.size == 0)
		return;
	list_devices(given, &given->rules, "/dev");
	list_devices(given, &given->rules, "/dev/nvidia-caps");
	list_libraries(root, given);
}

void given_free(struct given *given)
{
	arena_free(&given->arena);
	buffer_free(&given->rules);
}
