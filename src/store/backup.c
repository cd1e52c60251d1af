/* backup.c - a copy of everything in one file, made while a scheduler works; and back */
#include "store/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/backend.h"
#include "store/migrate.h"
#include "store/sql.h"

/* Rows in a transaction of the copy. */
enum { COPY_ROWS_MAX = 10000 };

static bool sync_file(const char *path, struct error *error)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	bool synced = file >= 0 && fsync(file) == 0;
	if (!synced)
		error_set(error, ERROR_UNAVAILABLE, "%s: %s", path, strerror(errno));
	if (file >= 0)
		close(file);
	return synced;
}

/* The file's own content, then its name. */
static bool put_in_place(const char *from, const char *to, struct error *error)
{
	if (!sync_file(from, error))
		return false;
	if (rename(from, to) != 0)
		return error_set(error, ERROR_UNAVAILABLE, "%s: %s", to, strerror(errno));
	struct buffer folder = { 0 };
	const char *slash = strrchr(to, '/');
	buffer_bytes(&folder, to, slash ? (size_t)(slash - to) : 0);
	buffer_text(&folder, slash ? "" : ".");
	bool synced = sync_file(*folder.data ? folder.data : "/", error);
	buffer_free(&folder);
	return synced;
}

/* A copy of records from one store to another. */
struct copying {
	struct store *to;
	struct batch *batch;
	enum record_kind kind;
	bool archived;
};

static bool flush(struct copying *copying, size_t least, struct error *error)
{
	if (copying->batch->rows < least)
		return true;
	if (store_commit(copying->to, copying->batch, error) != STORE_DONE)
		return false;
	batch_clear(copying->batch);
	return true;
}

/* Half of a row comes with its other half: a job's state follows in the same
 * batch only if both are read together, so a batch ends between tables. */
static bool copy_record(void *context, const void *record, struct error *error)
{
	struct copying *copying = context;
	const struct table *table = copying->batch->schema->kinds[copying->kind].table;
	batch_put(copying->batch, copying->kind, record, copying->archived);
	return table->type_count > 1 || flush(copying, COPY_ROWS_MAX, error);
}

static bool copy_event(void *context, const void *record, struct error *error)
{
	struct copying *copying = context;
	batch_event(copying->batch, record);
	return flush(copying, COPY_ROWS_MAX, error);
}

static bool copy_kept(void *context, const struct kept *kept, struct error *error)
{
	struct copying *copying = context;
	batch_keep(copying->batch, kept->kind, kept->key, kept->value);
	return flush(copying, COPY_ROWS_MAX, error);
}

/* All types of a table, for keys from `first` to before `last`. */
static bool copy_range(struct store *from, struct copying *copying, const struct table *table,
                       int64_t first, int64_t last, struct error *error)
{
	struct backend *backend = store_backend(from);
	const struct schema *schema = store_schema(from);
	for (int archived = 0; archived < (table->is_log ? 1 : 2); archived++) {
		copying->archived = archived == 1;
		for (enum record_kind kind = 0; kind < RECORD_KINDS; kind++) {
			char rest[160];
			if (schema->kinds[kind].table != table)
				continue;
			copying->kind = kind;
			const char *key = table->columns[0].name;
			snprintf(rest, sizeof(rest), "WHERE \"%s\" >= %lld AND \"%s\" < %lld%s",
			         key, (long long)first, key, (long long)last,
			         table->is_log ? ""
			         : archived    ? " AND archived"
			                       : " AND NOT archived");
			if (!backend->scan(backend, table, schema->kinds[kind].of, rest,
			                   copy_record, copying, error))
				return false;
		}
	}
	return true;
}

/* Rows that are several records are read in ranges of their ids, so that all of
 * a row is in one batch. */
static bool copy_table(struct store *from, struct copying *copying, const struct table *table,
                       struct error *error)
{
	struct backend *backend = store_backend(from);
	int64_t highest = 0;
	char sql[160];
	if (table == store_schema(from)->events)
		return backend->scan(backend, table, 0, "", copy_event, copying, error);
	if (table->type_count == 1)
		return copy_range(from, copying, table, INT64_MIN, INT64_MAX, error);
	snprintf(sql, sizeof(sql), "SELECT max(\"%s\") FROM \"%s\"", table->columns[0].name,
	         table->name);
	if (!backend_number(backend, sql, &highest, error))
		return false;
	for (int64_t first = 0; first <= highest; first += COPY_ROWS_MAX)
		if (!copy_range(from, copying, table, first, first + COPY_ROWS_MAX, error) ||
		    !flush(copying, 1, error))
			return false;
	return true;
}

static bool copy_tables(struct store *from, struct store *to, struct error *error)
{
	struct copying copying = { .to = to, .batch = batch_new(store_schema(to)) };
	bool done = true;
	for (int i = 0; done && i < store_schema(from)->count; i++)
		done = copy_table(from, &copying, &store_schema(from)->tables[i], error);
	done =
	    done && store_load_kept(from, copy_kept, &copying, error) && flush(&copying, 1, error);
	batch_free(copying.batch);
	return done;
}

/* Whose database it was is not part of a backup; where it stood is. */
static bool copy_position(struct store *to, struct store_position position, struct error *error)
{
	struct backend *backend = store_backend(to);
	char sql[160];
	snprintf(sql, sizeof(sql),
	         "UPDATE leader SET holder = '', term = %lld, batch = %lld, commands = %lld",
	         (long long)position.term, (long long)position.batch, (long long)position.commands);
	return backend->execute(backend, sql, error);
}

