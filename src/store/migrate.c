/* migrate.c - tables that are made, and brought from any older form to this one */
#include "store/migrate.h"

#include <string.h>

#include "store/sql.h"

/* What is done to come from the version before to this one, in each dialect,
 * before new tables and columns are added. */
struct step {
	int64_t version;
	const char *sql[2];
};

static const struct step steps[] = {
	{ 1, { "", "" } },
};

/* For finished jobs, which are asked for by tenant and deleted by age, and for the
 * decisions about a job and its history. A new job is in none of them, so submitting costs nothing.
 */
static const char *const indexes[] = {
	"CREATE INDEX IF NOT EXISTS jobs_archived ON jobs (tenant_id, id) WHERE archived",
	"CREATE INDEX IF NOT EXISTS jobs_completed ON jobs (completed_ms) WHERE archived",
	"CREATE INDEX IF NOT EXISTS decisions_job ON decisions (job_id, id)",
	"CREATE INDEX IF NOT EXISTS events_job ON events (job_id, number)",
	"CREATE INDEX IF NOT EXISTS runs_ended ON runs (ended_ms)",
	"CREATE INDEX IF NOT EXISTS runs_job ON runs (job_id, id)",
};

/* Where there are no runs and no prices yet, as far as the tables know: the last run of
 * each task (up to the end of its job where it was stopped with that), whose parts by memory
 * have no share any more, and what tenants pay now. */
static const char *const carried[] = {
	"INSERT INTO runs (id, tenant_id, job_id, task, share, memory_mib, cpu_milli, began_ms, "
	"started_ms, ended_ms, ending, exit_code, peak_mib, energy_mj) "
	"SELECT row_number() OVER (ORDER BY over_ms, job_id, place), tenant_id, job_id, place, "
	"share, memory, cpu_milli, started_ms, started_ms, over_ms, "
	"CASE WHEN over_ms > ended_ms THEN state WHEN exit_code = 0 THEN 'completed' "
	"ELSE 'failed' END, exit_code, peak_mib, energy_mj FROM "
	"(SELECT jobs.tenant_id AS tenant_id, job_id, place, "
	"CASE WHEN split_gpus > 0 AND place > 0 THEN 0 WHEN split_gpus > 0 THEN 1000 * split_gpus "
	"WHEN gpu_kind = 'whole' THEN 1000 * gpu_count "
	"WHEN gpu_kind = 'fraction' THEN fraction * gpu_count ELSE 0 END AS share, "
	"CASE WHEN gpu_kind = 'memory' THEN memory_mib * gpu_count ELSE 0 END AS memory, "
	"jobs.cpu_milli AS cpu_milli, tasks.started_ms AS started_ms, ended_ms, "
	"CASE WHEN ended_ms < tasks.started_ms THEN completed_ms ELSE ended_ms END AS over_ms, "
	"jobs.state AS state, tasks.exit_code AS exit_code, peak_mib, energy_mj "
	"FROM tasks JOIN jobs ON jobs.id = tasks.job_id "
	"WHERE tasks.state = 'ended' AND tasks.started_ms > 0) AS known "
	"WHERE over_ms >= started_ms AND NOT EXISTS (SELECT 1 FROM meta WHERE last_run_id > 0)",
	"UPDATE meta SET last_run_id = (SELECT coalesce(max(id), 0) FROM runs) WHERE last_run_id = "
	"0",
	"INSERT INTO prices SELECT id, 0, cost_per_gpu_hour FROM tenants WHERE NOT EXISTS "
	"(SELECT 1 FROM prices WHERE tenant_id = tenants.id)",
	"INSERT INTO prices SELECT DISTINCT tenant_id, 0, 0 FROM runs WHERE reservation_id = 0 "
	"AND NOT EXISTS (SELECT 1 FROM prices WHERE prices.tenant_id = runs.tenant_id)",
};

bool migrate_bootstrap(struct backend *backend, struct error *error)
{
	return backend->execute(
	    backend,
	    "CREATE TABLE IF NOT EXISTS schema_version (id INTEGER PRIMARY KEY, "
	    "version INTEGER NOT NULL);"
	    "CREATE TABLE IF NOT EXISTS leader (id INTEGER PRIMARY KEY, holder TEXT NOT NULL, "
	    "term BIGINT NOT NULL, batch BIGINT NOT NULL, commands BIGINT NOT NULL, "
	    "renewed_ms BIGINT NOT NULL, jobs_from BIGINT NOT NULL);"
	    "INSERT INTO leader VALUES (1, '', 0, 0, 0, 0, 0) ON CONFLICT (id) DO NOTHING",
	    error);
}

/* Which of a table's columns there are. */
struct found {
	const struct table *table;
	bool is_there[TABLE_COLUMNS_MAX];
	int count;
};

static bool take_column(void *context, const char *const *values, struct error *error)
{
	struct found *found = context;
	const char *name = values[0] ? values[0] : "";
	found->count++;
	for (int i = 0; i < found->table->column_count; i++) {
		if (strcmp(found->table->columns[i].name, name) == 0) {
			found->is_there[i] = true;
			return true;
		}
	}
	if (strcmp(name, "archived") == 0)
		return true;
	return error_set(error, ERROR_CONFLICT,
	                 "the table %s has a column %s that this program does not know: the "
	                 "database was written by a newer one, install that",
	                 found->table->name, name);
}

