/* report_predictions.c - gpu-cli report --predictions: how well jobs were predicted */
#include <stdio.h>

#include "cli/command/report_tables.h"
#include "cli/commands.h"
#include "json/member.h"

static void predictions_name(struct session *session, struct table *table, const json_t *row)
{
	const char *tenant = member_text(row, "tenant"), *basis = member_text(row, "basis");

	(void)session;
	if (*basis)
		table_cell(table, "by %s", basis);
	else if (member_has(row, "tenant_id"))
		table_cell(table, "%s", *tenant ? tenant : member_text(row, "tenant_id"));
	else
		table_cell(table, "%s", "all");
}

static void predictions_jobs(struct session *session, struct table *table, const json_t *row)
{
	(void)session;
	table_cell(table, "%lld", (long long)member_integer(row, "jobs"));
}

static void predictions_part(struct table *table, const json_t *row, const char *key)
{
	if (member_has(row, key))
		table_cell(table, "%.1f%%", member_number(row, key) * 100);
	else
		table_cell(table, "%s", "-");
}

static void predictions_within_p90(struct session *session, struct table *table, const json_t *row)
{
	(void)session;
	predictions_part(table, row, "within_p90");
}

static void predictions_within_twice(struct session *session, struct table *table,
                                     const json_t *row)
{
	(void)session;
	predictions_part(table, row, "within_twice");
}

static void predictions_error(struct session *session, struct table *table, const json_t *row)
{
	(void)session;
	if (member_has(row, "median_error"))
		table_cell(table, "x%.2f", member_number(row, "median_error"));
	else
		table_cell(table, "%s", "-");
}

static void predictions_promised(struct session *session, struct table *table, const json_t *row)
{
	(void)session;
	if (member_has(row, "promised_starts"))
		table_cell(table, "%lld", (long long)member_integer(row, "promised_starts"));
	else
		table_cell(table, "%s", "-");
}

static void predictions_kept(struct session *session, struct table *table, const json_t *row)
{
	double promised = member_number(row, "promised_starts");

	(void)session;
	if (promised > 0)
		table_cell(table, "%.1f%%", member_number(row, "kept_starts") / promised * 100);
	else
		table_cell(table, "%s", "-");
}

static const struct column columns[] = {
	COLUMN("JOBS OF", predictions_name, .shrinks = true),
	COLUMN("PREDICTED", predictions_jobs, .right = true),
	COLUMN("WITHIN 90%", predictions_within_p90, .right = true),
	COLUMN("WITHIN X2", predictions_within_twice, .right = true),
	COLUMN("MEDIAN ERROR", predictions_error, .right = true),
	COLUMN("PROMISED", predictions_promised, .right = true),
	COLUMN("KEPT", predictions_kept, .right = true),
};

int report_predictions(struct session *session, const char *path)
{
	struct error error = { 0 };
	json_t *answer = session_get(session, path, &error);

	if (!answer)
		return session_fail(session, &error);
	json_t *rows = json_pack("[O]", json_object_get(answer, "all"));
	json_array_extend(rows, json_object_get(answer, "tenants"));
	json_array_extend(rows, json_object_get(answer, "bases"));
	listing_print(session, rows, COLUMNS(columns), "tenant_id");
	json_decref(rows);
	json_decref(answer);
	return CLI_FINE;
}
