/* keeper_status.c - what keepers write down about their works */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "agent/keeper/keeper.h"
#include "base/number.h"

bool keeper_status_read_exit(const char *line, struct keeper_status *status)
{
	int64_t code = 0, peak_bytes = 0, exited_ms = 0, cpu_ms = 0;
	int64_t number = 0, kills = 0, timed_out = 0;

	if (sscanf(line,
	           "exited %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
	           " %" SCNd64,
	           &code, &peak_bytes, &exited_ms, &cpu_ms, &number, &kills, &timed_out) < 2)
		return false;
	status->exited = true;
	status->exit_code = code;
	status->peak_bytes = max64(peak_bytes, 0);
	status->exited_ms = max64(exited_ms, 0);
	status->cpu_ms = max64(cpu_ms, 0);
	status->signal = number > 0 && number < 128 ? number : 0;
	status->memory_kills = max64(kills, 0);
	status->timed_out = timed_out == 1;
	return true;
}

static void status_read_line(const char *line, struct keeper_status *status)
{
	int64_t first = 0, second = 0;

	if (sscanf(line, "keeper %" SCNd64 " %" SCNd64, &first, &second) == 2) {
		/* Each keeper starts with an empty file. */
		*status =
		    (struct keeper_status){ .kept = true, .keeper = first, .keeper_start = second };
	} else if (sscanf(line, "started %" SCNd64 " %" SCNd64, &first, &second) == 2) {
		status->started = true;
		status->pid = first;
		status->pid_start = second;
	} else if (keeper_status_read_exit(line, status)) {
		return;
	} else if (strncmp(line, "ended ", 6) == 0) {
		status->ended = true;
	} else if (strcmp(line, "gone") == 0) {
		status->gone = true;
	}
}

bool keeper_status_read(const char *path, struct keeper_status *status)
{
	struct buffer text = { 0 };

	*status = (struct keeper_status){ 0 };
	bool there = file_read(path, 65536, &text);
	char *line = text.data, *end;
	while (there && (end = strchr(line, '\n'))) {
		*end = '\0';
		status_read_line(line, status);
		line = end + 1;
	}
	buffer_free(&text);
	return there;
}

int keeper_status_lock(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0 || (flock(fd, LOCK_EX | LOCK_NB) == 0 && ftruncate(fd, 0) == 0))
		return fd;
	int reason = errno;
	close(fd);
	errno = reason;
	return -1;
}

char *keeper_budget_path(const char *status_path)
{
	return file_path("%s.budget", status_path);
}

char *keeper_mark_path(const char *status_path)
{
	return file_path("%s.checkpoint", status_path);
}

int64_t keeper_mark_read(const char *status_path)
{
	char *path = keeper_mark_path(status_path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int64_t mark = 0;

	if (fd < 0 || pread(fd, &mark, sizeof(mark), 0) != sizeof(mark))
		mark = 0;
	if (fd >= 0)
		close(fd);
	free(path);
	return mark;
}

bool keeper_status_is_locked(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return locked;
}
