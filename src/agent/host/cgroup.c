/* cgroup.c - one group of processes: made, limited, entered, counted, killed */
#include "agent/host/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/device_filter.h"
#include "agent/host/file.h"
#include "base/memory.h"

#define PROCESSES_BYTES (1u << 20)
#define CPU_PERIOD_US 100000
/* A name that begins with that of the group, so that an agent that starts knows whose it is. */
#define BESIDE_SUFFIX "-clean-up"

const char *const cgroup_tree_names[CGROUP_TREES] = { "unified", "cpu",     "memory",
	                                              "pids",    "devices", "freezer" };

struct cgroup cgroups_group(const struct cgroups *cgroups, int64_t id)
{
	struct cgroup group = { .can_kill = cgroups->can_kill };

	for (int tree = 0; tree < CGROUP_TREES; tree++)
		if (cgroups->base[tree])
			group.path[tree] = file_path("%s/work-%" PRId64, cgroups->base[tree], id);
	return group;
}

void cgroup_free(struct cgroup *group)
{
	for (int tree = 0; tree < CGROUP_TREES; tree++)
		free(group->path[tree]);
	*group = (struct cgroup){ 0 };
}

static bool write_to(const char *directory, const char *name, const char *text)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return file_write(path, text);
}

static bool write_number(const char *directory, const char *name, int64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, number);
	return write_to(directory, name, text);
}

/* The tree that tells which processes are in the group. */
static const char *membership(const struct cgroup *group)
{
	static const enum cgroup_tree order[] = { TREE_UNIFIED, TREE_FREEZER, TREE_PIDS,
		                                  TREE_MEMORY,  TREE_CPU,     TREE_DEVICES };

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		if (group->path[order[i]])
			return group->path[order[i]];
	return NULL;
}

/* A tree costs a directory for each task: those that would limit nothing are left out. */
static bool needs_tree(const struct cgroup *group, const struct cgroup_limits *limits, int tree)
{
	switch ((enum cgroup_tree)tree) {
	case TREE_UNIFIED:
		return true;
	case TREE_CPU:
		return limits->cpu_milli > 0;
	case TREE_MEMORY:
		return limits->memory_bytes > 0;
	case TREE_PIDS: /* all works together are limited, too */
		return true;
	case TREE_DEVICES:
		return limits->limit_devices;
	default:
		return !group->path[TREE_UNIFIED] || !group->can_kill;
	}
}

static void limit_unified(const char *path, unsigned controllers,
                          const struct cgroup_limits *limits)
{
	char text[64];

	if ((controllers & 1u << TREE_CPU) && limits->cpu_milli > 0) {
		snprintf(text, sizeof(text), "%" PRId64 " %d",
		         limits->cpu_milli * (CPU_PERIOD_US / 1000), CPU_PERIOD_US);
		write_to(path, "cpu.max", text);
	}
	if ((controllers & 1u << TREE_MEMORY) && limits->memory_bytes > 0) {
		write_number(path, "memory.max", limits->memory_bytes);
		write_number(path, "memory.swap.max", 0);
		write_number(path, "memory.oom.group", 1);
	}
	if ((controllers & 1u << TREE_PIDS) && limits->pids > 0)
		write_number(path, "pids.max", limits->pids);
}

static void allow_device(const char *path, char kind, int64_t major, int64_t minor)
{
	char text[64], number[24];

	snprintf(number, sizeof(number), "%" PRId64, minor);
	snprintf(text, sizeof(text), "%c %" PRId64 ":%s rwm", kind, major,
	         minor < 0 ? "*" : number);
	write_to(path, "devices.allow", text);
}

static bool limit_devices_v1(const char *path, const struct cgroup_limits *limits)
{
	if (!write_to(path, "devices.deny", "a"))
		return false;
	/* Container runtimes let containers make device files, and can only pass on what they may
	 * do themselves. Opening one is another right. */
	write_to(path, "devices.allow", "c *:* m");
	write_to(path, "devices.allow", "b *:* m");
	for (int i = 0; i < device_filter_common_count; i++)
		allow_device(path, 'c', device_filter_common[i].major,
		             device_filter_common[i].minor);
	for (int i = 0; i < limits->device_count; i++)
		allow_device(path, limits->devices[i].is_block ? 'b' : 'c',
		             limits->devices[i].major, limits->devices[i].minor);
	return true;
}

