/* cgroups.c - which trees of cgroups there are, and our place in them */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/cgroup.h"
#include "agent/host/file.h"
#include "base/memory.h"

#define GROUPS_NAME "gpu-scheduler"

/* Where each tree is mounted, and where in it we are ourselves. */
struct trees {
	char *root[CGROUP_TREES];
	char *own[CGROUP_TREES];
};

static bool has_word(const char *list, const char *word)
{
	size_t size = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += size)
		if ((at == list || at[-1] == ',') && (at[size] == ',' || at[size] == '\0'))
			return true;
	return false;
}

static void find_roots(struct trees *trees)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	const struct mntent *mount;

	while (mounts && (mount = getmntent(mounts))) {
		if (strcmp(mount->mnt_type, "cgroup2") == 0 && !trees->root[TREE_UNIFIED])
			trees->root[TREE_UNIFIED] = memory_text(mount->mnt_dir);
		if (strcmp(mount->mnt_type, "cgroup") != 0)
			continue;
		for (int tree = TREE_CPU; tree < CGROUP_TREES; tree++)
			if (has_word(mount->mnt_opts, cgroup_tree_names[tree]) &&
			    !trees->root[tree])
				trees->root[tree] = memory_text(mount->mnt_dir);
	}
	if (mounts)
		endmntent(mounts);
}

