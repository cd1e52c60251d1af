/* window.c - times in which nodes or GPUs are kept for some jobs, or for none */
#include "core/cluster/window.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/cluster/cluster.h"

#define REASON_MAX 1024
#define LEAD_MAX_MS (366 * WINDOW_DAY_MS)

static int64_t period_ms(const struct window_record *window)
{
	return window->repeat == WINDOW_WEEKLY ? 7 * WINDOW_DAY_MS : WINDOW_DAY_MS;
}

struct window_time window_time(const struct window_record *window, int64_t at_ms)
{
	int64_t begin_ms = window->start_ms;

	if (at_ms >= begin_ms + window->length_ms) {
		if (window->repeat == WINDOW_ONCE)
			return (struct window_time){ INT64_MAX, INT64_MAX };
		int64_t period = period_ms(window);
		begin_ms += (at_ms - begin_ms) / period * period;
		if (at_ms >= begin_ms + window->length_ms)
			begin_ms += period;
	}
	return (struct window_time){ begin_ms, begin_ms + window->length_ms };
}

struct window *windows_named(const struct windows *windows, const char *name)
{
	for (int i = 0; i < windows->count; i++)
		if (strcmp(windows->at[i]->r.name, name) == 0)
			return windows->at[i];
	return NULL;
}

static bool is_word(const char *name)
{
	size_t size = strlen(name);

	if (size < 1 || size > 64 || name[0] == '-' || name[0] == '.')
		return false;
	for (size_t i = 0; i < size; i++)
		if (!((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
		      (name[i] >= '0' && name[i] <= '9') || strchr("-_.", name[i])))
			return false;
	return true;
}

/* Lines that are neither empty nor longer than a name may be. */
static bool is_list(const char *list)
{
	if (!list || strlen(list) > WINDOW_LIST_MAX)
		return false;
	while (*list) {
		size_t size = strcspn(list, "\n");
		if (size == 0 || size > JOB_NAME_BYTES_MAX)
			return false;
		list += size + (list[size] == '\n');
	}
	return true;
}

static bool check_times(const struct window_record *window, struct error *error)
{
	bool repeats = window->repeat != WINDOW_ONCE;

	if (window->start_ms < 1 || window->start_ms > TIME_MS_MAX)
		return error_set(error, ERROR_INVALID, "start must be a time");
	if (window->length_ms < 1000 || window->length_ms > LEAD_MAX_MS)
		return error_set(error, ERROR_INVALID, "length must be from 1 s to 366 days");
	if (repeats && window->length_ms >= period_ms(window))
		return error_set(error, ERROR_INVALID,
		                 "length must be shorter than the time after which it repeats");
	if (window->lead_ms < 0 || window->lead_ms > LEAD_MAX_MS)
		return error_set(error, ERROR_INVALID, "lead must be from 0 to 366 days");
	if (window->grace_ms < 0 || window->grace_ms > LEAD_MAX_MS)
		return error_set(error, ERROR_INVALID, "grace must be from 0 to 366 days");
	return true;
}

bool window_check(const struct window_record *window, struct error *error)
{
	if (!window->name || !is_word(window->name))
		return error_set(error, ERROR_INVALID,
		                 "name must be 1 to 64 letters, digits, '-', '_' and '.'");
	if (!window->reason || strlen(window->reason) > REASON_MAX)
		return error_set(error, ERROR_INVALID, "reason is longer than %d bytes",
		                 REASON_MAX);
	if (!window->user || strlen(window->user) > JOB_NAME_BYTES_MAX)
		return error_set(error, ERROR_INVALID, "user is longer than %d bytes",
		                 JOB_NAME_BYTES_MAX);
	if (!word_of(&window_repeat_words, window->repeat))
		return error_set(error, ERROR_INVALID, "repeat must be none, daily or weekly");
	if (!is_list(window->nodes) || !is_list(window->gpus))
		return error_set(error, ERROR_INVALID, "nodes and GPUs must be lists of names");
	if (!*window->nodes && !*window->gpus)
		return error_set(error, ERROR_INVALID, "it names no node and no GPU");
	if (window->maintenance && window->tenant_id != 0)
		return error_set(error, ERROR_INVALID,
		                 "maintenance is for no tenant: nothing runs in it");
	return check_times(window, error);
}

/* Copies of the record's texts in one block. */
static void copy_texts(struct window *window)
{
	const char **texts[] = { &window->r.name, &window->r.reason, &window->r.user,
		                 &window->r.nodes, &window->r.gpus };
	size_t size = 0;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		size += strlen(*texts[i]) + 1;
	char *at = window->texts = memory_alloc(size);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		size_t bytes = strlen(*texts[i]) + 1;
		*texts[i] = memcpy(at, *texts[i], bytes);
		at += bytes;
	}
}

struct window *windows_add(struct windows *windows, const struct window_record *record)
{
	struct window *window = NEW(struct window);
	int at = windows->count++;

	INVARIANT(windows->count <= WINDOWS_MAX);
	window->r = *record;
	copy_texts(window);
	for (; at > 0 && windows->at[at - 1]->r.id > record->id; at--)
		windows->at[at] = windows->at[at - 1];
	windows->at[at] = window;
	windows->linked = false;
	return window;
}

static void window_free(struct window *window)
{
	free(window->texts);
	free(window);
}

void windows_remove(struct windows *windows, struct window *window)
{
	int at = 0;

	while (windows->at[at] != window)
		at++;
	windows->count--;
	memmove(windows->at + at, windows->at + at + 1,
	        (size_t)(windows->count - at) * sizeof(struct window *));
	windows->linked = false;
	window_free(window);
}

void windows_free(struct windows *windows)
{
	for (int i = 0; i < windows->count; i++)
		window_free(windows->at[i]);
	*windows = (struct windows){ 0 };
}

bool window_lists(const char *list, const char *line)
{
	size_t wanted = strlen(line);

	while (*list) {
		size_t size = strcspn(list, "\n");
		if (size == wanted && memcmp(list, line, size) == 0)
			return true;
		list += size + (list[size] == '\n');
	}
	return false;
}

static void link_node(struct node *node, const struct window *window, uint64_t bit)
{
	bool all = window_lists(window->r.nodes, node->r.name);
	bool any = all;

	node->windows |= all ? bit : 0;
	for (int g = 0; g < node->gpu_count; g++) {
		struct gpu *gpu = node->gpus[g];
		if (!all && !window_lists(window->r.gpus, gpu->r.uuid))
			continue;
		gpu->windows |= bit;
		any = true;
	}
	node->in_windows |= any;
}

void windows_link(struct cluster *cluster)
{
	struct windows *windows = &cluster->windows;

	for (size_t i = 0; i < cluster->node_count; i++) {
		struct node *node = cluster->nodes[i];
		node->windows = 0;
		node->in_windows = false;
		for (int g = 0; g < node->gpu_count; g++)
			node->gpus[g]->windows = 0;
		for (int w = 0; w < windows->count; w++)
			link_node(node, windows->at[w], UINT64_C(1) << w);
	}
	windows->linked = true;
}
