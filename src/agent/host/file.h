/* file.h - small files: read whole, written whole; processes by /proc */
#ifndef AGENT_HOST_FILE_H
#define AGENT_HOST_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"

/* Replaces the buffer by all of the file, at most `most` bytes. False, with errno, where it
 * cannot be read or is larger. */
bool file_read(const char *path, size_t most, struct buffer *buffer);
/* One number in a file, as in /proc and /sys; `otherwise` where there is none. */
int64_t file_number(const char *path, int64_t otherwise);
/* Writes into a file that is there. False, with errno. */
bool file_write(const char *path, const char *text);
/* Replaces the file, or makes it: whoever opens it finds all of the old or all of the new, after
 * a crash too. */
bool file_replace(const char *path, const char *data, size_t size, mode_t mode,
                  struct error *error);
/* Makes the directory and those above it. */
bool file_make_directories(const char *path, mode_t mode, struct error *error);
/* The path made of these, to be freed. */
char *file_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* When the process started, in ticks since the machine did: with its number, which is used
 * again, it names a process for good. 0: there is none, or it has ended (a zombie). */
int64_t process_start(pid_t pid);
/* True also for a zombie, and for one that is another user's. */
bool process_exists(pid_t pid);
/* Its parent's number; 0: there is none. */
pid_t process_parent(pid_t pid);

#endif
