/* pod_group.c - the cgroups that a kubelet makes for pods: found by the pod's uid */
#include "agent/host/pod_group.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/host/file.h"

/* kubelet, kubepods, quality of service, pod; and one more for a tree of its own. */
#define DEPTH_MAX 6
#define PROCS_BYTES_MAX ((size_t)1 << 20)
enum { UID_MAX = 63 };

bool pod_group_uid_is_valid(const char *uid)
{
	size_t size = strlen(uid);

	for (size_t i = 0; i < size; i++)
		if (!isalnum((unsigned char)uid[i]) && uid[i] != '-')
			return false;
	return size > 0 && size <= UID_MAX;
}

/* `name` of `size` bytes is the group of the pod. */
static bool is_of_pod(const char *name, size_t size, const char *uid)
{
	static const char before[] = "pod", after[] = ".slice";
	char dashed[UID_MAX + sizeof(before)];
	size_t length = (size_t)snprintf(dashed, sizeof(dashed), "%s%s", before, uid);

	if (size == length && memcmp(name, dashed, size) == 0)
		return true;
	for (char *at = dashed; *at; at++)
		if (*at == '-')
			*at = '_';
	size_t tail = sizeof(after) - 1;
	if (size < length + tail || memcmp(name + size - tail, after, tail) != 0)
		return false;
	const char *start = name + size - tail - length;
	return memcmp(start, dashed, length) == 0 && (start == name || start[-1] == '-');
}

bool pod_group_is_named(const char *text, const char *uid)
{
	while (*text) {
		size_t size = strcspn(text, "/\n");
		if (is_of_pod(text, size, uid))
			return true;
		text += size + (text[size] != '\0');
	}
	return false;
}

/* Groups above those of pods; nothing else is looked into. */
static bool leads_to_pods(const char *name)
{
	return strstr(name, "kubepods") || strncmp(name, "kubelet", 7) == 0 ||
	       strcmp(name, "burstable") == 0 || strcmp(name, "besteffort") == 0;
}

static pid_t first_in(const char *directory)
{
	struct buffer text = { 0 };
	char *path = file_path("%s/cgroup.procs", directory);
	pid_t pid = file_read(path, PROCS_BYTES_MAX, &text) ? (pid_t)atoi(text.data) : 0;

	free(path);
	buffer_free(&text);
	return pid > 0 ? pid : 0;
}

/* The next directory below; NULL: no more. */
static const char *next_below(DIR *directory)
{
	const struct dirent *entry;

	while ((entry = readdir(directory)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			return entry->d_name;
	return NULL;
}

static pid_t process_below(const char *path, int depth) /* NOLINT(misc-no-recursion) */
{
	pid_t pid = first_in(path);
	DIR *directory = pid == 0 && depth > 0 ? opendir(path) : NULL;
	const char *name;

	while (directory && pid == 0 && (name = next_below(directory))) {
		char *below = file_path("%s/%s", path, name);
		pid = process_below(below, depth - 1);
		free(below);
	}
	if (directory)
		closedir(directory);
	return pid;
}

static pid_t pod_process(const char *path, const char *uid, int depth) /* NOLINT(misc-no-recursion)
                                                                        */
{
	DIR *directory = opendir(path);
	const char *name;
	pid_t pid = 0;

	while (directory && pid == 0 && (name = next_below(directory))) {
		bool found = is_of_pod(name, strlen(name), uid);
		if (!found && (depth == 0 || !leads_to_pods(name)))
			continue;
		char *below = file_path("%s/%s", path, name);
		pid = found ? process_below(below, DEPTH_MAX) : pod_process(below, uid, depth - 1);
		free(below);
	}
	if (directory)
		closedir(directory);
	return pid;
}

pid_t pod_group_process(const char *root, const char *uid)
{
	char *controllers = file_path("%s/cgroup.controllers", root);
	bool unified = access(controllers, F_OK) == 0;
	pid_t pid = pod_process(root, uid, DEPTH_MAX);
	DIR *directory = unified || pid > 0 ? NULL : opendir(root);
	const char *name;

	free(controllers);
	while (directory && pid == 0 && (name = next_below(directory))) {
		char *tree = file_path("%s/%s", root, name);
		pid = pod_process(tree, uid, DEPTH_MAX);
		free(tree);
	}
	if (directory)
		closedir(directory);
	return pid;
}
