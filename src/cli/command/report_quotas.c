/* report_quotas.c - gpu-cli report --quotas: guaranteed GPUs from what tenants used */
#include <stdio.h>

#include "cli/command/report_tables.h"
#include "cli/commands.h"
#include "json/member.h"

static void quotas_name(struct session *session, struct table *table, const json_t *row)
{
	const char *tenant = member_text(row, "tenant");

	(void)session;
	table_cell(table, "%s", *tenant ? tenant : member_text(row, "tenant_id"));
}

static void quotas_gpus(struct table *table, const json_t *row, const char *key)
{
	double gpus = member_number(row, key);

	if (!member_has(row, key))
		table_cell(table, "%s", "-");
	else if (gpus < 0)
		table_cell(table, "%s", "unlimited");
	else
		table_cell(table, "%.4g", gpus);
}

static void quotas_used(struct session *session, struct table *table, const json_t *row)
{
	(void)session;
	table_cell(table, "%.1f", member_number(row, "used_gpus"));
}

static void quotas_now(struct session *session, struct table *table, const json_t *row)
{
	(void)session;
	quotas_gpus(table, row, "quota_gpus");
}

static void quotas_proposed(struct session *session, struct table *table, const json_t *row)
{
	(void)session;
	quotas_gpus(table, row, "proposed_gpus");
}

static void quotas_least(struct session *session, struct table *table, const json_t *row)
{
	(void)session;
	quotas_gpus(table, row, "quota_gpus_least");
}

static void quotas_most(struct session *session, struct table *table, const json_t *row)
{
	(void)session;
	quotas_gpus(table, row, "quota_gpus_most");
}

static void quotas_follows(struct session *session, struct table *table, const json_t *row)
{
	(void)session;
	table_cell(table, "%s", member_flag(row, "follows") ? "yes" : "no");
}

static const struct column columns[] = {
	COLUMN("TENANT", quotas_name, .shrinks = true),
	COLUMN("USED", quotas_used, .right = true),
	COLUMN("QUOTA", quotas_now, .right = true),
	COLUMN("PROPOSED", quotas_proposed, .right = true),
	COLUMN("LEAST", quotas_least, .right = true),
	COLUMN("MOST", quotas_most, .right = true),
	COLUMN("FOLLOWS", quotas_follows),
};

int report_quotas(struct session *session, const char *path)
{
	struct error error = { 0 };
	json_t *answer = session_get(session, path, &error);

	if (!answer)
		return session_fail(session, &error);
	listing_print(session, json_object_get(answer, "quotas"), COLUMNS(columns), "tenant_id");
	if (session->form == FORM_TABLE && !member_flag(answer, "applied"))
		fputs("nothing is applied: scheduler.quota_follow_days is 0\n", stderr);
	json_decref(answer);
	return CLI_FINE;
}
