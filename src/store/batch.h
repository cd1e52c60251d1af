/* batch.h - the effects of many commands, to be written in one transaction */
#ifndef STORE_BATCH_H
#define STORE_BATCH_H

#include "core/record/command.h"
#include "core/record/effects.h"
#include "store/schema.h"

/* What becomes of one row. Several changes of a row in one batch become one:
 * the last record of each type counts. */
struct batch_row {
	struct record_key key;
	const void *records[TABLE_TYPES_MAX]; /* NULL: that part stays as it is */
	bool deleted;                         /* the row goes; records are NULL */
	bool archived;                        /* kept for readers and not loaded again */
};

/* True if the batch has all of the row, not only a part that changes. */
static inline bool batch_row_is_whole(const struct table *table, const struct batch_row *row)
{
	for (int of = 0; of < table->type_count; of++)
		if (!row->records[of])
			return false;
	return true;
}

/* The rows of one table that change, each key once, in the order of first change. */
struct batch_table {
	struct batch_row *rows;
	size_t count, capacity;
	uint32_t *places; /* hash table over keys: 0 is empty, else the row's number + 1 */
	size_t place_count;
};

/* Something that waits for the batch to be durable: an order, an event or
 * EFFECT_MORE of one command, then the reply to it. */
struct batch_reply {
	void *cookie;       /* the caller's, as given to batch_add */
	size_t first, last; /* its orders and events: outgoing[first .. last - 1] */
	int64_t reply_id, reply_count;
	bool repeated;
};

/* Filled by one thread, then given away to another. Owns copies of everything. */
struct batch {
	const struct schema *schema;
	struct batch_table tables[TABLES_MAX];
	struct effect *outgoing; /* all but PUT, DELETE and ARCHIVE, in their order */
	size_t outgoing_count, outgoing_capacity;
	struct batch_reply *replies;
	size_t reply_count, reply_capacity;
	struct kept *kept; /* in their order: the last of a kind and key counts */
	size_t kept_count, kept_capacity;
	struct buffer commands; /* each as its size (varint) and command_encode's bytes */
	int64_t command_count;
	bool archives;      /* some rows are put aside */
	struct buffer sql;  /* more statements for this transaction, each with a semicolon */
	size_t rows, bytes; /* how much there is, about */
	int64_t began_us;   /* when its commit began, by the monotonic clock; 0: it has none */
	struct arena arena;
};

/* The schema, which is a store's, must last as long as the batch. */
struct batch *batch_new(const struct schema *schema);
/* Empties it and keeps its memory. */
void batch_clear(struct batch *batch);
void batch_free(struct batch *batch);

/* Adds what followed from one command. `command` is kept for the journal (NULL:
 * nothing was changed, only the reply has to wait its turn; then effects may be
 * NULL too). `cookie` comes back in the reply; NULL: nobody waits. */
void batch_add(struct batch *batch, const struct command *command, const struct effects *effects,
               void *cookie);

/* Keeps a command that changed no record, for the journal alone. */
void batch_note(struct batch *batch, const struct command *command);

/* Keeps a text in the same transaction, or forgets it where the value is NULL.
 * Is answered with the command that is added next, by batch_add. */
void batch_keep(struct batch *batch, const char *kind, const char *key, const char *value);

/* Raises, by table, the largest first key that was ever written. */
void batch_note_highest(const struct batch *batch, int64_t highest[TABLES_MAX]);

/* Keeps a record, or a record that is put aside for readers, as it is: for
 * copying a database. */
void batch_put(struct batch *batch, enum record_kind kind, const void *record, bool archived);
void batch_event(struct batch *batch, const struct event *event);

#endif
