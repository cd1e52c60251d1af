/* store_postgres.c - the store in PostgreSQL: pipelines, arrays of rows, and COPY */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number_text.h"
#include "store/backend.h"
#include "store/link.h"
#include "store/rowtext.h"
#include "store/sql.h"

/* Fewer new rows than this go into one statement, which needs no turn of its own. */
enum { COPY_ROWS = 64, COPY_BYTES = 32768, PATIENCE = 12 };

/* `highest` is the largest first key that a table ever held, so that a row with
 * a larger one is new and can be copied. `arrays` are the parameters of the
 * statement that is being put together. */
struct postgres_backend {
	struct backend base;
	struct link link;
	char *database, *holder;
	int64_t lease_ms;
	int64_t highest[TABLES_MAX];
	struct buffer arrays[TABLE_COLUMNS_MAX + 1];
	struct buffer rows, scratch;
	struct arena arena;
};

static struct postgres_backend *self_of(struct backend *backend)
{
	return (struct postgres_backend *)(void *)backend;
}

static void postgres_disconnect(struct backend *backend)
{
	link_close(&self_of(backend)->link);
}

static bool postgres_is_connected(const struct backend *backend)
{
	return ((const struct postgres_backend *)(const void *)backend)->link.connection != NULL;
}

/* Statements here may have to build an index. */
static bool postgres_execute(struct backend *backend, const char *sql, struct error *error)
{
	struct link *link = &self_of(backend)->link;
	return link_execute(link, sql, PATIENCE * link->timeout_ms, error);
}

/* A session that is stopped or cut off in the middle of a transaction must not
 * keep the leader's row locked. Durable means durable, whatever the server's
 * default; a stricter one is kept. */
static bool postgres_connect(struct backend *backend, bool read_only, struct error *error)
{
	struct postgres_backend *self = self_of(backend);
	struct buffer sql = { 0 };

	if (!link_open(&self->link, self->database, self->holder, error))
		return false;
	buffer_print(&sql,
	             "SET idle_in_transaction_session_timeout = %lld; SET lock_timeout = %lld; "
	             "SET tcp_user_timeout = %lld; SET standard_conforming_strings = on; "
	             "SET client_min_messages = error; SET default_transaction_read_only = %s; "
	             "SELECT set_config('synchronous_commit', 'on', false) WHERE "
	             "current_setting('synchronous_commit') IN ('off', 'local')",
	             (long long)self->lease_ms, (long long)self->link.timeout_ms,
	             (long long)self->lease_ms, read_only ? "on" : "off");
	bool done = postgres_execute(backend, sql.data, error);
	buffer_free(&sql);
	if (!done)
		postgres_disconnect(backend);
	return done;
}

static bool postgres_query(struct backend *backend, const char *sql, text_row row, void *context,
                           struct error *error)
{
	enum { VALUES_MAX = 16 };
	struct link *link = &self_of(backend)->link;
	const char *values[VALUES_MAX] = { NULL };
	PGresult *result = link_query(link, sql, link->timeout_ms, error);
	bool done = result != NULL;

	INVARIANT(PQnfields(result) <= VALUES_MAX);
	for (int i = 0; done && i < PQntuples(result); i++) {
		for (int j = 0; j < PQnfields(result); j++)
			values[j] = PQgetisnull(result, i, j) ? NULL : PQgetvalue(result, i, j);
		done = row(context, values, error);
	}
	PQclear(result);
	return done;
}

/* Where the rows of a scan go. */
struct scan {
	struct postgres_backend *self;
	const struct record_type *type;
	const struct record_field *fields[TABLE_COLUMNS_MAX];
	record_row row;
	void *context;
};

