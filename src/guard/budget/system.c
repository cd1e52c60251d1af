/* system.c - the few system calls that the guard makes */
#include "guard/budget/system.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int system_open(const char *path, int flags)
{
	int before = errno;
	long file = syscall(SYS_openat, AT_FDCWD, path, flags, 0);
	errno = before;
	return file < 0 ? -1 : (int)file;
}

void system_close(int file)
{
	int before = errno;
	syscall(SYS_close, file);
	errno = before;
}

int64_t system_size(int file)
{
	int before = errno;
	long size = syscall(SYS_lseek, file, 0L, SEEK_END);
	errno = before;
	return size;
}

int64_t system_read_text(const char *path, char *text, size_t capacity)
{
	int file = system_open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return -1;
	int before = errno;
	long got = syscall(SYS_read, file, text, capacity - 1);
	errno = before;
	system_close(file);
	text[got > 0 ? got : 0] = '\0';
	return got;
}

int64_t system_read_link(const char *path, char *text, size_t capacity)
{
	int before = errno;
	long got = syscall(SYS_readlinkat, AT_FDCWD, path, text, capacity - 1);
	errno = before;
	text[got > 0 ? got : 0] = '\0';
	return got;
}

int system_process_exists(int64_t pid)
{
	int before = errno;
	int exists = syscall(SYS_kill, (long)pid, 0L) == 0 || errno != ESRCH;
	errno = before;
	return exists;
}

void system_wait(const void *word, uint32_t expected, int64_t timeout_ms)
{
	int before = errno;
	struct timespec timeout = { .tv_sec = timeout_ms / 1000,
		                    .tv_nsec = timeout_ms % 1000 * 1000000 };
	syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0);
	errno = before;
}

void system_wake(const void *word)
{
	int before = errno;
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
	errno = before;
}

int64_t system_now_ms(void)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE) / 1000000;
}

int64_t system_boot_ms(void)
{
	return clock_ns(CLOCK_BOOTTIME) / 1000000;
}
