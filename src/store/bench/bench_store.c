/* bench_store.c - how fast jobs become durable, against the bare databases: bench_store JSON-FILE
 *
 * With STORE_TEST_POSTGRES in the environment, a connection to a database that
 * may be emptied, PostgreSQL is measured, too. BENCH_JOBS says how many jobs. */
#include <errno.h>
#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/cell.h"
#include "store/rowtext.h"
#include "store/sql.h"
#include "store/writer.h"

enum { ROUNDS = 5, BATCH_ROWS = 10000, STARTUP_JOBS = 1000000 };

static struct command submit_command(int64_t number, char *name, size_t size)
{
	snprintf(name, size, "train-model-%lld", (long long)(number % 100));
	return (struct command){
		.kind = COMMAND_SUBMIT,
		.now_ms = 1700000000000 + number,
		.submit = { .job = { .tenant_id = 1,
		                     .name = name,
		                     .payload =
		                         "{\"command\":[\"python\",\"train.py\",\"--epochs\","
		                         "\"10\"],\"image\":\"train:1\"}",
		                     .gpu_kind = GPU_WHOLE,
		                     .gpu_count = 1 + (int32_t)(number % 8),
		                     .cpu_milli = 4000,
		                     .host_bytes = INT64_C(16) << 30,
		                     .gpu_models = "",
		                     .node_labels = "",
		                     .idempotency_key = "",
		                     .preemptible = true } }
	};
}

static struct command tenant_command(void)
{
	return (struct command){ .kind = COMMAND_PUT_TENANT,
		                 .now_ms = 1700000000000,
		                 .tenant = { .name = "team",
		                             .limit_gpu = UNLIMITED,
		                             .limit_cpu = UNLIMITED,
		                             .limit_host = UNLIMITED,
		                             .limit_gpu_memory = UNLIMITED,
		                             .limit_jobs = UNLIMITED,
		                             .quota_gpu = UNLIMITED,
		                             .quota_cpu = UNLIMITED,
		                             .quota_host = UNLIMITED,
		                             .weight = 1000,
		                             .max_preemptions = UNLIMITED,
		                             .queue_max = UNLIMITED,
		                             .budget_per_month = UNLIMITED } };
}

static void store_apply(struct sched *sched, const struct command *command, struct effects *effects)
{
	struct error error;
	effects_clear(effects);
	if (!sched_apply(sched, command, effects, &error))
		panic("refused: %s", error.text);
}

/* Seconds: of the clock, and of the processor in the threads that took part. */
struct times {
	double wall, writer, core;
};

/* What was durable, and what the writer's thread had used by then. */
struct progress {
	int64_t replies;
	double writer_s;
};

static void store_on_durable(void *context, const struct batch *batch)
{
	struct progress *progress = context;
	progress->replies += (int64_t)batch->reply_count;
	progress->writer_s = clock_s(CLOCK_THREAD_CPUTIME_ID);
}

static void store_on_failed(void *context, const struct error *error)
{
	(void)context;
	panic("%s", error->text);
}

/* Submits through the core, the writer and the journal, as fast as they take it,
 * until all of it is durable. */
static struct times submit_all(const char *database, const char *journal_directory, int64_t jobs)
{
	struct store *store =
	    store_new(&(struct store_options){ .database = database, .name = "bench" });
	struct journal *journal =
	    journal_new(&(struct journal_options){ .directory = journal_directory });
	struct sched *sched = sched_new();
	struct effects effects = { 0 };
	struct error error;
	struct progress progress = { 0 };
	struct times times;
	char name[64];

	if (store_lead(store, &error) != STORE_DONE || !store_load(store, sched, &error))
		panic("%s", error.text);
	struct writer *writer = writer_start(&(struct writer_options){ .store = store,
	                                                               .journal = journal,
	                                                               .durable = store_on_durable,
	                                                               .failed = store_on_failed,
	                                                               .context = &progress });
	struct command command = { .kind = COMMAND_START, .now_ms = 1700000000000 };
	store_apply(sched, &command, &effects);
	writer_add(writer, &command, &effects, NULL);
	command = tenant_command();
	store_apply(sched, &command, &effects);
	writer_add(writer, &command, &effects, NULL);
	double began_s = clock_s(CLOCK_MONOTONIC), core_s = clock_s(CLOCK_THREAD_CPUTIME_ID);
	for (int64_t i = 0; i < jobs; i++) {
		while (!writer_has_room(writer, 1000))
			;
		command = submit_command(i, name, sizeof(name));
		store_apply(sched, &command, &effects);
		writer_add(writer, &command, &effects, NULL);
	}
	times.core = clock_s(CLOCK_THREAD_CPUTIME_ID) - core_s;
	writer_stop(writer);
	times.wall = clock_s(CLOCK_MONOTONIC) - began_s;
	times.writer = progress.writer_s;
	if (progress.replies != jobs + 2)
		panic("%lld of %lld were durable", (long long)progress.replies,
		      (long long)jobs + 2);
	effects_free(&effects);
	sched_free(sched);
	journal_free(journal);
	store_free(store);
	return times;
}