static bool scan_row(void *context, char *row, size_t size, struct error *error)
{
	const struct scan *scan = context;
	const struct record_type *type = scan->type;
	struct cell cells[TABLE_COLUMNS_MAX];
	struct arena *arena = &scan->self->arena;

	if (size > 0 && row[size - 1] == '\n')
		size--;
	if (!copy_split(row, size, scan->fields, type->field_count, cells))
		return error_set(error, ERROR_CORRUPT, "a row of %s is unreadable: %.60s",
		                 type->name, row);
	arena_reset(arena);
	void *record = arena_alloc(arena, type->size);
	memset(record, 0, type->size);
	for (int i = 0; i < type->field_count; i++)
		if (!cell_read(&type->fields[i], record, cells[i], arena, error))
			return false;
	return scan->row(scan->context, record, error);
}

static bool postgres_scan(struct backend *backend, const struct table *table, int of,
                          const char *rest, record_row row, void *context, struct error *error)
{
	struct postgres_backend *self = self_of(backend);
	struct scan scan = {
		.self = self, .type = table->types[of], .row = row, .context = context
	};
	struct buffer sql = { 0 };

	for (int i = 0; i < scan.type->field_count; i++)
		scan.fields[i] = &scan.type->fields[i];
	buffer_text(&sql, "COPY (");
	sql_select(&sql, table, of, rest);
	buffer_text(&sql, ") TO STDOUT");
	bool done = link_copy_out(&self->link, sql.data, scan_row, &scan, error);
	buffer_free(&sql);
	return done;
}

enum statement { UPSERT, ARCHIVE, DELETE, UPDATE };

/* "upsert_3": the statement's name on the server. */
static void name_statement(char *name, size_t size, enum statement statement, int table, int of)
{
	static const char *const words[] = { "upsert", "archive", "delete", "update" };
	snprintf(name, size, "%s_%d_%d", words[statement], table, of);
}

static bool prepare_statement(struct postgres_backend *self, enum statement statement, int place,
                              int of, struct error *error)
{
	const struct table *table = &self->base.schema->tables[place];
	struct buffer sql = { 0 };
	char name[32];

	name_statement(name, sizeof(name), statement, place, of);
	if (statement == UPSERT)
		sql_upsert_rows(&sql, table);
	else if (statement == ARCHIVE)
		sql_archive_rows(&sql, table);
	else if (statement == DELETE)
		sql_delete_rows(&sql, table);
	else
		sql_update_rows(&sql, table, of);
	bool sent = PQsendPrepare(self->link.connection, name, sql.data, 0, NULL) == 1;
	buffer_free(&sql);
	return sent ? link_push(&self->link, error) : link_refused(&self->link, NULL, error);
}

static bool prepare_table(struct postgres_backend *self, int place, struct error *error)
{
	const struct table *table = &self->base.schema->tables[place];
	bool done = prepare_statement(self, UPSERT, place, 0, error) &&
	            prepare_statement(self, DELETE, place, 0, error);
	if (!table->is_log)
		done = done && prepare_statement(self, ARCHIVE, place, 0, error);
	for (int of = 0; table->type_count > 1 && of < table->type_count; of++)
		done = done && prepare_statement(self, UPDATE, place, of, error);
	return done;
}

/* The division fails where no row was moved, and with it all that follows in
 * the pipeline. */
static const char move_sql[] =
    "WITH moved AS (UPDATE leader SET batch = batch + 1, commands = commands + $1::bigint, "
    "renewed_ms = (extract(epoch FROM clock_timestamp()) * 1000)::bigint "
    "WHERE id = 1 AND holder = $2 AND term = $3::bigint AND batch = $4::bigint RETURNING 1) "
    "SELECT 1 / count(*) FROM moved";
#define NOT_MOVED "22012"

static bool check_fine(void *context, int number, const PGresult *result, struct error *error)
{
	ExecStatusType status = PQresultStatus(result);
	(void)number;
	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ||
	       link_refused(context, result, error);
}