static bool limit(const struct cgroups *cgroups, const struct cgroup *group,
                  const struct cgroup_limits *limits, struct error *error)
{
	const char *unified = group->path[TREE_UNIFIED];

	if (unified)
		limit_unified(unified, cgroups->unified_controllers, limits);
	if (group->path[TREE_CPU]) {
		write_number(group->path[TREE_CPU], "cpu.cfs_period_us", CPU_PERIOD_US);
		write_number(group->path[TREE_CPU], "cpu.cfs_quota_us",
		             limits->cpu_milli * (CPU_PERIOD_US / 1000));
	}
	if (group->path[TREE_MEMORY])
		write_number(group->path[TREE_MEMORY], "memory.limit_in_bytes",
		             limits->memory_bytes);
	if (group->path[TREE_PIDS] && limits->pids > 0)
		write_number(group->path[TREE_PIDS], "pids.max", limits->pids);
	if (!limits->limit_devices)
		return true;
	if (group->path[TREE_DEVICES])
		return limit_devices_v1(group->path[TREE_DEVICES], limits) ||
		       error_set(error, ERROR_UNAVAILABLE, "cannot limit the devices of %s: %s",
		                 group->path[TREE_DEVICES], strerror(errno));
	return !unified || cgroups->base[TREE_DEVICES] ||
	       device_filter_attach(unified, limits->devices, limits->device_count, error);
}

bool cgroup_make(const struct cgroups *cgroups, struct cgroup *group,
                 const struct cgroup_limits *limits, struct error *error)
{
	for (int tree = 0; tree < CGROUP_TREES; tree++) {
		if (group->path[tree] && !needs_tree(group, limits, tree)) {
			free(group->path[tree]);
			group->path[tree] = NULL;
		}
		if (group->path[tree] && mkdir(group->path[tree], 0755) != 0 && errno != EEXIST) {
			error_set(error, ERROR_UNAVAILABLE, "cannot make the cgroup %s: %s",
			          group->path[tree], strerror(errno));
			cgroup_remove(group);
			return false;
		}
	}
	if (limit(cgroups, group, limits, error))
		return true;
	cgroup_remove(group);
	return false;
}

static void copy_limit(const char *from, const char *to, const char *name)
{
	struct buffer text = { 0 };
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", from, name);
	if (file_read(path, 4096, &text))
		write_to(to, name, text.data);
	buffer_free(&text);
}

static void copy_limits(const char *from, const char *to, int tree)
{
	static const char *const names[] = { "pids.max",        "memory.max",
		                             "memory.swap.max", "memory.limit_in_bytes",
		                             "cpu.max",         "cpu.cfs_period_us",
		                             "cpu.cfs_quota_us" };
	const struct cgroup_limits no_devices = { .limit_devices = true };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		copy_limit(from, to, names[i]);
	if (tree == TREE_DEVICES)
		limit_devices_v1(to, &no_devices);
	else if (tree == TREE_UNIFIED)
		device_filter_attach(to, NULL, 0, NULL);
}

bool cgroup_make_beside(const struct cgroup *group, struct cgroup *beside)
{
	*beside = (struct cgroup){ .can_kill = group->can_kill, .keeper = group->keeper };
	for (int tree = 0; tree < CGROUP_TREES; tree++) {
		if (!group->path[tree])
			continue;
		beside->path[tree] = file_path("%s" BESIDE_SUFFIX, group->path[tree]);
		if (mkdir(beside->path[tree], 0755) != 0 && errno != EEXIST) {
			int reason = errno;
			cgroup_remove(beside);
			cgroup_free(beside);
			errno = reason;
			return false;
		}
		copy_limits(group->path[tree], beside->path[tree], tree);
	}
	return true;
}

bool cgroup_enter(const struct cgroup *group)
{
	for (int tree = 0; tree < CGROUP_TREES; tree++) {
		char path[512];
		size_t size = group->path[tree] ? strlen(group->path[tree]) : 0;
		if (size == 0)
			continue;
		if (size + sizeof("/cgroup.procs") > sizeof(path)) {
			errno = ENAMETOOLONG;
			return false;
		}
		memcpy(path, group->path[tree], size);
		memcpy(path + size, "/cgroup.procs", sizeof("/cgroup.procs"));
		if (!file_write(path, "0"))
			return false;
	}
	return true;
}

static void add_pid(struct buffer *pids, int64_t pid)
{
	buffer_bytes(pids, &pid, sizeof(pid));
}

static bool holds(const struct buffer *pids, int64_t pid)
{
	for (size_t at = 0; at + sizeof(pid) <= pids->size; at += sizeof(pid))
		if (memcmp(pids->data + at, &pid, sizeof(pid)) == 0)
			return true;
	return false;
}