/* The rows of `jobs` as the core makes them, in batches. */
struct rows_of_jobs {
	struct schema schema;
	const struct table *table;
	struct batch **batches;
	int64_t count;
};

static void make_rows(struct rows_of_jobs *rows, int64_t jobs)
{
	struct sched *sched = sched_new();
	struct effects effects = { 0 };
	char name[64];
	schema_init(&rows->schema);
	rows->table = rows->schema.kinds[RECORD_JOB].table;
	rows->count = jobs / BATCH_ROWS;
	rows->batches = memory_zero((size_t)rows->count, sizeof(*rows->batches));
	struct command command = tenant_command();
	store_apply(sched, &command, &effects);
	for (int64_t i = 0; i < rows->count * BATCH_ROWS; i++) {
		struct batch **batch = &rows->batches[i / BATCH_ROWS];
		if (!*batch)
			*batch = batch_new(&rows->schema);
		command = submit_command(i, name, sizeof(name));
		store_apply(sched, &command, &effects);
		batch_add(*batch, NULL, &effects, NULL);
	}
	effects_free(&effects);
	sched_free(sched);
}

static void free_rows(struct rows_of_jobs *rows)
{
	for (int64_t i = 0; i < rows->count; i++)
		batch_free(rows->batches[i]);
	free(rows->batches);
}

static const struct batch_table *jobs_of(const struct rows_of_jobs *rows, int64_t batch)
{
	return &rows->batches[batch]->tables[rows->table - rows->schema.tables];
}

static void must(int code, sqlite3 *database)
{
	if (code != SQLITE_OK && code != SQLITE_DONE)
		panic("SQLite: %s", sqlite3_errmsg(database));
}

static void bind_row(sqlite3_stmt *statement, const struct table *table,
                     const struct batch_row *row, struct buffer *scratch)
{
	for (int i = 0; i < table->column_count; i++) {
		const struct column *column = &table->columns[i];
		struct cell cell = cell_of(column->field, row->records[column->of], scratch);
		if (cell.is_text)
			sqlite3_bind_text(statement, i + 1, cell.text, (int)cell.length,
			                  SQLITE_STATIC);
		else
			sqlite3_bind_int64(statement, i + 1, cell.number);
	}
	sqlite3_bind_int64(statement, table->column_count + 1, 0);
}

/* Inserts the rows into a table with no index but its key, one at a time. */
static struct times insert_bare_sqlite(const char *path, const struct rows_of_jobs *rows)
{
	sqlite3 *database;
	sqlite3_stmt *statement;
	struct buffer sql = { 0 }, scratch = { 0 };
	must(sqlite3_open(path, &database), NULL);
	sql_create(&sql, rows->table, DIALECT_SQLITE);
	must(sqlite3_exec(database, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", NULL,
	                  NULL, NULL),
	     database);
	must(sqlite3_exec(database, sql.data, NULL, NULL, NULL), database);
	buffer_clear(&sql);
	sql_insert_row(&sql, rows->table, false);
	must(sqlite3_prepare_v2(database, sql.data, -1, &statement, NULL), database);
	double began_s = clock_s(CLOCK_MONOTONIC), writer_s = clock_s(CLOCK_THREAD_CPUTIME_ID);
	for (int64_t i = 0; i < rows->count; i++) {
		const struct batch_table *jobs = jobs_of(rows, i);
		must(sqlite3_exec(database, "BEGIN", NULL, NULL, NULL), database);
		for (size_t j = 0; j < jobs->count; j++) {
			bind_row(statement, rows->table, &jobs->rows[j], &scratch);
			must(sqlite3_step(statement), database);
			sqlite3_reset(statement);
		}
		must(sqlite3_exec(database, "COMMIT", NULL, NULL, NULL), database);
	}
	struct times times = { clock_s(CLOCK_MONOTONIC) - began_s,
		               clock_s(CLOCK_THREAD_CPUTIME_ID) - writer_s, 0 };
	sqlite3_finalize(statement);
	sqlite3_close(database);
	buffer_free(&sql);
	buffer_free(&scratch);
	return times;
}

