/* writer.h - the store's thread: group commit, and what leaves only when it is durable */
#ifndef STORE_WRITER_H
#define STORE_WRITER_H

#include "store/journal.h"
#include "store/retention.h"
#include "store/store.h"

/* Between the core's thread, which adds the effects of commands, and the store.
 * Two batches exist: one is being written, one is being filled. When the first
 * is durable its replies, orders and events leave, and the second is written;
 * so a batch is as large as what came in while the one before was written, and
 * never larger than the limits: then the core's thread has to wait. What nobody
 * waits for is gathered for a little longer: a transaction costs much more than
 * the rows in it. */
struct writer;

struct writer_options {
	struct store *store;     /* leading; used by the writer's thread alone from now on */
	struct journal *journal; /* NULL: none; the same */
	struct retention retention;
	size_t rows_max, bytes_max; /* of a batch; 0: 20,000 rows, 64 MiB */
	int64_t retry_ms;           /* between tries when the store fails; 0: 200 */
	int64_t gather_ms; /* from the beginning of one batch to the next, where none is in a
	                      hurry; 0: none is gathered */
	/* On the writer's thread: all of the batch is durable. A batch of answers alone needs no
	 * transaction: its `began_us` is 0. */
	void (*durable)(void *context, const struct batch *batch);
	/* On the writer's thread, once: the store failed for good. Nothing that was added and is
	 * not durable will become durable. The process must restart from the database. */
	void (*failed)(void *context, const struct error *error);
	/* On the writer's thread: `ok` of its health has changed. May be NULL. */
	void (*changed)(void *context);
	void *context;
};

/* How the store does, for /health. */
struct writer_health {
	bool ok;         /* false: nothing can be acknowledged now, and `reason` says why */
	bool journal_ok; /* false: the journal has a gap; `journal_reason` says why */
	char reason[ERROR_TEXT_MAX], journal_reason[ERROR_TEXT_MAX];
	int64_t failing_ms;              /* for how long it is not ok */
	int64_t batches, commands, rows; /* written since the start */
	int64_t last_batch_us;           /* how long the last one took */
	size_t waiting_rows;             /* in the batch that is being filled */
};

struct writer *writer_start(const struct writer_options *options);
/* Writes what was added, unless the store fails, and ends the thread. The store
 * and the journal are the caller's again. */
void writer_stop(struct writer *writer);

/* True if there is room for more, waiting up to `wait_ms` for it. To be asked
 * before the core is given a command: what it answers must be added. */
bool writer_has_room(struct writer *writer, int64_t wait_ms);
/* Adds what followed from a command; batch_add says what the arguments are. */
void writer_add(struct writer *writer, const struct command *command, const struct effects *effects,
                void *cookie);
/* Keeps a command that changed no record, for the journal: it is written with the next
 * transaction, or within a second. */
void writer_note(struct writer *writer, const struct command *command);
/* Somebody waits for what was added: it is written as soon as can be. */
void writer_hurry(struct writer *writer);
/* What is added between the two is written in one transaction, whatever the limits are. */
void writer_join(struct writer *writer);
void writer_part(struct writer *writer);
/* Keeps a text, or forgets it where the value is NULL, in the transaction of what
 * is added next by writer_add, and not before that; batch_keep says more. */
void writer_keep(struct writer *writer, const char *kind, const char *key, const char *value);
void writer_health(struct writer *writer, struct writer_health *health);

#endif
