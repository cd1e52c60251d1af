/* folder.h - a folder for each task on the node, with its script in it */
#ifndef AGENT_WORKLOAD_FOLDER_H
#define AGENT_WORKLOAD_FOLDER_H

#include <stdint.h>

#include "agent/workload/run.h"

/* True if everyone can pass through the directory and those above it, or the agent is not root and
 * runs all tasks as itself. */
bool folder_is_open(const char *directory);

/* Makes a directory that everyone can pass through, whatever the umask is. Everyone can make
 * directories in /tmp: one that somebody else has put there is moved out of the way. */
bool folder_make(const char *path, struct error *error);

/* The directory of all folders; to be freed. In the state directory where the users of tasks can
 * reach that, which they cannot where a directory above it is closed to them; in /tmp else.
 * `label` as in struct run_settings. */
char *folder_base(const char *state_directory, const char *label);

/* Writes the script of a planned work into a folder of its own and makes it the work's command. A
 * real file: an interpreter can open it a second time, as Python does to start processes. Only
 * the plan's user can read it. Does nothing, and succeeds, without a script. */
bool folder_begin(const struct run_settings *settings, int64_t reservation_id, struct arena *arena,
                  struct run_plan *plan, struct error *error);

/* Removes the folder of a work, if it has one. */
void folder_end(const struct run_settings *settings, int64_t reservation_id);

#endif
