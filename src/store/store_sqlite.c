/* store_sqlite.c - the store in one file, in WAL mode with full sync */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "store/backend.h"
#include "store/cell.h"
#include "store/sql.h"

/* What a column of an insert is bound to, where that may stay for the next row: a number, a
 * word by its number, or a text or rows that are empty. Most rows are alike in most columns. */
struct bound {
	enum { BOUND_OTHERWISE, BOUND_NUMBER, BOUND_EMPTY } to;
	int64_t number;
};

/* The statements of one table. */
struct statements {
	sqlite3_stmt *insert, *replace, *archive, *delete;
	sqlite3_stmt *update[TABLE_TYPES_MAX];
	struct bound bound[TABLE_COLUMNS_MAX]; /* of `insert` */
};

/* `lock` is an open file beside the database that only one scheduler can have
 * locked; it is kept while the connection comes and goes. `highest` is the
 * largest first key that a table ever held: a row with a larger one is new, and
 * inserting costs less than replacing. */
struct sqlite_backend {
	struct backend base;
	char *path, *vfs;
	int lock;
	sqlite3 *database;
	sqlite3_stmt *move, *keep, *forget;
	struct statements statements[TABLES_MAX];
	int64_t highest[TABLES_MAX];
	struct buffer scratch;
	struct arena arena;
};

static struct sqlite_backend *self_of(struct backend *backend)
{
	return (struct sqlite_backend *)(void *)backend;
}

/* True if the same may succeed when the disk, or another program, lets it. */
static bool is_passing(int code)
{
	switch (code & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_NOMEM:
	case SQLITE_INTERRUPT:
	case SQLITE_IOERR:
	case SQLITE_FULL:
	case SQLITE_CANTOPEN:
	case SQLITE_PROTOCOL:
	case SQLITE_READONLY:
		return true;
	default:
		return false;
	}
}

static bool store_sqlite_report(struct sqlite_backend *self, struct error *error)
{
	int code = self->database ? sqlite3_extended_errcode(self->database) : SQLITE_NOMEM;
	const char *text = self->database ? sqlite3_errmsg(self->database) : "out of memory";
	return error_set(error, is_passing(code) ? ERROR_UNAVAILABLE : ERROR_CORRUPT,
	                 "%s: %s (SQLite error %d)", self->path, text, code);
}

static void finalize(sqlite3_stmt **statement)
{
	sqlite3_finalize(*statement);
	*statement = NULL;
}

static void sqlite_disconnect(struct backend *backend)
{
	struct sqlite_backend *self = self_of(backend);
	finalize(&self->move);
	finalize(&self->keep);
	finalize(&self->forget);
	for (int i = 0; i < TABLES_MAX; i++) {
		struct statements *statements = &self->statements[i];
		finalize(&statements->insert);
		finalize(&statements->replace);
		finalize(&statements->archive);
		finalize(&statements->delete);
		for (int of = 0; of < TABLE_TYPES_MAX; of++)
			finalize(&statements->update[of]);
	}
	sqlite3_close(self->database);
	self->database = NULL;
}

static bool sqlite_is_connected(const struct backend *backend)
{
	return ((const struct sqlite_backend *)(const void *)backend)->database != NULL;
}

static bool sqlite_execute(struct backend *backend, const char *sql, struct error *error)
{
	struct sqlite_backend *self = self_of(backend);
	return sqlite3_exec(self->database, sql, NULL, NULL, NULL) == SQLITE_OK ||
	       store_sqlite_report(self, error);
}

/* Only one scheduler may have the file: SQLite's own locks last for one
 * transaction. Readers such as the sqlite3 program are welcome. */
static bool take_lock(struct sqlite_backend *self, struct error *error)
{
	if (self->lock >= 0)
		return true;
	struct buffer path = { 0 };
	buffer_print(&path, "%s.lock", self->path);
	int file = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	bool locked = file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0;
	if (!locked && file >= 0 && errno == EWOULDBLOCK)
		error_set(error, ERROR_UNAVAILABLE, "another scheduler has %s open", self->path);
	else if (!locked)
		error_set(error, ERROR_UNAVAILABLE, "%s: %s", path.data, strerror(errno));
	buffer_free(&path);
	if (locked)
		self->lock = file;
	else if (file >= 0)
		close(file);
	return locked;
}