static bool postgres_prepare(struct backend *backend, struct error *error)
{
	struct postgres_backend *self = self_of(backend);
	if (!link_pipeline_begin(&self->link, error))
		return false;
	/* What is deleted and filled again, by a restore, is prepared for twice. */
	if (!PQsendQueryParams(self->link.connection, "DEALLOCATE ALL", 0, NULL, NULL, NULL, NULL,
	                       0) ||
	    !PQsendPrepare(self->link.connection, "move", move_sql, 0, NULL))
		return link_refused(&self->link, NULL, error);
	for (int i = 0; i < backend->schema->count; i++)
		if (!prepare_table(self, i, error))
			return false;
	return link_pipeline_end(&self->link, check_fine, &self->link, error) &&
	       backend_highest(backend, self->highest, error);
}

/* What each statement of a pipeline should have done. */
struct expectation {
	int64_t rows; /* that it must have changed; -1: any number */
	bool is_move;
};

/* A transaction that is being sent. */
struct sending {
	struct postgres_backend *self;
	const struct batch *batch;
	struct expectation expectations[TABLES_MAX * 8 + 16];
	int count;
	bool not_moved;
	struct error *error;
};

static bool expect(struct sending *sending, int sent, int64_t rows, bool is_move)
{
	INVARIANT(sending->count <
	          (int)(sizeof(sending->expectations) / sizeof(sending->expectations[0])));
	sending->expectations[sending->count++] = (struct expectation){ rows, is_move };
	if (sent != 1)
		return link_refused(&sending->self->link, NULL, sending->error);
	return link_push(&sending->self->link, sending->error);
}

static bool send_sql(struct sending *sending, const char *sql)
{
	int sent =
	    PQsendQueryParams(sending->self->link.connection, sql, 0, NULL, NULL, NULL, NULL, 0);
	return expect(sending, sent, -1, false);
}

/* The additional statements of the batch, one by one. */
static bool send_extra(struct sending *sending)
{
	struct buffer *one = &sending->self->scratch;
	const char *at = sending->batch->sql.data;
	const char *end = at + sending->batch->sql.size;
	while (at < end) {
		const char *stop = memchr(at, ';', (size_t)(end - at));
		stop = stop ? stop : end;
		buffer_clear(one);
		buffer_bytes(one, at, (size_t)(stop - at));
		buffer_text(one, "");
		if (sending->count > TABLES_MAX * 8 || !send_sql(sending, one->data))
			return false;
		at = stop + 1;
	}
	return true;
}

/* The arrays of kinds and keys, and of values where they are asked for. */
static int put_kept(struct sending *sending, bool values)
{
	struct postgres_backend *self = sending->self;
	const struct table *table = &self->base.schema->kept;
	int count = values ? table->column_count : table->keys;
	for (int i = 0; i < count; i++) {
		struct buffer *array = &self->arrays[i];
		const struct record_field *field = table->columns[i].field;
		buffer_clear(array);
		for (size_t j = 0; j < sending->batch->kept_count; j++) {
			const struct kept *kept = &sending->batch->kept[j];
			if (i < table->keys || kept->value)
				array_put(array, field, cell_of(field, kept, &self->scratch));
			else
				buffer_text(array, array->size == 0 ? "{NULL" : ",NULL");
		}
		buffer_text(array, "}");
	}
	return count;
}

/* All that the batch has something to say about goes, and the last said of each comes. */
static bool send_kept(struct sending *sending)
{
	static const char *const statements[] = {
		"DELETE FROM kept USING unnest($1::text[], $2::text[]) AS new (kind, key) "
		"WHERE kept.kind = new.kind AND kept.key = new.key",
		"INSERT INTO kept SELECT kind, key, value FROM (SELECT DISTINCT ON (kind, key) * "
		"FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY "
		"AS new (kind, key, value, place) ORDER BY kind, key, place DESC) AS last "
		"WHERE value IS NOT NULL",
	};
	const char *values[3];
	for (int i = 0; sending->batch->kept_count > 0 && i < 2; i++) {
		int count = put_kept(sending, i == 1);
		for (int j = 0; j < count; j++)
			values[j] = sending->self->arrays[j].data;
		int sent = PQsendQueryParams(sending->self->link.connection, statements[i], count,
		                             NULL, values, NULL, NULL, 0);
		if (!expect(sending, sent, -1, false))
			return false;
	}
	return true;
}