/* Everything whose parent is the keeper, or is in the list: until that adds nothing. */
static void descendants(pid_t keeper, struct buffer *pids)
{
	size_t before;

	if (keeper <= 0)
		return;
	do {
		before = pids->size;
		DIR *proc = opendir("/proc");
		const struct dirent *entry;
		while (proc && (entry = readdir(proc))) {
			pid_t pid = (pid_t)atoi(entry->d_name);
			if (pid <= 0 || pid == keeper || process_start(pid) == 0)
				continue;
			pid_t parent = process_parent(pid);
			if ((parent == keeper || holds(pids, parent)) && !holds(pids, pid))
				add_pid(pids, pid);
		}
		if (proc)
			closedir(proc);
	} while (pids->size > before);
}

static void cgroup_collect(const char *directory, struct buffer *pids);

/* Calls for each group below this one: containers make some. */
static void each_below(const char *directory, void (*each)(const char *directory, void *context),
                       void *context)
{
	DIR *open_directory = opendir(directory);
	const struct dirent *entry;

	while (open_directory && (entry = readdir(open_directory))) {
		if (entry->d_type != DT_DIR || *entry->d_name == '.')
			continue;
		char *path = file_path("%s/%s", directory, entry->d_name);
		each(path, context);
		free(path);
	}
	if (open_directory)
		closedir(open_directory);
}

static void collect_below(const char *directory, void *pids)
{
	cgroup_collect(directory, pids);
}

static void cgroup_collect(const char *directory, struct buffer *pids)
{
	struct buffer text = { 0 };
	char *path = file_path("%s/cgroup.procs", directory);

	if (file_read(path, PROCESSES_BYTES, &text)) {
		char *rest = NULL;
		for (char *line = strtok_r(text.data, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest))
			add_pid(pids, atoll(line));
	}
	free(path);
	buffer_free(&text);
	each_below(directory, collect_below, pids);
}

void cgroup_processes(const struct cgroup *group, struct buffer *pids)
{
	const char *directory = membership(group);

	if (directory)
		cgroup_collect(directory, pids);
	else
		descendants(group->keeper, pids);
}

bool cgroup_has(const struct cgroup *group, pid_t pid)
{
	struct buffer pids = { 0 };

	cgroup_processes(group, &pids);
	bool has = holds(&pids, pid);
	buffer_free(&pids);
	return has;
}

/* What the unified tree says about the group and all below; 0: nothing. */
static int told_populated(const struct cgroup *group)
{
	struct buffer text = { 0 };
	char path[512];
	int told = 0;

	if (!group->path[TREE_UNIFIED])
		return 0;
	snprintf(path, sizeof(path), "%s/cgroup.events", group->path[TREE_UNIFIED]);
	if (file_read(path, 4096, &text))
		told = strstr(text.data, "populated 1")   ? 1
		       : strstr(text.data, "populated 0") ? -1
		                                          : 0;
	else if (errno == ENOENT || errno == ENODEV) /* ENODEV: it went while it was read */
		told = -1;
	buffer_free(&text);
	return told;
}

bool cgroup_is_populated(const struct cgroup *group)
{
	struct buffer pids = { 0 };
	bool populated = false;
	int told = told_populated(group);

	if (told != 0)
		return told > 0;

	cgroup_processes(group, &pids);
	for (size_t at = 0; at < pids.size && !populated; at += sizeof(int64_t)) {
		int64_t pid;
		memcpy(&pid, pids.data + at, sizeof(pid));
		populated = process_start((pid_t)pid) != 0; /* a zombie holds nothing */
	}
	buffer_free(&pids);
	return populated;
}

static void kill_all(const struct buffer *pids, int number)
{
	for (size_t at = 0; at < pids->size; at += sizeof(int64_t)) {
		int64_t pid;
		memcpy(&pid, pids->data + at, sizeof(pid));
		if (pid > 0)
			kill((pid_t)pid, number);
	}
}

void cgroup_signal(const struct cgroup *group, int number)
{
	struct buffer pids = { 0 };

	cgroup_processes(group, &pids);
	kill_all(&pids, number);
	buffer_free(&pids);
}

void cgroup_limit_memory(const struct cgroup *group, int64_t bytes)
{
	if (group->path[TREE_MEMORY])
		write_number(group->path[TREE_MEMORY], "memory.limit_in_bytes", bytes);
	else if (group->path[TREE_UNIFIED])
		write_number(group->path[TREE_UNIFIED], "memory.max", bytes);
}