static bool sqlite_connect(struct backend *backend, bool read_only, struct error *error)
{
	struct sqlite_backend *self = self_of(backend);
	int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;

	if (!read_only && !take_lock(self, error))
		return false;
	if (sqlite3_open_v2(self->path, &self->database, flags | SQLITE_OPEN_NOMUTEX, self->vfs) !=
	    SQLITE_OK) {
		store_sqlite_report(self, error);
		sqlite_disconnect(backend);
		return false;
	}
	sqlite3_busy_timeout(self->database, 2000);
	const char *settings = read_only ? "PRAGMA cache_size = -65536"
	                                 : "PRAGMA journal_mode = WAL;"
	                                   "PRAGMA synchronous = FULL;"
	                                   "PRAGMA cache_size = -65536;"
	                                   "PRAGMA wal_autocheckpoint = 8000;"
	                                   "PRAGMA journal_size_limit = 134217728;"
	                                   "PRAGMA temp_store = MEMORY";
	if (sqlite_execute(backend, settings, error))
		return true;
	sqlite_disconnect(backend);
	return false;
}

static bool prepare_one(struct sqlite_backend *self, const char *sql, sqlite3_stmt **statement,
                        struct error *error)
{
	finalize(statement);
	return sqlite3_prepare_v3(self->database, sql, -1, SQLITE_PREPARE_PERSISTENT, statement,
	                          NULL) == SQLITE_OK ||
	       store_sqlite_report(self, error);
}

static bool prepare_buffer(struct sqlite_backend *self, struct buffer *sql,
                           sqlite3_stmt **statement, struct error *error)
{
	bool done = prepare_one(self, sql->data, statement, error);
	buffer_clear(sql);
	return done;
}

static bool prepare_table(struct sqlite_backend *self, const struct table *table,
                          struct statements *statements, struct error *error)
{
	struct buffer sql = { 0 };
	memset(statements->bound, 0, sizeof(statements->bound));
	sql_insert_row(&sql, table, false);
	bool done = prepare_buffer(self, &sql, &statements->insert, error);
	if (done) {
		sql_insert_row(&sql, table, true);
		done = prepare_buffer(self, &sql, &statements->replace, error);
	}
	if (done) {
		sql_delete_row(&sql, table);
		done = prepare_buffer(self, &sql, &statements->delete, error);
	}
	if (done && !table->is_log) {
		sql_archive_row(&sql, table);
		done = prepare_buffer(self, &sql, &statements->archive, error);
	}
	for (int of = 0; done && table->type_count > 1 && of < table->type_count; of++) {
		sql_update_row(&sql, table, of);
		done = prepare_buffer(self, &sql, &statements->update[of], error);
	}
	buffer_free(&sql);
	return done;
}

static bool prepare_kept(struct sqlite_backend *self, struct error *error)
{
	const struct table *table = &self->base.schema->kept;
	struct buffer sql = { 0 };
	sql_insert_row(&sql, table, true);
	bool done = prepare_buffer(self, &sql, &self->keep, error);
	if (done) {
		sql_delete_row(&sql, table);
		done = prepare_buffer(self, &sql, &self->forget, error);
	}
	buffer_free(&sql);
	return done;
}

static bool sqlite_prepare(struct backend *backend, struct error *error)
{
	struct sqlite_backend *self = self_of(backend);
	if (!prepare_one(self,
	                 "UPDATE leader SET batch = batch + 1, commands = commands + ?1, "
	                 "renewed_ms = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) "
	                 "WHERE id = 1 AND holder = ?2 AND term = ?3 AND batch = ?4",
	                 &self->move, error) ||
	    !prepare_kept(self, error))
		return false;
	for (int i = 0; i < backend->schema->count; i++)
		if (!prepare_table(self, &backend->schema->tables[i], &self->statements[i], error))
			return false;
	return backend_highest(backend, self->highest, error);
}

static bool sqlite_query(struct backend *backend, const char *sql, text_row row, void *context,
                         struct error *error)
{
	enum { VALUES_MAX = 16 };
	struct sqlite_backend *self = self_of(backend);
	sqlite3_stmt *statement = NULL;
	const char *values[VALUES_MAX] = { NULL };
	bool done = prepare_one(self, sql, &statement, error);
	int code = SQLITE_DONE;

