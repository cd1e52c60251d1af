/* driver.h - a core with a world that keeps its records, command by command */
#ifndef SIM_WORLD_DRIVER_H
#define SIM_WORLD_DRIVER_H

#include <stdio.h>

#include "sim/world/world.h"

/* `effects` are those of the last command. Zero-initialised, it has no core:
 * take one from driver_start or driver_load. */
struct driver {
	struct sched *sched;
	struct world world;
	struct effects effects;
	int64_t now_ms;     /* the time that commands are sent with */
	bool check;         /* recount the ledger after each command */
	FILE *trace;        /* where commands and effects are written; NULL: nowhere */
	struct buffer text; /* scratch */
};

/* Gives it a new core and an empty cluster. */
void driver_start(struct driver *driver);
/* Gives it a core with the records in `world`; false with a reason if they
 * contradict themselves. */
bool driver_load(struct driver *driver, struct error *error);

/* Applies the command at `now_ms` and keeps what follows from it. False with
 * the core's reason if the core refuses; then nothing has changed. */
bool driver_send(struct driver *driver, struct command command, struct error *error);

void driver_free(struct driver *driver);

#endif