/* Lines of /proc/self/cgroup: 4:memory:/some/where; the unified tree is 0::/some/where. */
static void find_own(struct trees *trees)
{
	struct buffer text = { 0 };
	char *rest = NULL;

	file_read("/proc/self/cgroup", 65536, &text);
	for (char *line = text.data ? strtok_r(text.data, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest)) {
		char *names = strchr(line, ':');
		char *path = names ? strchr(names + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		for (int tree = 0; tree < CGROUP_TREES; tree++) {
			bool same = tree == TREE_UNIFIED
			                ? names[1] == '\0'
			                : has_word(names + 1, cgroup_tree_names[tree]);
			if (same && !trees->own[tree])
				trees->own[tree] = memory_text(path);
		}
	}
	buffer_free(&text);
}

/* The place for our groups below `parent`, or NULL where we may not make it. */
static char *make_base(const char *root, const char *parent, const char *name)
{
	while (*parent == '/')
		parent++;
	char *path = file_path("%s/%s%s" GROUPS_NAME "/%s", root, parent, *parent ? "/" : "", name);
	if (file_make_directories(path, 0755, NULL) && access(path, W_OK) == 0)
		return path;
	free(path);
	return NULL;
}

static void enable(const char *directory)
{
	static const char *const controllers[] = { "+cpu", "+memory", "+pids" };
	char *path = file_path("%s/cgroup.subtree_control", directory);

	for (size_t i = 0; i < 3; i++)
		file_write(path, controllers[i]);
	free(path);
}

/* Controllers are passed down level by level. */
static void enable_controllers(struct cgroups *cgroups, const char *root)
{
	char *base = cgroups->base[TREE_UNIFIED];

	for (char *at = base + strlen(root); at; at = strchr(at + 1, '/')) {
		char rest = *at;
		*at = '\0';
		enable(base);
		*at = rest;
		if (rest == '\0')
			break;
	}
	enable(base);
	struct buffer text = { 0 };
	char *path = file_path("%s/cgroup.subtree_control", base);
	if (file_read(path, 4096, &text))
		for (int tree = TREE_CPU; tree <= TREE_PIDS; tree++)
			if (strstr(text.data, cgroup_tree_names[tree]))
				cgroups->unified_controllers |= 1u << tree;
	free(path);
	buffer_free(&text);
}

static bool offers_kill(const char *base)
{
	char *path = file_path("%s/cgroup.kill", base);
	bool offers = access(path, W_OK) == 0;

	free(path);
	return offers;
}

static void set_relative(struct cgroups *cgroups, const struct trees *trees)
{
	const char *relative = NULL;

	for (int tree = 0; tree < CGROUP_TREES; tree++) {
		if (!cgroups->base[tree])
			continue;
		const char *here = cgroups->base[tree] + strlen(trees->root[tree]);
		if (relative && strcmp(relative, here) != 0)
			return;
		relative = here;
	}
	if (relative)
		cgroups->relative = memory_text(relative + strspn(relative, "/") - 1);
}

void cgroups_open(struct cgroups *cgroups, const char *name, const char *parent)
{
	struct trees trees = { 0 };

	*cgroups = (struct cgroups){ 0 };
	if (parent && strcmp(parent, "none") == 0)
		return;
	find_roots(&trees);
	find_own(&trees);
	for (int tree = 0; tree < CGROUP_TREES; tree++) {
		if (trees.root[tree] && parent)
			cgroups->base[tree] = make_base(trees.root[tree], parent, name);
		else if (trees.root[tree]) {
			cgroups->base[tree] = make_base(trees.root[tree], "", name);
			if (!cgroups->base[tree] && trees.own[tree])
				cgroups->base[tree] =
				    make_base(trees.root[tree], trees.own[tree], name);
		}
	}
	if (cgroups->base[TREE_UNIFIED]) {
		cgroups->can_kill = offers_kill(cgroups->base[TREE_UNIFIED]);
		enable_controllers(cgroups, trees.root[TREE_UNIFIED]);
	}
	set_relative(cgroups, &trees);
	for (int tree = 0; tree < CGROUP_TREES; tree++) {
		free(trees.root[tree]);
		free(trees.own[tree]);
	}
}

bool cgroups_limit_pids(const struct cgroups *cgroups, int64_t pids)
{
	const char *base = cgroups->base[TREE_PIDS];
	char number[32];

	if (!base && (cgroups->unified_controllers & 1u << TREE_PIDS))
		base = cgroups->base[TREE_UNIFIED];
	if (!base)
		return false;
	snprintf(number, sizeof(number), "%" PRId64, pids);
	/* The directory above is the same for all agents. */
	char *path = file_path("%.*s/pids.max", (int)(strrchr(base, '/') - base), base);
	bool limited = file_write(path, pids > 0 ? number : "max");
	free(path);
	return limited;
}

void cgroups_close(struct cgroups *cgroups)
{
	for (int tree = 0; tree < CGROUP_TREES; tree++)
		free(cgroups->base[tree]);
	free(cgroups->relative);
	*cgroups = (struct cgroups){ 0 };
}

static bool any_tree(const struct cgroups *cgroups)
{
	for (int tree = 0; tree < CGROUP_TREES; tree++)
		if (cgroups->base[tree])
			return true;
	return false;
}

void cgroups_describe(const struct cgroups *cgroups, struct buffer *buffer)
{
	if (!any_tree(cgroups)) {
		buffer_text(buffer,
		            "no cgroups can be made here: tasks are followed by their keeper, "
		            "and their CPU, memory and devices are not limited");
		return;
	}
	buffer_text(buffer, "tasks run in cgroups; limited are:");
	const char *before = " ";
	for (int tree = TREE_CPU; tree <= TREE_DEVICES; tree++) {
		bool limited = cgroups->base[tree] || (cgroups->unified_controllers & 1u << tree) ||
		               (tree == TREE_DEVICES && cgroups->base[TREE_UNIFIED]);
		if (!limited)
			continue;
		buffer_print(buffer, "%s%s", before, cgroup_tree_names[tree]);
		before = ", ";
	}
	if (*before == ' ')
		buffer_text(buffer, " nothing");
	buffer_text(buffer,
	            cgroups->can_kill ? "; killed as a whole" : "; killed one by one, frozen");
}

void cgroups_list(const struct cgroups *cgroups, void (*each)(void *context, int64_t id),
                  void *context)
{
	struct buffer seen = { 0 };

	for (int tree = 0; tree < CGROUP_TREES; tree++) {
		DIR *directory = cgroups->base[tree] ? opendir(cgroups->base[tree]) : NULL;
		const struct dirent *entry;
		while (directory && (entry = readdir(directory))) {
			int64_t id = 0, other = 0;
			bool known = false;
			if (sscanf(entry->d_name, "work-%" SCNd64, &id) != 1 || id <= 0)
				continue;
			for (size_t at = 0; at < seen.size && !known; at += sizeof(other)) {
				memcpy(&other, seen.data + at, sizeof(other));
				known = other == id;
			}
			if (!known)
				buffer_bytes(&seen, &id, sizeof(id));
		}
		if (directory)
			closedir(directory);
	}
	for (size_t at = 0; at < seen.size; at += sizeof(int64_t)) {
		int64_t id;
		memcpy(&id, seen.data + at, sizeof(id));
		each(context, id);
	}
	buffer_free(&seen);
}

/* The last part of the base and the group: what is in /proc/PID/cgroup depends on the
 * namespace that we look from. */
int64_t cgroups_of_process(const struct cgroups *cgroups, pid_t pid)
{
	struct buffer text = { 0 };
	const char *name = NULL;
	char path[64];
	int64_t id = 0;

	for (int tree = 0; tree < CGROUP_TREES && !name; tree++)
		name = cgroups->base[tree] ? strrchr(cgroups->base[tree], '/') : NULL;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	if (name && file_read(path, 65536, &text)) {
		char *wanted = file_path("/" GROUPS_NAME "%s/work-", name);
		const char *at = strstr(text.data, wanted);
		if (at)
			id = atoll(at + strlen(wanted));
		free(wanted);
	}
	buffer_free(&text);
	return id > 0 ? id : 0;
}
