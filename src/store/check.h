/* check.h - whether what is stored makes sense, and what can be done where it does not */
#ifndef STORE_CHECK_H
#define STORE_CHECK_H

#include "store/store.h"

/* A record that a core would not take, or a job that it could not go on with. */
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

/* Loads what is stored as a scheduler would at its start, and recounts the books.
 * Where a record is refused it is left out and noted, and so is what depends on
 * it; where jobs contradict their tasks, those jobs are found and noted. Nothing
 * is changed. True if it could be read; no findings mean that all is well. */
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