static bool send_move(struct sending *sending, const struct leader *from)
{
	char commands[24], term[24], batch[24];
	const char *values[] = { commands, from->holder, term, batch };
	snprintf(commands, sizeof(commands), "%lld", (long long)sending->batch->command_count);
	snprintf(term, sizeof(term), "%lld", (long long)from->position.term);
	snprintf(batch, sizeof(batch), "%lld", (long long)from->position.batch);
	int sent =
	    PQsendQueryPrepared(sending->self->link.connection, "move", 4, values, NULL, NULL, 0);
	return expect(sending, sent, -1, true);
}

/* True if a statement is about the row. A row that is not new, or is among too
 * few new ones to be copied, is upserted. */
static bool concerns(const struct postgres_backend *self, enum statement statement, int place,
                     int of, bool copied, const struct batch_row *row)
{
	const struct table *table = &self->base.schema->tables[place];
	bool whole = batch_row_is_whole(table, row);
	switch (statement) {
	case DELETE:
		return row->deleted;
	case UPSERT:
		return whole && !(copied && row->key.first > self->highest[place]);
	case UPDATE:
		return !row->deleted && !whole && row->records[of];
	default:
		return !row->deleted && !whole && row->archived;
	}
}

/* Adds the row to the arrays. */
static void add_to_arrays(struct postgres_backend *self, const struct table *table,
                          enum statement statement, int of, const struct batch_row *row)
{
	int count = 0, first = 0, last = 0;
	const int64_t keys[] = { row->key.first, row->key.second };
	if (statement != UPSERT) {
		for (; count < table->keys && count < 2; count++)
			array_put(&self->arrays[count], table->columns[count].field,
			          (struct cell){ .number = keys[count] });
	}
	if (statement == UPSERT)
		last = table->column_count;
	else if (statement == UPDATE)
		table_range(table, of, &first, &last);
	for (int i = first; i < last; i++) {
		const struct column *column = &table->columns[i];
		array_put(&self->arrays[count++], column->field,
		          cell_of(column->field, row->records[column->of], &self->scratch));
	}
	if (statement == UPSERT && !table->is_log) {
		struct buffer *array = &self->arrays[count];
		buffer_bytes(array, array->size == 0 ? "{" : ",", 1);
		buffer_bytes(array, row->archived ? "t" : "f", 1);
	}
}

/* Sends one statement for all rows that it concerns, if there are any. */
static bool send_rows(struct sending *sending, enum statement statement, int place, int of,
                      bool copied)
{
	struct postgres_backend *self = sending->self;
	const struct table *table = &self->base.schema->tables[place];
	const struct batch_table *rows = &sending->batch->tables[place];
	const char *values[TABLE_COLUMNS_MAX + 1];
	char name[32];
	int64_t found = 0;
	int parameters = 0;

	for (int i = 0; i <= TABLE_COLUMNS_MAX; i++)
		buffer_clear(&self->arrays[i]);
	for (size_t i = 0; i < rows->count; i++) {
		if (!concerns(self, statement, place, of, copied, &rows->rows[i]))
			continue;
		add_to_arrays(self, table, statement, of, &rows->rows[i]);
		found++;
	}
	if (found == 0)
		return true;
	for (; parameters <= TABLE_COLUMNS_MAX && self->arrays[parameters].size > 0; parameters++) {
		buffer_text(&self->arrays[parameters], "}");
		values[parameters] = self->arrays[parameters].data;
	}
	name_statement(name, sizeof(name), statement, place, of);
	int sent =
	    PQsendQueryPrepared(self->link.connection, name, parameters, values, NULL, NULL, 0);
	return expect(sending, sent, statement == DELETE ? -1 : found, false);
}

