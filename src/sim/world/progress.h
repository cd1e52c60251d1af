/* progress.h - how far a long run is, for people who watch */
#ifndef SIM_WORLD_PROGRESS_H
#define SIM_WORLD_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* A bar on standard error, if that is a terminal; nothing otherwise. */
struct progress {
	const char *what;
	int64_t done, of;
	int shown; /* thousandths; -1: nothing yet */
	bool on;
};
struct progress progress_begin(const char *what, int64_t of);
void progress_add(struct progress *progress, int64_t done);
/* Wipes the bar away. */
void progress_end(struct progress *progress);

#endif
