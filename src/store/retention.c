/* retention.c - how long decisions, events, finished jobs and runs are kept */
#include "store/retention.h"

/* Logs are in the order of time, so the oldest have the smallest numbers. */
static void delete_log(struct buffer *sql, const char *table, const char *key, const char *time,
                       int64_t before_ms)
{
	buffer_print(sql,
	             "DELETE FROM %s WHERE %s IN (SELECT %s FROM %s ORDER BY %s LIMIT %d) "
	             "AND %s < %lld;",
	             table, key, key, table, key, RETENTION_ROWS, time, (long long)before_ms);
}

static void delete_jobs(struct buffer *sql, int64_t before_ms)
{
	const char *tables[] = { "tasks", "jobs" };
	const char *keys[] = { "job_id", "id" };
	for (int i = 0; i < 2; i++)
		buffer_print(
		    sql,
		    "DELETE FROM %s WHERE archived AND %s IN (SELECT id FROM jobs WHERE "
		    "archived AND completed_ms < %lld ORDER BY completed_ms, id LIMIT %d);",
		    tables[i], keys[i], (long long)before_ms, RETENTION_ROWS);
}

void retention_sql(const struct retention *retention, int64_t now_ms, struct buffer *sql)
{
	if (retention->decisions_ms > 0)
		delete_log(sql, "decisions", "id", "time_ms", now_ms - retention->decisions_ms);
	if (retention->events_ms > 0)
		delete_log(sql, "events", "number", "time_ms", now_ms - retention->events_ms);
	if (retention->jobs_ms > 0)
		delete_jobs(sql, now_ms - retention->jobs_ms);
	if (retention->runs_ms > 0)
		delete_log(sql, "runs", "id", "ended_ms", now_ms - retention->runs_ms);
}

void retention_advance_sql(struct buffer *sql)
{
	buffer_print(sql,
	             "UPDATE leader SET jobs_from = (SELECT coalesce(min(CASE WHEN archived THEN "
	             "NULL ELSE oldest.id END), max(oldest.id) + 1, leader.jobs_from) FROM "
	             "(SELECT id, archived FROM jobs WHERE id >= (SELECT jobs_from FROM leader "
	             "WHERE id = 1) ORDER BY id LIMIT %d) AS oldest) WHERE id = 1;",
	             RETENTION_ROWS);
}