/* True if a table has enough new rows to be worth a COPY. */
static bool is_copied(const struct postgres_backend *self, const struct batch *batch, int place)
{
	const struct table *table = &self->base.schema->tables[place];
	const struct batch_table *rows = &batch->tables[place];
	int found = 0;
	for (size_t i = 0; i < rows->count && found < COPY_ROWS; i++)
		found += batch_row_is_whole(table, &rows->rows[i]) &&
		         rows->rows[i].key.first > self->highest[place];
	return found == COPY_ROWS;
}

static bool send_table(struct sending *sending, int place)
{
	const struct table *table = &sending->self->base.schema->tables[place];
	bool copied = is_copied(sending->self, sending->batch, place);
	if (sending->batch->tables[place].count == 0)
		return true;
	bool done = send_rows(sending, UPSERT, place, 0, copied) &&
	            send_rows(sending, DELETE, place, 0, copied);
	for (int of = 0; done && table->type_count > 1 && of < table->type_count; of++)
		done = send_rows(sending, UPDATE, place, of, copied);
	return done && (table->is_log || send_rows(sending, ARCHIVE, place, 0, copied));
}

static bool check_result(void *context, int number, const PGresult *result, struct error *error)
{
	struct sending *sending = context;
	const struct expectation *expected = &sending->expectations[number];
	ExecStatusType status = PQresultStatus(result);
	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
		const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
		sending->not_moved = expected->is_move && state && strcmp(state, NOT_MOVED) == 0;
		return link_refused(&sending->self->link, result, error);
	}
	const char *changed = PQcmdTuples((PGresult *)result);
	int64_t rows = -1;
	if (expected->rows >= 0 &&
	    (!number_read(text_of(changed), INT64_MIN, INT64_MAX, &rows) || rows != expected->rows))
		return error_set(error, ERROR_CORRUPT,
		                 "PostgreSQL: %s rows were changed where there should be %lld",
		                 changed, (long long)expected->rows);
	return true;
}

static void put_copy_row(struct postgres_backend *self, const struct table *table,
                         const struct batch_row *row)
{
	for (int i = 0; i < table->column_count; i++) {
		const struct column *column = &table->columns[i];
		if (i > 0)
			buffer_bytes(&self->rows, "\t", 1);
		copy_put(&self->rows, column->field,
		         cell_of(column->field, row->records[column->of], &self->scratch));
	}
	if (!table->is_log)
		buffer_bytes(&self->rows, row->archived ? "\tt" : "\tf", 2);
	buffer_bytes(&self->rows, "\n", 1);
}

/* Rows leave as they are put together, so that the server works meanwhile. */
static bool copy_rows(struct postgres_backend *self, const struct batch *batch, int place,
                      struct error *error)
{
	const struct table *table = &self->base.schema->tables[place];
	const struct batch_table *rows = &batch->tables[place];
	for (size_t i = 0; i < rows->count; i++) {
		const struct batch_row *row = &rows->rows[i];
		if (!batch_row_is_whole(table, row) || row->key.first <= self->highest[place])
			continue;
		put_copy_row(self, table, row);
		if (self->rows.size < COPY_BYTES)
			continue;
		if (!link_copy_put(&self->link, self->rows.data, self->rows.size, error))
			return false;
		buffer_clear(&self->rows);
	}
	return link_copy_put(&self->link, self->rows.data, self->rows.size, error);
}

static bool copy_table(struct postgres_backend *self, const struct batch *batch, int place,
                       struct error *error)
{
	const struct table *table = &self->base.schema->tables[place];
	struct buffer sql = { 0 };

