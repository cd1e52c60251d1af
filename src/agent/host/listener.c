/* listener.c - whose socket it is that listens on a port of this machine */
#include "agent/host/listener.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/host/file.h"

#define STATE_LISTEN 0x0a
#define LOOKS 3 /* a socket may be closed, or passed to a child, while processes are read */
#define LOOK_PAUSE_US 20000

bool listener_read_line(const char *line, int64_t port, struct listener *listener)
{
	unsigned at = 0, state = 0;
	uint64_t inode = 0;
	int64_t uid = 0;

	/* sl local:port remote:port state tx:rx timer:when retransmits uid timeout inode */
	if (sscanf(line,
	           "%*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %" SCNd64
	           " %*d %" SCNu64,
	           &at, &state, &uid, &inode) != 4 ||
	    state != STATE_LISTEN || (int64_t)at != port)
		return false;
	*listener = (struct listener){ .inode = inode, .uid = uid };
	return true;
}

/* Appends struct listener. True if the table is there: a system may be without IPv6. */
static bool read_table(const char *path, int64_t port, struct buffer *listeners)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t capacity = 0;
	struct listener listener;

	if (!file)
		return false;
	while (getline(&line, &capacity, file) > 0)
		if (listener_read_line(line, port, &listener))
			buffer_bytes(listeners, &listener, sizeof(listener));
	bool whole = !ferror(file);
	free(line);
	fclose(file);
	return whole;
}

static bool read_tables(int64_t port, struct buffer *listeners)
{
	buffer_clear(listeners);
	bool four = read_table("/proc/net/tcp", port, listeners);
	bool six = read_table("/proc/net/tcp6", port, listeners);

	return four || six;
}

static size_t listener_count_of(const struct buffer *listeners)
{
	return listeners->size / sizeof(struct listener);
}

static struct listener *at(const struct buffer *listeners, size_t i)
{
	return (struct listener *)(void *)listeners->data + i;
}

/* Takes a socket that one of our processes holds off the list. */
static void take_off(struct buffer *listeners, uint64_t inode)
{
	for (size_t i = listener_count_of(listeners); i-- > 0;) {
		if (at(listeners, i)->inode != inode)
			continue;
		*at(listeners, i) = *at(listeners, listener_count_of(listeners) - 1);
		listeners->size -= sizeof(struct listener);
	}
}

static void take_off_held(struct buffer *listeners, int64_t pid)
{
	char *path = file_path("/proc/%" PRId64 "/fd", pid);
	DIR *directory = opendir(path);
	const struct dirent *entry;

	while (directory && listeners->size > 0 && (entry = readdir(directory))) {
		char target[64];
		uint64_t inode = 0;
		ssize_t size =
		    readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);
		if (size <= 0)
			continue;
		target[size] = '\0';
		if (sscanf(target, "socket:[%" SCNu64 "]", &inode) == 1)
			take_off(listeners, inode);
	}
	if (directory)
		closedir(directory);
	free(path);
}

/* Leaves those that no process of the group holds. */
static void take_off_own(const struct cgroup *group, struct buffer *listeners)
{
	struct buffer pids = { 0 };

	cgroup_processes(group, &pids);
	for (size_t i = 0; listeners->size > 0 && i < pids.size / sizeof(int64_t); i++) {
		int64_t pid;
		memcpy(&pid, pids.data + i * sizeof(pid), sizeof(pid));
		take_off_held(listeners, pid);
	}
	buffer_free(&pids);
}

static enum listener_owner look_once(const struct cgroup *group, int64_t port,
                                     struct buffer *listeners)
{
	if (!read_tables(port, listeners))
		return LISTENER_UNKNOWN;
	if (listeners->size == 0)
		return LISTENER_NONE;
	take_off_own(group, listeners);
	return listeners->size == 0 ? LISTENER_OWN : LISTENER_FOREIGN;
}

enum listener_owner listener_look(const struct cgroup *group, int64_t port, int64_t *uid)
{
	struct buffer listeners = { 0 };
	enum listener_owner owner = look_once(group, port, &listeners);

	for (int i = 1; i < LOOKS && owner == LISTENER_FOREIGN; i++) {
		usleep(LOOK_PAUSE_US);
		owner = look_once(group, port, &listeners);
	}
	*uid = owner == LISTENER_FOREIGN ? at(&listeners, 0)->uid : -1;
	buffer_free(&listeners);
	return owner;
}
