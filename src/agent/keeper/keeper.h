/* keeper.h - the process that stays with a work: it outlives the agent */
#ifndef AGENT_KEEPER_KEEPER_H
#define AGENT_KEEPER_KEEPER_H

#include "agent/keeper/spec.h"

/* One keeper for each work, a child of the agent that survives it. It starts the work's first
 * process and is its parent; writes the work's output to files; records durably how it ended;
 * ends the work when its lease or its time limit expires, even without an agent; and exits
 * when no process of the work is left. It must survive what the agent does not: it reads no
 * configuration and talks to nobody but by
 *
 * - the report, a pipe to the agent that started it. Lines:
 *       started PID START | refused TEXT |
 *       exited CODE PEAK_BYTES EXITED_MS CPU_MS SIGNAL MEMORY_KILLS TIMED_OUT
 *   and its end, which says that the keeper has left;
 * - the status, a file. Lines: keeper PID START | started PID START |
 *   exited ... (as above) | ended REASON (in place of `exited`: its end is nobody's result) |
 *   gone.
 *   The agent locks it before there is a keeper, and the keeper holds the lock as long as it
 *   lives: so who finds it locked knows of the keeper, whatever that has written so far;
 * - the mark of the last checkpoint, an int64_t in a file that changes with it. */
/* What gpu-keeper does: it is given the file that holds the spec and the pipe for the report,
 * both as numbers of open files. */
int keeper_main(const char *spec_file, const char *report_file, const char *status_file);

/* What a status file says. */
struct keeper_status {
	bool kept;
	int64_t keeper, keeper_start;
	bool started;
	int64_t pid, pid_start;
	bool exited, ended, gone;
	int64_t exit_code, peak_bytes, exited_ms, cpu_ms; /* 0: not known */
	int64_t signal;       /* that ended its first process; 0: none */
	int64_t memory_kills; /* processes of it that were killed for want of host memory */
	bool timed_out;       /* the keeper ended it, at its time limit */
};
/* Reads what follows "exited": false where that is nothing of the kind. Only the first two are
 * there where an older keeper says it. */
bool keeper_status_read_exit(const char *line, struct keeper_status *status);
/* False where there is no such file. Lines that are not complete count as not written. */
bool keeper_status_read(const char *path, struct keeper_status *status);
/* Opens and locks it for a new keeper, empty; negative where it cannot be done, as where
 * the last keeper lives. */
int keeper_status_lock(const char *path);
/* Where the mark of the last checkpoint is, beside the status; to be freed. */
char *keeper_mark_path(const char *status_path);
/* The mark; 0: there is none. */
int64_t keeper_mark_read(const char *status_path);
/* Where the keeper puts the segment of the work's guard when the work has ended and no agent is
 * there to read it; to be freed. */
char *keeper_budget_path(const char *status_path);
/* True if the work has a keeper. */
bool keeper_status_is_locked(const char *path);

#endif
