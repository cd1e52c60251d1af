/* cgroup.h - the group of processes that a task is: limits, and nothing escapes a kill */
#ifndef AGENT_HOST_CGROUP_H
#define AGENT_HOST_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"

/* Three kinds of system: everything in one tree (v2); controllers in trees of their own (v1),
 * perhaps with a tree without controllers beside them that can kill and freeze; and none that
 * we may write to. Then a group is the descendants of its keeper, which adopts those whose
 * parents end, so none of them gets lost while the keeper lives. */
enum cgroup_tree {
	TREE_UNIFIED,
	TREE_CPU,
	TREE_MEMORY,
	TREE_PIDS,
	TREE_DEVICES,
	TREE_FREEZER,
	CGROUP_TREES,
};
extern const char *const cgroup_tree_names[CGROUP_TREES];

/* Where this agent makes its groups. `base` is NULL for a tree that is not there or not
 * ours to write to. Controllers of the unified tree: bits 1 << TREE_CPU and so on. */
struct cgroups {
	char *base[CGROUP_TREES];
	char *relative; /* the same below the roots of the trees; NULL: it is not the same in all */
	unsigned unified_controllers;
	bool can_kill; /* the unified tree has cgroup.kill */
};

/* Finds the cgroup hierarchies and makes parents for groups of this name. Never fails: it
 * leaves out what the system does not offer. `parent`: where in the hierarchies, NULL to choose. */
void cgroups_open(struct cgroups *cgroups, const char *name, const char *parent);
/* Limits the processes of all works together, those of other agents on this machine included; 0:
 * not limited. False where the system does not offer that. */
bool cgroups_limit_pids(const struct cgroups *cgroups, int64_t pids);
void cgroups_close(struct cgroups *cgroups);
/* A sentence about what is used and what is missing. */
void cgroups_describe(const struct cgroups *cgroups, struct buffer *buffer);
/* Calls `each` with the number of every group that is there. */
void cgroups_list(const struct cgroups *cgroups, void (*each)(void *context, int64_t id),
                  void *context);
/* In whose group a process is; 0: nobody's. Not known (0) where there are no trees. */
int64_t cgroups_of_process(const struct cgroups *cgroups, pid_t pid);

struct device_rule {
	bool is_block;
	int64_t major, minor; /* negative: any */
};

/* 0: not limited. Devices are limited only where `limit_devices`: to what every process
 * needs (null, zero, random, terminals) and those that are listed. */
struct cgroup_limits {
	int64_t cpu_milli, memory_bytes, pids;
	bool limit_devices;
	const struct device_rule *devices;
	int device_count;
};

/* One group. `path` has the trees that it is in; without any, it is what descends from
 * `keeper`. */
struct cgroup {
	char *path[CGROUP_TREES];
	bool can_kill;
	pid_t keeper;
};

/* The group of this number; nothing is made. */
struct cgroup cgroups_group(const struct cgroups *cgroups, int64_t id);
void cgroup_free(struct cgroup *group);

/* Makes it, in the trees that it needs, and limits it. False with a reason: nothing is left.
 * A limit that the system does not offer is left out. */
bool cgroup_make(const struct cgroups *cgroups, struct cgroup *group,
                 const struct cgroup_limits *limits, struct error *error);
/* Makes a group beside it, in the same trees and with the same limits, but without access to any
 * GPU: for programs that run after it and must not be killed with it. Limits
 * that the system does not offer are left out. False with errno: nothing is left behind. */
bool cgroup_make_beside(const struct cgroup *group, struct cgroup *beside);
/* Moves the calling process in. Async-signal-safe. False, with errno. */
bool cgroup_enter(const struct cgroup *group);
/* True if there is a process in it that has not ended. */
bool cgroup_is_populated(const struct cgroup *group);
/* Appends the numbers of its processes, int64_t each. */
void cgroup_processes(const struct cgroup *group, struct buffer *pids);
bool cgroup_has(const struct cgroup *group, pid_t pid);
void cgroup_signal(const struct cgroup *group, int number);
/* Its limit of host memory from here on. Does nothing where that is not limited. */
void cgroup_limit_memory(const struct cgroup *group, int64_t bytes);
void cgroup_freeze(const struct cgroup *group, bool frozen);
/* Kills all that is in it now, also what is frozen. */
void cgroup_kill(const struct cgroup *group);
/* The host memory that it uses; -1: not known. */
int64_t cgroup_memory_bytes(const struct cgroup *group);
/* The most host memory it used; -1: not known. */
int64_t cgroup_peak_bytes(const struct cgroup *group);
/* How many of its processes were killed because it reached its limit of host memory, or the machine
 * had none left; 0 where that is not known. */
int64_t cgroup_memory_kills(const struct cgroup *group);
/* The processor time that it used, in ms; -1: not known. */
int64_t cgroup_cpu_ms(const struct cgroup *group);
/* Removes it from the trees, where it is empty. False where it is not. What is left of a group
 * beside it is killed and removed. */
bool cgroup_remove(const struct cgroup *group);

#endif
