/* property_run.h - a core that is watched: every command is checked on its way */
#ifndef CORE_TEST_PROPERTY_RUN_H
#define CORE_TEST_PROPERTY_RUN_H

#include "core/record/command.h"
#include "core/sched.h"
#include "core/test/property_bills.h"
#include "core/test/property_checks.h"
#include "core/test/property_keeper.h"

#define SHADOWS 64
#define PAST 24 /* commands that are remembered, to be shown when something is wrong */

/* Another core that is given the same commands and must do the same. */
struct shadow {
	struct sched *sched;
	int64_t since, until; /* numbers of commands */
	bool decoded;         /* is given commands as they come out of the journal */
};

/* How busy the cluster was, summed up over samples. */
struct bustle {
	int64_t samples, waiting, rights, claims;
	int64_t used_mib, capacity_mib;
};

struct run {
	struct sched *sched;
	struct keeper keeper;
	struct bills bills;
	struct router router;
	bool volatile_state; /* requests came or went since all routers restarted */
	struct id_set rights;
	struct shadow shadows[SHADOWS];
	struct effects effects, other_effects;
	struct buffer bytes, other_bytes;
	struct holdings before, after;
	struct buffer past[PAST]; /* encoded */
	struct arena arena;
	int64_t number; /* of commands so far */
	int64_t refused, granted, loads, restarts;
	int64_t last_refused; /* number of the last command that was refused */
	struct bustle bustle;
	uint64_t digest; /* of all effects */
	int verbose;     /* 1: prints commands; 2: and effects */
};

void run_init(struct run *run, int verbose);
void run_free(struct run *run);

/* Applies the command, checks what it did, and whether all shadows did the same.
 * Returns whether it was applied; its effects are in run->effects. */
bool run_command(struct run *run, const struct command *command);
/* Applies it again, right after it was complete: it must have no effects. */
void run_nothing(struct run *run, const struct command *pass);
/* Prints the last commands and effects, for when something is wrong. */
void run_print_past(const struct run *run);

#endif
