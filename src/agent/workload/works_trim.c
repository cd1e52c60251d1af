/* works_trim.c - old output is removed, in a thread: there may be thousands of directories */
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "agent/workload/works_local.h"

#define YOUNG_S 60 /* what was made since is of works that the thread does not know */

/* The thread's, while it runs. */
struct works_trim {
	uv_work_t request;
	struct works *works; /* NULL: freed meanwhile */
	char *path;
	int64_t *live; /* reservations that may still write, ascending */
	size_t live_count;
	int64_t most_bytes, most_age_s;
};

struct old_output {
	char *path;
	int64_t written_s, bytes;
};

static struct old_output measure_output(char *path)
{
	struct old_output output = { .path = path };
	DIR *directory = opendir(path);
	const struct dirent *entry;
	struct stat status;

	while (directory && (entry = readdir(directory))) {
		char *file = file_path("%s/%s", path, entry->d_name);
		if (*entry->d_name != '.' && stat(file, &status) == 0) {
			output.bytes += (int64_t)status.st_size;
			if (status.st_mtim.tv_sec > output.written_s)
				output.written_s = (int64_t)status.st_mtim.tv_sec;
		}
		free(file);
	}
	if (directory)
		closedir(directory);
	return output;
}

static void remove_output(const char *path)
{
	DIR *directory = opendir(path);
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		char *file = file_path("%s/%s", path, entry->d_name);
		if (*entry->d_name != '.')
			unlink(file);
		free(file);
	}
	if (directory)
		closedir(directory);
	rmdir(path);
}

static int compare_outputs(const void *a, const void *b)
{
	const struct old_output *x = a, *y = b;

	return (x->written_s < y->written_s) - (x->written_s > y->written_s);
}

static int works_trim_compare_ids(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static bool may_remove(const struct works_trim *trim, const char *name, const char *path,
                       int64_t now_s)
{
	int64_t job, task, reservation;
	struct stat status;

	if (!works_read_name(name, &job, &task, &reservation) || stat(path, &status) != 0 ||
	    now_s - (int64_t)status.st_mtim.tv_sec < YOUNG_S)
		return false;
	return trim->live_count == 0 || !bsearch(&reservation, trim->live, trim->live_count,
	                                         sizeof(*trim->live), works_trim_compare_ids);
}

static size_t find_outputs(const struct works_trim *trim, int64_t now_s, struct old_output **found)
{
	DIR *directory = opendir(trim->path);
	const struct dirent *entry;
	struct old_output *outputs = NULL;
	size_t count = 0, capacity = 0;

	while (directory && (entry = readdir(directory))) {
		char *path = file_path("%s/%s", trim->path, entry->d_name);
		if (!may_remove(trim, entry->d_name, path, now_s)) {
			free(path);
			continue;
		}
		array_reserve(outputs, capacity, count + 1);
		outputs[count++] = measure_output(path);
	}
	if (directory)
		closedir(directory);
	*found = outputs;
	return count;
}

static void trim_outputs(uv_work_t *request)
{
	const struct works_trim *trim = request->data;
	int64_t now_s = (int64_t)time(NULL), total_bytes = 0;
	struct old_output *outputs = NULL;
	size_t count = find_outputs(trim, now_s, &outputs);

	if (count > 0)
		qsort(outputs, count, sizeof(*outputs), compare_outputs);
	for (size_t i = 0; i < count; i++) {
		total_bytes += outputs[i].bytes;
		if (total_bytes > trim->most_bytes ||
		    now_s - outputs[i].written_s > trim->most_age_s)
			remove_output(outputs[i].path);
		free(outputs[i].path);
	}
	free(outputs);
}

static void trimmed(uv_work_t *request, int status)
{
	struct works_trim *trim = request->data;

	(void)status;
	if (trim->works)
		trim->works->trim = NULL;
	free(trim->path);
	free(trim->live);
	free(trim);
}

void works_trim_outputs(struct works *works, int64_t most_bytes, int64_t most_age_s)
{
	if (works->trim)
		return;
	struct works_trim *trim = NEW(struct works_trim);
	trim->request.data = trim;
	trim->works = works;
	trim->path = file_path("%s/output", works->settings.state_directory);
	trim->live = memory_zero(works->count + 1, sizeof(*trim->live));
	for (size_t i = 0; i < works->count; i++)
		trim->live[trim->live_count++] = works->list[i]->reservation_id;
	qsort(trim->live, trim->live_count, sizeof(*trim->live), works_trim_compare_ids);
	trim->most_bytes = most_bytes;
	trim->most_age_s = most_age_s;
	works->trim = trim;
	uv_queue_work(works->settings.loop, &trim->request, trim_outputs, trimmed);
}

void works_trim_leave(struct works *works)
{
	if (works->trim)
		works->trim->works = NULL;
}
