/* check.h - whether what is stored makes sense, and what can be done where it does not */
#ifndef STORE_CHECK_H
#define STORE_CHECK_H

#include "store/store.h"

/* A record that a core would refuse, or a job that contradicts its tasks. */
struct check_finding {
	enum record_kind kind;
	struct record_key key;
	char reason[ERROR_TEXT_MAX];
};

/* Zero-initialised is empty. */
struct check {
	struct check_finding *findings;
	size_t count, capacity;
	struct error last; /* what a core says after all, if it still cannot be loaded */
};

/* Loads the database as a scheduler would at its start, and recounts the ledger. Refused
 * records, records that depend on them, and jobs that contradict their tasks become findings.
 * Changes nothing. True if the database could be read; no findings mean that it is consistent. */
bool check_run(struct store *store, struct check *check, struct error *error);
void check_free(struct check *check);

/* What the database says about its own file: one line for each fault. Only SQLite has
 * something to say; a damaged page of it may hold records that still read well. False with a
 * reason: it could not be read. */
bool check_file(struct store *store, struct buffer *faults, struct error *error);

/* One line per finding, for people: what it is, and why. */
void check_print(const struct check *check, struct buffer *text);

/* Takes every record of the findings out of its table, in one transaction, and
 * keeps it as text in the table `quarantine` with the reason. A job goes with its
 * state, its tasks and its reservations. The store must lead. */
bool check_repair(struct store *store, const struct check *check, struct error *error);

#endif