	buffer_clear(&self->rows);
	buffer_print(&sql, "COPY \"%s\" (", table->name);
	sql_columns(&sql, table, 0, table->column_count, "");
	buffer_print(&sql, "%s) FROM STDIN", table->is_log ? "" : ", archived");
	bool done = link_copy_begin(&self->link, sql.data, error) &&
	            copy_rows(self, batch, place, error) && link_copy_end(&self->link, error);
	buffer_free(&sql);
	return done;
}

static bool copy_tables(struct postgres_backend *self, const struct batch *batch,
                        struct error *error)
{
	for (int i = 0; i < batch->schema->count; i++)
		if (is_copied(self, batch, i) && !copy_table(self, batch, i, error))
			return false;
	return true;
}

static bool copies(const struct postgres_backend *self, const struct batch *batch)
{
	for (int i = 0; i < batch->schema->count; i++)
		if (is_copied(self, batch, i))
			return true;
	return false;
}

/* One pipeline is the whole transaction, unless something is to be copied, which
 * cannot be part of one. */
static bool send_transaction(struct sending *sending, const struct leader *from)
{
	struct postgres_backend *self = sending->self;
	bool copying = copies(self, sending->batch);

	if (!link_pipeline_begin(&self->link, sending->error) || !send_sql(sending, "BEGIN") ||
	    !send_move(sending, from))
		return false;
	for (int i = 0; i < sending->batch->schema->count; i++)
		if (!send_table(sending, i))
			return false;
	if (!send_kept(sending) || !send_extra(sending) ||
	    (!copying && !send_sql(sending, "COMMIT")) ||
	    !link_pipeline_end(&self->link, check_result, sending, sending->error))
		return false;
	return !copying ||
	       (copy_tables(self, sending->batch, sending->error) &&
	        link_execute(&self->link, "COMMIT", self->link.timeout_ms, sending->error));
}

static enum write_outcome postgres_write(struct backend *backend, const struct batch *batch,
                                         const struct leader *from, struct error *error)
{
	struct postgres_backend *self = self_of(backend);
	struct sending sending = { .self = self, .batch = batch, .error = error };

	if (send_transaction(&sending, from)) {
		batch_note_highest(batch, self->highest);
		return WRITE_DONE;
	}
	postgres_disconnect(backend);
	if (sending.not_moved)
		return WRITE_MOVED;
	return error->code == ERROR_UNAVAILABLE ? WRITE_UNKNOWN : WRITE_REFUSED;
}

static bool postgres_evict(struct backend *backend, const char *holder, struct error *error)
{
	struct buffer sql = { 0 };
	buffer_text(&sql, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
	                  "pid <> pg_backend_pid() AND usename = current_user AND "
	                  "application_name = ");
	sql_literal(&sql, holder);
	bool done = postgres_execute(backend, sql.data, error);
	buffer_free(&sql);
	return done;
}

static void postgres_free(struct backend *backend)
{
	struct postgres_backend *self = self_of(backend);
	postgres_disconnect(backend);
	for (int i = 0; i <= TABLE_COLUMNS_MAX; i++)
		buffer_free(&self->arrays[i]);
	buffer_free(&self->rows);
	buffer_free(&self->scratch);
	arena_free(&self->arena);
	free(self->database);
	free(self->holder);
	free(self);
}

struct backend *backend_postgres(const struct store_options *options, const struct schema *schema,
                                 const char *holder)
{
	struct postgres_backend *self = NEW(struct postgres_backend);
	self->base = (struct backend){
		.dialect = DIALECT_POSTGRES,
		.schema = schema,
		.connect = postgres_connect,
		.disconnect = postgres_disconnect,
		.is_connected = postgres_is_connected,
		.execute = postgres_execute,
		.query = postgres_query,
		.scan = postgres_scan,
		.prepare = postgres_prepare,
		.write = postgres_write,
		.evict = postgres_evict,
		.free = postgres_free,
	};
	self->link.timeout_ms = options->timeout_ms;
	self->lease_ms = options->lease_ms;
	self->database = memory_text(options->database);
	self->holder = memory_text(holder);
	return &self->base;
}
