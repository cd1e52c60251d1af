/* store.h - the scheduler's records in a database: opened, led, loaded, written */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "core/sched.h"
#include "store/batch.h"
#include "store/schema.h"

/* A database with our tables, and the right to write to it. Every write moves a
 * row, `leader`, on by one batch, and is refused if another scheduler has moved
 * it meanwhile; so the row also says, after a connection or a disk failed in the
 * middle of a commit, whether that commit happened. One thread uses a store. */
struct store;

struct store_options {
	/* A file for SQLite; or a connection of libpq: postgresql://host/name, or
	 * 'host=... dbname=...'. */
	const char *database;
	const char *name;   /* of this scheduler: another one on the same database has another */
	int64_t lease_ms;   /* silent for longer, a leader may be replaced; 0: 2 s */
	int64_t timeout_ms; /* an answer that takes longer is none; 0: 5 s */
	const char *vfs;    /* of SQLite, for tests; NULL: its default */
};

enum store_outcome {
	STORE_DONE,
	STORE_AGAIN,  /* it did not happen now: the disk is full, nobody answers. Try again */
	STORE_FAILED, /* it cannot happen: another scheduler leads, or the database is not ours */
};

/* Where the leader is. `commands` counts all that were ever written. */
struct store_position {
	int64_t term, batch, commands;
};

/* Never NULL, touches nothing yet, keeps copies of the options. */
struct store *store_new(const struct store_options *options);
/* Gives the leadership back if it can, and frees. */
void store_free(struct store *store);
const struct schema *store_schema(const struct store *store);
bool store_is_postgres(const struct store *store);

/* Connects; takes the leadership with the next term, and in the same transaction
 * makes or migrates the tables. STORE_AGAIN while another scheduler leads, or
 * nothing can be reached. STORE_FAILED where the database is newer than this
 * program. */
enum store_outcome store_lead(struct store *store, struct error *error);

/* Connects for reading only: to look at a database that may have a leader. */
enum store_outcome store_read_only(struct store *store, struct error *error);

/* Loads everything that is not archived into a new core, and recounts its ledger. False
 * with a reason if the records contradict each other. */
bool store_load(struct store *store, struct sched *sched, struct error *error);
/* Has store_load show each record to `each` too, before the core takes it. */
void store_watch_load(struct store *store,
                      void (*each)(void *context, enum record_kind kind, const void *record),
                      void *context);

/* Gives what is kept, in no particular order; the texts are valid during the call.
 * False from `each` ends it with the error that it has set. */
typedef bool (*kept_row)(void *context, const struct kept *kept, struct error *error);
bool store_load_kept(struct store *store, kept_row each, void *context, struct error *error);

/* Writes all of the batch, or nothing. After STORE_AGAIN the same batch must be
 * given again: if the commit had happened after all, that is found and the
 * answer is STORE_DONE. An empty batch renews the leadership. */
enum store_outcome store_commit(struct store *store, const struct batch *batch,
                                struct error *error);
struct store_position store_position(const struct store *store);
/* When to renew at the latest if nothing is written. */
int64_t store_renew_ms(const struct store *store);

#endif