	while (done && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		int count = sqlite3_column_count(statement);
		INVARIANT(count <= VALUES_MAX);
		for (int i = 0; i < count && done; i++) {
			values[i] = (const char *)sqlite3_column_text(statement, i);
			if (!values[i] && sqlite3_errcode(self->database) == SQLITE_NOMEM)
				done = store_sqlite_report(self, error);
		}
		done = done && row(context, values, error);
	}
	if (done && code != SQLITE_DONE)
		done = store_sqlite_report(self, error);
	finalize(&statement);
	return done;
}

/* The cell of the current row. Its text is NULL where memory ran out, and where
 * there is a NULL, which no column of ours may hold. */
static struct cell cell_at(sqlite3_stmt *statement, int place)
{
	if (sqlite3_column_type(statement, place) == SQLITE_INTEGER)
		return (struct cell){ .number = sqlite3_column_int64(statement, place) };
	const char *text = (const char *)sqlite3_column_text(statement, place);
	return (struct cell){ .is_text = true,
		              .text = text,
		              .length = (size_t)sqlite3_column_bytes(statement, place) };
}

static bool no_text(struct sqlite_backend *self, const struct record_field *field,
                    struct error *error)
{
	if (sqlite3_errcode(self->database) == SQLITE_NOMEM)
		return store_sqlite_report(self, error);
	return error_set(error, ERROR_CORRUPT, "%s: the column %s is NULL", self->path,
	                 field->name);
}

static void *read_row(struct sqlite_backend *self, sqlite3_stmt *statement,
                      const struct table *table, int of, struct error *error)
{
	const struct record_type *type = table->types[of];
	arena_reset(&self->arena);
	void *record = arena_alloc(&self->arena, type->size);
	memset(record, 0, type->size);
	for (int i = 0; i < type->field_count; i++) {
		struct cell cell = cell_at(statement, i);
		if (cell.is_text && !cell.text && !no_text(self, &type->fields[i], error))
			return NULL;
		if (!cell_read(&type->fields[i], record, cell, &self->arena, error))
			return NULL;
	}
	return record;
}

static bool sqlite_scan(struct backend *backend, const struct table *table, int of,
                        const char *rest, record_row row, void *context, struct error *error)
{
	struct sqlite_backend *self = self_of(backend);
	sqlite3_stmt *statement = NULL;
	struct buffer sql = { 0 };
	int code = SQLITE_DONE;

	sql_select(&sql, table, of, rest);
	bool done = prepare_one(self, sql.data, &statement, error);
	while (done && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		const void *record = read_row(self, statement, table, of, error);
		done = record && row(context, record, error);
	}
	if (done && code != SQLITE_DONE)
		done = store_sqlite_report(self, error);
	finalize(&statement);
	buffer_free(&sql);
	return done;
}

/* Binds one field; what is not part of the batch is copied by SQLite. */
static int bind_field(struct sqlite_backend *self, sqlite3_stmt *statement, int place,
                      const struct record_field *field, const void *record)
{
	struct cell cell = cell_of(field, record, &self->scratch);
	if (!cell.is_text)
		return sqlite3_bind_int64(statement, place, cell.number);
	bool stays = cell.text != self->scratch.data;
	return sqlite3_bind_text(statement, place, cell.text, (int)cell.length,
	                         stays ? SQLITE_STATIC : SQLITE_TRANSIENT);
}

static struct bound bound_by(const struct record_field *field, const void *record)
{
	const void *at = (const char *)record + field->offset;
	if (field->kind == FIELD_TEXT) {
		const char *text = *(const char *const *)at;
		return (struct bound){ text && *text ? BOUND_OTHERWISE : BOUND_EMPTY, 0 };
	}
	if (field->kind == FIELD_ROWS) {
		const struct rows *rows = at;
		return (struct bound){ rows->count > 0 ? BOUND_OTHERWISE : BOUND_EMPTY, 0 };
	}
	return (struct bound){ BOUND_NUMBER, field_number(field, record) };
}