static bool copy_all(struct store *from, const char *path, struct error *error)
{
	struct store *to = store_new(&(struct store_options){ .database = path, .name = "backup" });
	bool done = store_lead(to, error) == STORE_DONE && copy_tables(from, to, error) &&
	            copy_position(to, store_position(from), error);
	store_free(to);
	return done;
}

static void remove_database(const char *path)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-journal", ".lock" };
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		struct buffer name = { 0 };
		buffer_print(&name, "%s%s", path, suffixes[i]);
		unlink(name.data);
		buffer_free(&name);
	}
}

/* SQLite copies itself; PostgreSQL shows what is stored at one moment. */
static bool write_copy(const struct store_options *from, const char *path, struct error *error)
{
	struct store *store = store_new(from);
	struct backend *backend = store_backend(store);
	struct buffer sql = { 0 };
	bool done = store_read_only(store, error) == STORE_DONE;
	if (done && !store_is_postgres(store)) {
		buffer_text(&sql, "VACUUM INTO ");
		sql_literal(&sql, path);
		done = backend->execute(backend, sql.data, error);
	} else if (done) {
		done = backend->execute(backend, "BEGIN ISOLATION LEVEL REPEATABLE READ", error) &&
		       store_read_only(store, error) == STORE_DONE && copy_all(store, path, error);
	}
	buffer_free(&sql);
	store_free(store);
	return done;
}

bool backup_write(const struct store_options *from, const char *path, struct error *error)
{
	struct buffer draft = { 0 };
	if (access(path, F_OK) == 0)
		return error_set(error, ERROR_CONFLICT, "%s is there already", path);
	buffer_print(&draft, "%s.part", path);
	remove_database(draft.data);
	bool done = write_copy(from, draft.data, error);
	if (done && !put_in_place(draft.data, path, error))
		done = false;
	remove_database(draft.data);
	buffer_free(&draft);
	return done;
}

/* Moves terms and ids beyond those of the backup and of the database before:
 * UPDATE meta SET term = GAP + (the larger of both), ... */
static void put_gap(struct buffer *sql)
{
	const struct record_type *meta = record_type(RECORD_META);
	const char *before = "UPDATE meta SET ";
	for (int i = 0; i < meta->field_count; i++) {
		const char *name = meta->fields[i].name;
		if (strcmp(name, "term") != 0 && strncmp(name, "last_", 5) != 0)
			continue;
		buffer_print(
		    sql,
		    "%s%s = %d + (SELECT max(known.%s) FROM (SELECT %s FROM meta UNION ALL "
		    "SELECT %s FROM restore_floor) AS known)",
		    before, name, RESTORE_GAP, name, name, name);
		before = ", ";
	}
	buffer_text(sql, "; DROP TABLE restore_floor;");
}

static bool is_loadable(struct store *store, struct error *error)
{
	struct sched *sched = sched_new();
	bool loaded = store_load(store, sched, error);
	sched_free(sched);
	return loaded;
}

/* True if a scheduler ever wrote here. */
static bool is_used(struct store *to, bool *used, struct error *error)
{
	int64_t count = 0;
	bool done = backend_number(store_backend(to), "SELECT count(*) FROM meta", &count, error);
	*used = count > 0;
	return done;
}

/* No scheduler starts on a version that is not complete. What was given out before
 * is remembered until the restore, or one after it, has finished. */
static bool restore_rows(struct store *from, struct store *to, struct error *error)
{
	struct backend *backend = store_backend(to);
	struct buffer sql = { 0 };
	buffer_print(&sql,
	             "BEGIN; UPDATE schema_version SET version = %d;"
	             "UPDATE leader SET jobs_from = 0;"
	             "CREATE TABLE IF NOT EXISTS restore_floor AS SELECT * FROM meta;",
	             SCHEMA_RESTORING);
	for (int i = 0; i < store_schema(to)->count; i++)
		buffer_print(&sql, "DELETE FROM \"%s\";", store_schema(to)->tables[i].name);
	buffer_text(&sql, "DELETE FROM kept; COMMIT");
	bool done = backend->execute(backend, sql.data, error) &&
	            backend->prepare(backend, error) && copy_tables(from, to, error);
	buffer_clear(&sql);
	buffer_text(&sql, "BEGIN;");
	put_gap(&sql);
	buffer_print(&sql, "UPDATE schema_version SET version = %d; COMMIT", SCHEMA_VERSION);
	done = done && backend->execute(backend, sql.data, error);
	buffer_free(&sql);
	return done;
}

static bool restore_into(struct store *from, struct store *to, bool replace, struct error *error)
{
	bool used = false;
	store_backend(to)->restores = true;
	if (store_lead(to, error) != STORE_DONE || !is_used(to, &used, error))
		return false;
	if (used && !replace)
		return error_set(error, ERROR_CONFLICT,
		                 "the database is not empty; use --yes to replace it");
	return restore_rows(from, to, error);
}

bool backup_restore(const struct store_options *to, const char *path, bool replace,
                    struct error *error)
{
	struct store *from =
	    store_new(&(struct store_options){ .database = path, .name = "backup" });
	struct store *target = store_new(to);
	bool done = access(path, R_OK) == 0 ||
	            error_set(error, ERROR_NOT_FOUND, "%s: %s", path, strerror(errno));
	done = done && store_read_only(from, error) == STORE_DONE && is_loadable(from, error) &&
	       restore_into(from, target, replace, error);
	store_free(from);
	store_free(target);
	return done;
}