static void execute(PGconn *connection, const char *sql, ExecStatusType wanted)
{
	PGresult *result = PQexec(connection, sql);
	if (PQresultStatus(result) != wanted)
		panic("PostgreSQL: %s", PQerrorMessage(connection));
	PQclear(result);
}

static void put_copy(const struct rows_of_jobs *rows, int64_t batch, struct buffer *text)
{
	struct buffer scratch = { 0 };
	const struct batch_table *jobs = jobs_of(rows, batch);
	buffer_clear(text);
	for (size_t i = 0; i < jobs->count; i++) {
		for (int j = 0; j < rows->table->column_count; j++) {
			const struct column *column = &rows->table->columns[j];
			copy_put(
			    text, column->field,
			    cell_of(column->field, jobs->rows[i].records[column->of], &scratch));
			buffer_bytes(text, "\t", 1);
		}
		buffer_bytes(text, "f\n", 2);
	}
	buffer_free(&scratch);
}

/* Inserts the rows by COPY, in the same process: the time includes formatting the text. */
static struct times insert_bare_postgres(const char *database, const struct rows_of_jobs *rows)
{
	PGconn *connection = PQconnectdb(database);
	struct buffer sql = { 0 }, text = { 0 };
	sql_create(&sql, rows->table, DIALECT_POSTGRES);
	execute(connection, sql.data, PGRES_COMMAND_OK);
	double began_s = clock_s(CLOCK_MONOTONIC), writer_s = clock_s(CLOCK_THREAD_CPUTIME_ID);
	for (int64_t i = 0; i < rows->count; i++) {
		put_copy(rows, i, &text);
		execute(connection, "BEGIN", PGRES_COMMAND_OK);
		execute(connection, "COPY jobs FROM STDIN", PGRES_COPY_IN);
		if (PQputCopyData(connection, text.data, (int)text.size) != 1 ||
		    PQputCopyEnd(connection, NULL) != 1)
			panic("PostgreSQL: %s", PQerrorMessage(connection));
		PQclear(PQgetResult(connection));
		PQclear(PQgetResult(connection));
		execute(connection, "COMMIT", PGRES_COMMAND_OK);
	}
	struct times times = { clock_s(CLOCK_MONOTONIC) - began_s,
		               clock_s(CLOCK_THREAD_CPUTIME_ID) - writer_s, 0 };
	PQfinish(connection);
	buffer_free(&sql);
	buffer_free(&text);
	return times;
}

/* A folder for one measurement, beside the JSON file: on a disk, not in memory. */
struct place {
	char folder[512], database[600];
	const char *postgres; /* NULL: SQLite */
};

static void place_clear(struct place *place)
{
	char command[1100];
	snprintf(command, sizeof(command), "rm -rf '%s' && mkdir -p '%s'", place->folder,
	         place->folder);
	if (system(command) != 0) /* NOLINT(cert-env33-c) */
		panic("%s cannot be made", place->folder);
	if (!place->postgres)
		return;
	PGconn *connection = PQconnectdb(place->postgres);
	execute(connection,
	        "SET client_min_messages = error; DROP SCHEMA public CASCADE; CREATE SCHEMA public",
	        PGRES_COMMAND_OK);
	execute(connection, "CHECKPOINT", PGRES_COMMAND_OK);
	PQfinish(connection);
}

/* Of several rounds the fastest: what else runs on the machine only slows down. */
static void keep_fastest(struct times *best, struct times times)
{
	if (best->wall == 0 || times.wall < best->wall)
		*best = times;
}

/* Alternates between the bare database and the store. */
static void store_measure(struct place *place, int64_t jobs, struct times *bare, struct times *ours)
{
	struct rows_of_jobs rows = { 0 };
	make_rows(&rows, jobs);
	for (int i = 0; i < ROUNDS; i++) {
		place_clear(place);
		keep_fastest(bare, place->postgres ? insert_bare_postgres(place->postgres, &rows)
		                                   : insert_bare_sqlite(place->database, &rows));
		place_clear(place);
		keep_fastest(ours, submit_all(place->postgres ? place->postgres : place->database,
		                              place->folder, jobs));
	}
	free_rows(&rows);
}

