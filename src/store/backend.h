/* backend.h - what a database must be able to do for the store */
#ifndef STORE_BACKEND_H
#define STORE_BACKEND_H

#include "store/batch.h"
#include "store/store.h"

/* The row that says who writes. `holder` is the scheduler's name, '#', and
 * something that no other start of it has; empty: nobody. */
#define HOLDER_MAX 160
struct leader {
	char holder[HOLDER_MAX];
	struct store_position position;
	int64_t silent_ms; /* since it was renewed, by the database's clock */
};

/* What came of writing a batch. */
enum write_outcome {
	WRITE_DONE,
	WRITE_UNKNOWN, /* it failed, perhaps after the commit: disconnect, look, try again */
	WRITE_MOVED,   /* the leader's row was not where it should be */
	WRITE_REFUSED, /* the database does not take these rows */
};

/* One row of a query as texts, NULL for NULL. False, with the error set, ends it. */
typedef bool (*text_row)(void *context, const char *const *values, struct error *error);
/* One record; valid during the call. */
typedef bool (*record_row)(void *context, const void *record, struct error *error);

/* A connection to a database. Errors have code ERROR_UNAVAILABLE where trying
 * again may help, and leave no transaction open that the next call would be in:
 * whoever sees one disconnects. */
struct backend {
	enum dialect dialect;
	const struct schema *schema;
	bool restores; /* a restore that did not finish is no hindrance */
	bool (*connect)(struct backend *backend, bool read_only, struct error *error);
	void (*disconnect)(struct backend *backend);
	bool (*is_connected)(const struct backend *backend);
	/* Statements without results, separated by semicolons. */
	bool (*execute)(struct backend *backend, const char *sql, struct error *error);
	/* One statement with results. */
	bool (*query)(struct backend *backend, const char *sql, text_row row, void *context,
	              struct error *error);
	/* Records of one type of a table: SELECT ... FROM table, then `rest`. */
	bool (*scan)(struct backend *backend, const struct table *table, int of, const char *rest,
	             record_row row, void *context, struct error *error);
	/* Makes statements ready, once the tables are there. */
	bool (*prepare)(struct backend *backend, struct error *error);
	/* One transaction: moves the leader's row from `from` by one batch and by the
	 * batch's commands, and writes all rows. */
	enum write_outcome (*write)(struct backend *backend, const struct batch *batch,
	                            const struct leader *from, struct error *error);
	/* Ends what an old holder still has open in the database. */
	bool (*evict)(struct backend *backend, const char *holder, struct error *error);
	void (*free)(struct backend *backend);
};

struct backend *backend_sqlite(const struct store_options *options, const struct schema *schema);
/* `holder` is how this start of the scheduler is known to the database. */
struct backend *backend_postgres(const struct store_options *options, const struct schema *schema,
                                 const char *holder);

/* The number that is the first value of a query; where there is none, or a NULL,
 * `*number` stays as it is. */
bool backend_number(struct backend *backend, const char *sql, int64_t *number, struct error *error);
/* By table, the largest first key in it; INT64_MIN where it is empty. */
bool backend_highest(struct backend *backend, int64_t highest[TABLES_MAX], struct error *error);

/* The store's backend and schema, for the modules that read beside it. */
struct backend *store_backend(struct store *store);

#endif
