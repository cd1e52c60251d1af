/* pod_group.h - the cgroups that a kubelet makes for pods: found by the pod's uid */
#ifndef AGENT_HOST_POD_GROUP_H
#define AGENT_HOST_POD_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

/* A kubelet names the group of a pod pod<uid> (driver cgroupfs) or ...-pod<uid>.slice, with '_'
 * for '-' (driver systemd), below kubepods and the pod's quality of service. `root` is where the
 * hierarchies are mounted, usually /sys/fs/cgroup: one tree (v2), or one for each controller (v1),
 * with or without the unified tree beside them. */

/* What can be a uid: letters, digits and '-', at most 63. */
bool pod_group_uid_is_valid(const char *uid);
/* A process of the pod, in whichever tree; 0: there is none. */
pid_t pod_group_process(const char *root, const char *uid);
/* True if `text`, of /proc/PID/cgroup, is that of a process of the pod. */
bool pod_group_is_named(const char *text, const char *uid);

#endif
