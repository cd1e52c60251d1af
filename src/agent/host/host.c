/* host.c - the machine that the agent runs on */
#include "agent/host/host.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "base/number.h"

static int64_t cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		return CPU_COUNT(&set);
	return max64(sysconf(_SC_NPROCESSORS_ONLN), 1);
}

static int64_t memory_bytes(void)
{
	int64_t physical = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	int64_t limit = file_number("/sys/fs/cgroup/memory.max", INT64_MAX);

	return min64(physical, limit > 0 ? limit : INT64_MAX);
}

static void read_boot(char *boot, size_t size)
{
	struct buffer text = { 0 };

	boot[0] = '\0';
	if (file_read("/proc/sys/kernel/random/boot_id", 128, &text)) {
		text.data[strcspn(text.data, "\n")] = '\0';
		snprintf(boot, size, "%s", text.data);
	}
	buffer_free(&text);
}

void host_read(struct host *host)
{
	*host = (struct host){ .cpu_milli = cores() * 1000, .memory_bytes = memory_bytes() };
	if (gethostname(host->name, sizeof(host->name) - 1) != 0)
		host->name[0] = '\0';
	read_boot(host->boot, sizeof(host->boot));
}

int64_t host_disk_free_bytes(const char *path)
{
	struct statvfs status;

	if (statvfs(path, &status) != 0)
		return -1;
	return (int64_t)status.f_bavail * (int64_t)status.f_frsize;
}

int64_t host_process_capacity(void)
{
	int64_t numbers = file_number("/proc/sys/kernel/pid_max", 32768);
	int64_t threads = file_number("/proc/sys/kernel/threads-max", numbers);

	return max64(min64(numbers, threads), 0);
}