void cgroup_freeze(const struct cgroup *group, bool frozen)
{
	if (group->path[TREE_UNIFIED] &&
	    write_to(group->path[TREE_UNIFIED], "cgroup.freeze", frozen ? "1" : "0"))
		return;
	if (group->path[TREE_FREEZER] &&
	    write_to(group->path[TREE_FREEZER], "freezer.state", frozen ? "FROZEN" : "THAWED"))
		return;
	cgroup_signal(group, frozen ? SIGSTOP : SIGCONT);
}

void cgroup_kill(const struct cgroup *group)
{
	if (group->path[TREE_UNIFIED] && group->can_kill &&
	    write_to(group->path[TREE_UNIFIED], "cgroup.kill", "1"))
		return;
	/* What forks while it is killed would get away, so it is stopped first. */
	cgroup_freeze(group, true);
	cgroup_signal(group, SIGKILL);
	cgroup_freeze(group, false);
}

/* A number that the group has in a file of that name, in the first version or the second. */
static int64_t memory_number(const struct cgroup *group, const char *first, const char *second)
{
	int64_t bytes = -1;
	char *path = NULL;

	if (group->path[TREE_MEMORY])
		path = file_path("%s/%s", group->path[TREE_MEMORY], first);
	else if (group->path[TREE_UNIFIED])
		path = file_path("%s/%s", group->path[TREE_UNIFIED], second);
	if (path)
		bytes = file_number(path, -1);
	free(path);
	return bytes;
}

int64_t cgroup_memory_bytes(const struct cgroup *group)
{
	return memory_number(group, "memory.usage_in_bytes", "memory.current");
}

int64_t cgroup_peak_bytes(const struct cgroup *group)
{
	return memory_number(group, "memory.max_usage_in_bytes", "memory.peak");
}

/* The number of a line NAME NUMBER; -1: it is not there. */
static int64_t number_of_line(const char *path, const char *name)
{
	struct buffer text = { 0 };
	size_t size = strlen(name);
	int64_t number = -1;
	const char *line = file_read(path, 65536, &text) ? text.data : NULL;

	while (line && *line && (strncmp(line, name, size) != 0 || line[size] != ' ')) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (line && *line)
		number = atoll(line + size);
	buffer_free(&text);
	return number;
}

int64_t cgroup_memory_kills(const struct cgroup *group)
{
	int64_t kills = 0;
	char *path = NULL;

	if (group->path[TREE_MEMORY])
		path = file_path("%s/memory.oom_control", group->path[TREE_MEMORY]);
	else if (group->path[TREE_UNIFIED])
		path = file_path("%s/memory.events", group->path[TREE_UNIFIED]);
	if (path)
		kills = number_of_line(path, "oom_kill");
	free(path);
	return kills > 0 ? kills : 0;
}

int64_t cgroup_cpu_ms(const struct cgroup *group)
{
	int64_t used_us = -1;
	char *path = NULL;

	if (group->path[TREE_CPU]) {
		path = file_path("%s/cpuacct.usage", group->path[TREE_CPU]);
		int64_t used_ns = file_number(path, -1);
		used_us = used_ns < 0 ? -1 : used_ns / 1000;
	} else if (group->path[TREE_UNIFIED]) {
		path = file_path("%s/cpu.stat", group->path[TREE_UNIFIED]);
		used_us = number_of_line(path, "usage_usec");
	}
	free(path);
	return used_us < 0 ? -1 : used_us / 1000;
}

static void remove_below(const char *directory, void *nothing)
{
	each_below(directory, remove_below, nothing);
	rmdir(directory);
}

/* It is there only where a keeper was killed. */
static void remove_beside(const char *path)
{
	struct buffer pids = { 0 };
	char *beside = file_path("%s" BESIDE_SUFFIX, path);

	if (rmdir(beside) != 0 && errno != ENOENT) {
		cgroup_collect(beside, &pids);
		kill_all(&pids, SIGKILL);
		remove_below(beside, NULL);
	}
	buffer_free(&pids);
	free(beside);
}

bool cgroup_remove(const struct cgroup *group)
{
	bool removed = true;

	for (int tree = 0; tree < CGROUP_TREES; tree++) {
		const char *path = group->path[tree];
		if (path)
			remove_beside(path);
		if (!path || rmdir(path) == 0 || errno == ENOENT)
			continue;
		remove_below(path, NULL);
		removed = removed && access(path, F_OK) != 0;
	}
	return removed;
}