static bool find_columns(struct backend *backend, const struct table *table, struct found *found,
                         struct error *error)
{
	struct buffer sql = { 0 };
	*found = (struct found){ .table = table };
	if (backend->dialect == DIALECT_SQLITE)
		buffer_print(&sql, "SELECT name FROM pragma_table_info('%s')", table->name);
	else
		buffer_print(&sql,
		             "SELECT column_name FROM information_schema.columns "
		             "WHERE table_schema = current_schema() AND table_name = '%s'",
		             table->name);
	bool done = backend->query(backend, sql.data, take_column, found, error);
	buffer_free(&sql);
	return done;
}

static bool bring_table(struct backend *backend, const struct table *table, struct error *error)
{
	struct found found;
	struct buffer sql = { 0 };

	if (!find_columns(backend, table, &found, error))
		return false;
	if (found.count == 0)
		sql_create(&sql, table, backend->dialect);
	for (int i = 0; found.count > 0 && i < table->column_count; i++) {
		if (found.is_there[i])
			continue;
		buffer_print(&sql, "ALTER TABLE \"%s\" ADD COLUMN ", table->name);
		sql_column(&sql, &table->columns[i], backend->dialect);
		buffer_text(&sql, ";");
	}
	bool done = sql.size == 0 || backend->execute(backend, sql.data, error);
	buffer_free(&sql);
	return done;
}

static bool read_version(struct backend *backend, int64_t *version, struct error *error)
{
	*version = 0;
	if (!backend_number(backend, "SELECT version FROM schema_version WHERE id = 1", version,
	                    error))
		return false;
	if (*version == SCHEMA_RESTORING && !backend->restores)
		return error_set(error, ERROR_CONFLICT,
		                 "a backup was being restored here and that did not finish: "
		                 "restore it again");
	if (*version > SCHEMA_VERSION)
		return error_set(
		    error, ERROR_CONFLICT,
		    "the database has version %lld and this program writes version %d: "
		    "install a newer one",
		    (long long)*version, SCHEMA_VERSION);
	return true;
}

static bool run_steps(struct backend *backend, int64_t version, struct error *error)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		/* One without a version is new, or is being restored: nothing to convert. */
		if (version <= 0 || steps[i].version <= version)
			continue;
		if (!backend->execute(backend, steps[i].sql[backend->dialect], error))
			return false;
	}
	return true;
}

bool migrate_run(struct backend *backend, struct error *error)
{
	int64_t version;
	struct buffer sql = { 0 };

	if (!read_version(backend, &version, error) || !run_steps(backend, version, error))
		return false;
	for (int i = 0; i < backend->schema->count; i++)
		if (!bring_table(backend, &backend->schema->tables[i], error))
			return false;
	if (!bring_table(backend, &backend->schema->kept, error))
		return false;
	for (size_t i = 0; i < sizeof(indexes) / sizeof(indexes[0]); i++)
		buffer_print(&sql, "%s;", indexes[i]);
	for (size_t i = 0; i < sizeof(carried) / sizeof(carried[0]); i++)
		buffer_print(&sql, "%s;", carried[i]);
	buffer_print(&sql,
	             "INSERT INTO schema_version VALUES (1, %d) "
	             "ON CONFLICT (id) DO UPDATE SET version = excluded.version",
	             SCHEMA_VERSION);
	bool done = backend->execute(backend, sql.data, error);
	buffer_free(&sql);
	return done;
}

bool migrate_exists(struct backend *backend, const char *table, bool *exists, struct error *error)
{
	int64_t count = 0;
	struct buffer sql = { 0 };
	if (backend->dialect == DIALECT_SQLITE)
		buffer_print(&sql, "SELECT count(*) FROM sqlite_master WHERE name = '%s'", table);
	else
		buffer_print(&sql,
		             "SELECT count(*) FROM information_schema.tables WHERE "
		             "table_schema = current_schema() AND table_name = '%s'",
		             table);
	bool done = backend_number(backend, sql.data, &count, error);
	buffer_free(&sql);
	*exists = count > 0;
	return done;
}

static bool check_table(struct backend *backend, const struct table *table, struct error *error)
{
	struct found found;
	if (!find_columns(backend, table, &found, error))
		return false;
	for (int i = 0; i < table->column_count; i++)
		if (!found.is_there[i])
			return error_set(error, ERROR_CONFLICT,
			                 "the table %s has no column %s: start a scheduler "
			                 "on the database once, that brings it up to date",
			                 table->name, table->columns[i].name);
	return true;
}

bool migrate_check(struct backend *backend, struct error *error)
{
	int64_t version = 0;
	bool has = false;
	if (!migrate_exists(backend, "schema_version", &has, error) ||
	    (has && !read_version(backend, &version, error)))
		return false;
	if (version == 0)
		return error_set(error, ERROR_NOT_FOUND,
		                 "the database has no tables of a scheduler in it");
	for (int i = 0; i < backend->schema->count; i++)
		if (!check_table(backend, &backend->schema->tables[i], error))
			return false;
	return check_table(backend, &backend->schema->kept, error);
}