/* Binds one field, unless it is bound to the same already. */
static int bind_anew(struct sqlite_backend *self, sqlite3_stmt *statement, int place,
                     const struct record_field *field, const void *record, struct bound *bound)
{
	struct bound wanted = bound_by(field, record);
	if (wanted.to != BOUND_OTHERWISE && wanted.to == bound->to &&
	    wanted.number == bound->number)
		return SQLITE_OK;
	bound->to = BOUND_OTHERWISE;
	int code = bind_field(self, statement, place, field, record);
	if (code == SQLITE_OK)
		*bound = wanted;
	return code;
}

/* Runs it, makes it ready for the next row; SQLITE_OK or what went wrong. */
static int store_sqlite_run(sqlite3_stmt *statement)
{
	int code = sqlite3_step(statement);
	int again = sqlite3_reset(statement);
	return code == SQLITE_DONE ? SQLITE_OK : again == SQLITE_OK ? code : again;
}

static int write_whole(struct sqlite_backend *self, const struct table *table,
                       struct statements *statements, const struct batch_row *row, bool is_new)
{
	sqlite3_stmt *statement = is_new ? statements->insert : statements->replace;
	int code = SQLITE_OK;
	for (int i = 0; i < table->column_count && code == SQLITE_OK; i++) {
		const struct record_field *field = table->columns[i].field;
		const void *record = row->records[table->columns[i].of];
		code = is_new
		           ? bind_anew(self, statement, i + 1, field, record, &statements->bound[i])
		           : bind_field(self, statement, i + 1, field, record);
	}
	if (code == SQLITE_OK && !table->is_log)
		code = sqlite3_bind_int64(statement, table->column_count + 1, row->archived);
	return code == SQLITE_OK ? store_sqlite_run(statement) : code;
}

static int bind_keys(sqlite3_stmt *statement, const struct table *table, struct record_key key)
{
	int code = sqlite3_bind_int64(statement, 1, key.first);
	if (code == SQLITE_OK && table->keys > 1)
		code = sqlite3_bind_int64(statement, 2, key.second);
	return code;
}

static int write_part(struct sqlite_backend *self, const struct table *table,
                      sqlite3_stmt *statement, const struct batch_row *row, int of)
{
	int first, last;
	int code = bind_keys(statement, table, row->key);
	table_range(table, of, &first, &last);
	for (int i = first; i < last && code == SQLITE_OK; i++)
		code = bind_field(self, statement, i - first + table->keys + 1,
		                  table->columns[i].field, row->records[of]);
	return code == SQLITE_OK ? store_sqlite_run(statement) : code;
}

static int write_key(const struct table *table, sqlite3_stmt *statement,
                     const struct batch_row *row)
{
	int code = bind_keys(statement, table, row->key);
	return code == SQLITE_OK ? store_sqlite_run(statement) : code;
}

static int write_row(struct sqlite_backend *self, int place, const struct batch_row *row)
{
	const struct table *table = &self->base.schema->tables[place];
	struct statements *statements = &self->statements[place];
	bool is_new = row->key.first > self->highest[place];
	if (row->deleted)
		return write_key(table, statements->delete, row);
	if (batch_row_is_whole(table, row))
		return write_whole(self, table, statements, row, is_new);
	int code = SQLITE_OK;
	for (int of = 0; of < table->type_count && code == SQLITE_OK; of++) {
		if (!row->records[of])
			continue;
		code = write_part(self, table, statements->update[of], row, of);
		/* There is no other half of this row. */
		if (code == SQLITE_OK && sqlite3_changes(self->database) != 1)
			return SQLITE_CORRUPT;
	}
	if (code == SQLITE_OK && row->archived)
		code = write_key(table, statements->archive, row);
	return code;
}

static int write_rows(struct sqlite_backend *self, const struct batch *batch)
{
	for (int i = 0; i < batch->schema->count; i++) {
		const struct batch_table *rows = &batch->tables[i];
		for (size_t j = 0; j < rows->count; j++) {
			int code = write_row(self, i, &rows->rows[j]);
			if (code != SQLITE_OK)
				return code;
		}
	}
	return SQLITE_OK;
}

