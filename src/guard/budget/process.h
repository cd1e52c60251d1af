/* process.h - which process is which, and whether it is still there */
#ifndef GUARD_BUDGET_PROCESS_H
#define GUARD_BUDGET_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* Who a process is: its id, and when it started, since ids are used again. One
 * word, so that a place in the segment is taken in one step. Never 0. */
static inline uint64_t process_owner(int64_t pid, uint64_t start_ticks)
{
	return (uint64_t)pid << 42 | (start_ticks & ((UINT64_C(1) << 42) - 1));
}
static inline int64_t process_owner_pid(uint64_t owner)
{
	return (int64_t)(owner >> 42);
}

/* A process as a segment knows it. */
struct process_identity {
	uint64_t owner;
	uint64_t namespace_id; /* of the process id; 0: not known */
};

/* The namespace of process ids that a machine starts with, outside of containers. */
#define PROCESS_FIRST_NAMESPACE UINT64_C(4026531836)

/* Who the calling process is. */
struct process_identity process_self(void);

/* Who another process is, as it sees itself: in its own namespace. False if there is no
 * such process, or it has ended. */
bool process_of(int64_t pid, struct process_identity *identity);

/* The process's id in its own namespace, the last of those that the text of a
 * /proc/PID/status lists; 0 if it lists none. */
int64_t process_parse_own_pid(const char *text);

/* What /proc/PID/stat says. A start of 0: not known. */
struct process_stat {
	uint64_t start_ticks;
	bool ended; /* a zombie: all its threads have ended */
};

/* Reads the text of such a file; false if it is none. */
bool process_parse_stat(const char *text, struct process_stat *stat);

/* True if the process is certainly gone, or a zombie, which has no memory any more.
 * Only for a process in the caller's own namespace. */
bool process_is_gone(uint64_t owner);

#endif
