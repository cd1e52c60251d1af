/* scratch.c - a directory for one test, and a database that is empty */
#include "store/test/scratch.h"

#include <dirent.h>
#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

void scratch_begin(struct scratch *scratch)
{
	const char *parent = getenv("TMPDIR");
	snprintf(scratch->directory, sizeof(scratch->directory), "%s/store-test-XXXXXX",
	         parent ? parent : "/tmp");
	if (!mkdtemp(scratch->directory))
		panic("%s cannot be made", scratch->directory);
	const char *postgres = getenv("STORE_TEST_POSTGRES");
	if (!postgres) {
		snprintf(scratch->database, sizeof(scratch->database), "%s/store.db",
		         scratch->directory);
		return;
	}
	snprintf(scratch->database, sizeof(scratch->database), "%s", postgres);
	scratch_execute(scratch, "SET client_min_messages = error;"
	                         "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
}

bool scratch_is_postgres(void)
{
	return getenv("STORE_TEST_POSTGRES") != NULL;
}

/* Where the value of a query goes. */
static int scratch_take_number(void *context, int count, char **values, char **names)
{
	(void)count;
	(void)names;
	*(int64_t *)context = values[0] ? strtoll(values[0], NULL, 10) : 0;
	return 0;
}

static int64_t run_sqlite(const char *path, const char *sql)
{
	sqlite3 *database;
	int64_t number = 0;
	/* The writer's thread may be checkpointing, or closing the database. */
	if (sqlite3_open(path, &database) != SQLITE_OK ||
	    sqlite3_busy_timeout(database, 60000) != SQLITE_OK ||
	    sqlite3_exec(database, sql, scratch_take_number, &number, NULL) != SQLITE_OK)
		panic("%s: %s", sql, sqlite3_errmsg(database));
	sqlite3_close(database);
	return number;
}

static int64_t run_postgres(const char *database, const char *sql)
{
	PGconn *connection = PQconnectdb(database);
	PGresult *result = PQexec(connection, sql);
	ExecStatusType status = PQresultStatus(result);
	int64_t number = 0;
	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		panic("%s: %s", sql, PQerrorMessage(connection));
	if (status == PGRES_TUPLES_OK && PQntuples(result) > 0)
		number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	PQfinish(connection);
	return number;
}

int64_t scratch_number(const struct scratch *scratch, const char *sql)
{
	return scratch_is_postgres() ? run_postgres(scratch->database, sql)
	                             : run_sqlite(scratch->database, sql);
}

void scratch_execute(const struct scratch *scratch, const char *sql)
{
	scratch_number(scratch, sql);
}

static void remove_all(const char *directory)
{
	DIR *open_directory = opendir(directory);
	struct dirent *entry;
	while (open_directory && (entry = readdir(open_directory))) {
		char path[PATH_MAX * 2];
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		if (unlink(path) != 0)
			remove_all(path);
	}
	if (open_directory)
		closedir(open_directory);
	rmdir(directory);
}

void scratch_end(struct scratch *scratch)
{
	remove_all(scratch->directory);
}
