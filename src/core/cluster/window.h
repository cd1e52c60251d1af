/* window.h - times in which nodes or GPUs are kept for some jobs, or for none */
#ifndef CORE_CLUSTER_WINDOW_H
#define CORE_CLUSTER_WINDOW_H

#include "base/error.h"
#include "core/record/record.h"

struct cluster;

/* Windows that there can be: a GPU has a bit for each. */
#define WINDOWS_MAX 64
#define WINDOW_LIST_MAX (1 << 16) /* bytes of a list of nodes or GPUs */
#define WINDOW_DAY_MS (INT64_C(24) * 3600 * 1000)

struct window {
	struct window_record r;
	char *texts; /* what the record's texts point to */
};

/* By id. The bit of a window is its place in `at`: right from windows_link() until the windows
 * or the cluster change. */
struct windows {
	struct window *at[WINDOWS_MAX];
	int count;
	bool linked;
};

/* The time of the window that is under way at `at_ms`, or else the next one; `begin_ms` is
 * INT64_MAX if there is none any more. */
struct window_time {
	int64_t begin_ms, end_ms;
};
struct window_time window_time(const struct window_record *window, int64_t at_ms);

/* NULL: there is none of that name. */
struct window *windows_named(const struct windows *windows, const char *name);
/* Whether it makes sense as it stands. */
bool window_check(const struct window_record *window, struct error *error);
/* Adds the window; texts are copied. There is room for it. */
struct window *windows_add(struct windows *windows, const struct window_record *record);
void windows_remove(struct windows *windows, struct window *window);
void windows_free(struct windows *windows);
/* Says on each node and GPU which windows it is in. */
void windows_link(struct cluster *cluster);
/* Whether the line is among the lines of the list. */
bool window_lists(const char *list, const char *line);

#endif