/* From nothing to a core that has a million waiting jobs. */
static double measure_startup(struct place *place)
{
	const char *database = place->postgres ? place->postgres : place->database;
	struct error error;
	place_clear(place);
	submit_all(database, place->folder, STARTUP_JOBS);
	double began_s = clock_s(CLOCK_MONOTONIC);
	struct store *store =
	    store_new(&(struct store_options){ .database = database, .name = "bench" });
	struct sched *sched = sched_new();
	if (store_lead(store, &error) != STORE_DONE || !store_load(store, sched, &error))
		panic("%s", error.text);
	double took_s = clock_s(CLOCK_MONOTONIC) - began_s;
	sched_free(sched);
	store_free(store);
	return took_s;
}

/* One line of the table, and of the JSON. */
struct line {
	const char *name, *unit;
	double value;
	const char *target;
	bool is_met;
};

static void put_lines(const struct line *lines, int count, FILE *json)
{
	printf("%-28s %12s %-8s %-28s %s\n", "", "value", "", "target", "met");
	fprintf(json, "{\n");
	for (int i = 0; i < count; i++) {
		const struct line *line = &lines[i];
		printf("%-28s %12.2f %-8s %-28s %s\n", line->name, line->value, line->unit,
		       line->target,
		       !*line->target ? ""
		       : line->is_met ? "yes"
		                      : "NO");
		fprintf(json, "  \"%s\": %.3f%s\n", line->name, line->value,
		        i + 1 < count ? "," : "");
	}
	fprintf(json, "}\n");
}

enum { LINES = 7 };

static void measure_all(struct place *place, int64_t jobs, const char *const names[LINES],
                        struct line *lines)
{
	struct times bare = { 0 }, ours = { 0 };
	double count = (double)jobs;
	store_measure(place, jobs, &bare, &ours);
	double startup_s = measure_startup(place), of_bare = bare.wall / ours.wall;
	lines[0] = (struct line){ names[0], "rows/s", count / bare.wall, "", true };
	lines[1] = (struct line){ names[1], "jobs/s", count / ours.wall, "0.7 of the bare database",
		                  of_bare >= 0.7 };
	lines[2] = (struct line){ names[2], "", of_bare, ">= 0.70", of_bare >= 0.7 };
	lines[3] = (struct line){ names[3], "us", bare.writer / count * 1e6, "", true };
	lines[4] = (struct line){ names[4], "us", ours.writer / count * 1e6, "", true };
	lines[5] = (struct line){ names[5], "us", ours.core / count * 1e6, "", true };
	lines[6] = (struct line){ names[6], "s", startup_s, "<= 10", startup_s <= 10 };
}

int main(int argc, char **argv)
{
	static const char *const sqlite_names[] = {
		"sqlite_bare_rows_per_s", "sqlite_jobs_per_s",    "sqlite_of_bare",
		"sqlite_bare_cpu_us",     "sqlite_writer_cpu_us", "sqlite_core_cpu_us",
		"startup_1m_jobs_s",
	};
	static const char *const postgres_names[] = {
		"postgres_bare_rows_per_s",    "postgres_jobs_per_s",    "postgres_of_bare",
		"postgres_bare_client_cpu_us", "postgres_writer_cpu_us", "postgres_core_cpu_us",
		"postgres_startup_1m_jobs_s",
	};
	struct place place = { 0 };
	struct line lines[2 * LINES];
	const char *jobs = getenv("BENCH_JOBS"), *postgres = getenv("STORE_TEST_POSTGRES");
	if (argc != 2) {
		fprintf(stderr, "usage: bench_store JSON-FILE\n");
		return 2;
	}
	int64_t count = jobs ? strtoll(jobs, NULL, 10) : 300000;
	snprintf(place.folder, sizeof(place.folder), "%s.d", argv[1]);
	snprintf(place.database, sizeof(place.database), "%s/store.db", place.folder);
	int measured = LINES;
	count -= count % BATCH_ROWS;
	measure_all(&place, count, sqlite_names, lines);
	if (postgres) {
		place.postgres = postgres;
		measure_all(&place, count, postgres_names, lines + measured);
		measured += LINES;
	} else {
		printf("PostgreSQL is not measured: STORE_TEST_POSTGRES is not set.\n");
	}
	place.postgres = NULL;
	place_clear(&place);
	rmdir(place.folder);
	FILE *json = fopen(argv[1], "w");
	if (!json) {
		fprintf(stderr, "bench_store: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	put_lines(lines, measured, json);
	return fclose(json) == 0 ? 0 : 1;
}