static int write_kept(struct sqlite_backend *self, const struct batch *batch)
{
	const struct table *table = &self->base.schema->kept;
	int code = SQLITE_OK;
	for (size_t i = 0; i < batch->kept_count && code == SQLITE_OK; i++) {
		const struct kept *kept = &batch->kept[i];
		sqlite3_stmt *statement = kept->value ? self->keep : self->forget;
		int count = kept->value ? table->column_count : table->keys;
		for (int j = 0; j < count && code == SQLITE_OK; j++)
			code = bind_field(self, statement, j + 1, table->columns[j].field, kept);
		if (code == SQLITE_OK)
			code = store_sqlite_run(statement);
	}
	return code;
}

/* SQLITE_OK with `*moved` false if the row was not where it should be. */
static int move_leader(struct sqlite_backend *self, const struct batch *batch,
                       const struct leader *from, bool *moved)
{
	int code = sqlite3_bind_int64(self->move, 1, batch->command_count);
	if (code == SQLITE_OK)
		code = sqlite3_bind_text(self->move, 2, from->holder, -1, SQLITE_STATIC);
	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(self->move, 3, from->position.term);
	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(self->move, 4, from->position.batch);
	if (code == SQLITE_OK)
		code = store_sqlite_run(self->move);
	*moved = code == SQLITE_OK && sqlite3_changes(self->database) == 1;
	return code;
}

static enum write_outcome write_failed(struct sqlite_backend *self, int code, struct error *error)
{
	enum error_code kind = is_passing(code) ? ERROR_UNAVAILABLE : ERROR_CORRUPT;
	error_set(error, kind, "%s: %s (SQLite error %d)", self->path, sqlite3_errstr(code), code);
	if (!sqlite3_get_autocommit(self->database))
		sqlite3_exec(self->database, "ROLLBACK", NULL, NULL, NULL);
	return is_passing(code) ? WRITE_UNKNOWN : WRITE_REFUSED;
}

static enum write_outcome sqlite_write(struct backend *backend, const struct batch *batch,
                                       const struct leader *from, struct error *error)
{
	struct sqlite_backend *self = self_of(backend);
	bool moved = false;
	int code = sqlite3_exec(self->database, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = move_leader(self, batch, from, &moved);
	if (code == SQLITE_OK && !moved) {
		sqlite3_exec(self->database, "ROLLBACK", NULL, NULL, NULL);
		error_set(error, ERROR_CONFLICT, "%s: another scheduler has taken over",
		          self->path);
		return WRITE_MOVED;
	}
	if (code == SQLITE_OK)
		code = write_rows(self, batch);
	if (code == SQLITE_OK)
		code = write_kept(self, batch);
	if (code == SQLITE_OK && batch->sql.size > 0)
		code = sqlite3_exec(self->database, batch->sql.data, NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_exec(self->database, "COMMIT", NULL, NULL, NULL);
	if (code != SQLITE_OK)
		return write_failed(self, code, error);
	batch_note_highest(batch, self->highest);
	return WRITE_DONE;
}

/* The lock on the file already says that nobody else has anything open. */
static bool sqlite_evict(struct backend *backend, const char *holder, struct error *error)
{
	(void)backend;
	(void)holder;
	(void)error;
	return true;
}

static void sqlite_free(struct backend *backend)
{
	struct sqlite_backend *self = self_of(backend);
	sqlite_disconnect(backend);
	if (self->lock >= 0)
		close(self->lock);
	buffer_free(&self->scratch);
	arena_free(&self->arena);
	free(self->path);
	free(self->vfs);
	free(self);
}

struct backend *backend_sqlite(const struct store_options *options, const struct schema *schema)
{
	struct sqlite_backend *self = NEW(struct sqlite_backend);
	const char *path = options->database;
	self->base = (struct backend){
		.dialect = DIALECT_SQLITE,
		.schema = schema,
		.connect = sqlite_connect,
		.disconnect = sqlite_disconnect,
		.is_connected = sqlite_is_connected,
		.execute = sqlite_execute,
		.query = sqlite_query,
		.scan = sqlite_scan,
		.prepare = sqlite_prepare,
		.write = sqlite_write,
		.evict = sqlite_evict,
		.free = sqlite_free,
	};
	self->path = memory_text(strncmp(path, "sqlite:", 7) == 0 ? path + 7 : path);
	self->vfs = options->vfs ? memory_text(options->vfs) : NULL;
	self->lock = -1;
	return &self->base;
}
