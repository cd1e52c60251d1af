/* system.h - the few system calls that the guard makes
 *
 * Straight to the kernel: unlike their namesakes in the C library these are no
 * points where a thread can be cancelled, which would leave a lock held, and no
 * other preloaded library stands in their way. They leave errno alone. */
#ifndef GUARD_BUDGET_SYSTEM_H
#define GUARD_BUDGET_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

/* A descriptor, or -1. */
int system_open(const char *path, int flags);
void system_close(int file);

/* The size of an open file; -1 if it has none. */
int64_t system_size(int file);

/* Reads the beginning of a file as text: returns how many bytes it put before the
 * final zero, -1 if the file cannot be read. */
int64_t system_read_text(const char *path, char *text, size_t capacity);

/* Where a symbolic link points, as text; the same return values. */
int64_t system_read_link(const char *path, char *text, size_t capacity);

/* Whether there is a process of that id, a zombie included, that we may know of. */
int system_process_exists(int64_t pid);

/* Sleeps while *word is `expected`, at most so long; and wakes one that does. The
 * word may be in memory that processes share. */
void system_wait(const void *word, uint32_t expected, int64_t timeout_ms);
void system_wake(const void *word);

/* Milliseconds on a clock that only goes forward. */
int64_t system_now_ms(void);

/* Milliseconds since the machine started, as the agent counts them. */
int64_t system_boot_ms(void);

#endif
