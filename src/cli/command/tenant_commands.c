/* tenant_commands.c - gpu-cli tenants, create-tenant and quota */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/text/field.h"
#include "cli/text/quantity.h"

/* What an option says about a tenant, and under which name the service knows it. */
enum setting_kind { SETTING_TEXT, SETTING_WHOLE, SETTING_DECIMAL, SETTING_MEMORY, SETTING_FLAG };
static const struct {
	const char *option, *key;
	enum setting_kind kind;
} settings[] = {
	{ "--gpus", "quota_gpus", SETTING_DECIMAL },
	{ "--cpus", "quota_cpu_cores", SETTING_DECIMAL },
	{ "--memory", "quota_memory_mb", SETTING_MEMORY },
	{ "--max-gpus", "max_gpus", SETTING_DECIMAL },
	{ "--max-gpu-memory", "max_gpu_memory_mb", SETTING_MEMORY },
	{ "--max-cpus", "max_cpu_cores", SETTING_DECIMAL },
	{ "--max-memory", "max_memory_mb", SETTING_MEMORY },
	{ "--max-jobs", "max_concurrent_jobs", SETTING_WHOLE },
	{ "--max-queued", "max_queued_jobs", SETTING_WHOLE },
	{ "--tier", "priority_tier", SETTING_TEXT },
	{ "--weight", "fair_share_weight", SETTING_DECIMAL },
	{ "--preemptible", "allow_preemption", SETTING_FLAG },
	{ "--may-preempt", "can_preempt_others", SETTING_FLAG },
	{ "--max-preemptions", "max_preemptions", SETTING_WHOLE },
	{ "--cost", "cost_per_gpu_hour", SETTING_DECIMAL },
	{ "--budget", "budget_per_month", SETTING_DECIMAL },
	{ "--parent", "parent_id", SETTING_TEXT },
	{ "--email", "email", SETTING_TEXT },
	{ "--organization", "organization", SETTING_TEXT },
};
enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };

static const struct option tenant_options[] = {
	OPTION("--gpus", "-g", "N", "GPUs it is owed; -1: no end"),
	OPTION("--cpus", NULL, "N", "CPU cores it is owed"),
	OPTION("--memory", NULL, "SIZE", "host memory it is owed"),
	OPTION("--max-gpus", NULL, "N", "GPUs it may hold at most"),
	OPTION("--max-gpu-memory", NULL, "SIZE", "memory on shared GPUs at most"),
	OPTION("--max-cpus", NULL, "N", "CPU cores at most"),
	OPTION("--max-memory", NULL, "SIZE", "host memory at most"),
	OPTION("--max-jobs", NULL, "N", "jobs at once at most"),
	OPTION("--max-queued", NULL, "N", "jobs that wait at most"),
	OPTION("--tier", NULL, "TIER", "low, medium, high or critical",
	       .completes = COMPLETES_WORDS, .words = "low medium high critical"),
	OPTION("--weight", NULL, "N", "its part of what nobody is owed (default 1)"),
	OPTION("--preemptible", NULL, "yes|no", "whether its jobs may be preempted by default",
	       .completes = COMPLETES_WORDS, .words = "yes no"),
	OPTION("--may-preempt", NULL, "yes|no", "whether others may be preempted for it",
	       .completes = COMPLETES_WORDS, .words = "yes no"),
	OPTION("--max-preemptions", NULL, "N", "of one job, which is safe after that"),
	OPTION("--cost", NULL, "PRICE", "of a GPU for an hour"),
	OPTION("--budget", NULL, "SUM", "for a month"),
	OPTION("--parent", NULL, "TENANT", "the tenant that it is below",
	       .completes = COMPLETES_TENANTS),
	OPTION("--email", NULL, "ADDRESS", "of who is responsible"),
	OPTION("--organization", NULL, "NAME", "that it belongs to"),
	{ 0 },
};

static const struct option create_options[] = {
	OPTION("--name", "-n", "NAME", "the same as NAME"),
	{ 0 },
};

/* 'none' takes a limit away. */
static json_t *read_setting(size_t which, const char *text, struct error *error)
{
	const char *option = settings[which].option;
	int64_t number;
	if (strcmp(text, "none") == 0)
		return json_null();
	switch (settings[which].kind) {
	case SETTING_TEXT:
		return json_string(text);
	case SETTING_FLAG:
		if (strcmp(text, "yes") == 0 || strcmp(text, "no") == 0)
			return json_boolean(text[0] == 'y');
		error_set(error, ERROR_INVALID, "invalid %s '%.20s': expected yes or no", option,
		          text);
		return NULL;
	case SETTING_MEMORY:
		return quantity_memory(option, text, &number, error) ? json_integer(number) : NULL;
	case SETTING_WHOLE:
		return quantity_integer(option, text, 0, INT64_C(1) << 40, &number, error)
		           ? json_integer(number)
		           : NULL;
	default:
		if (strcmp(text, "-1") == 0)
			return json_integer(-1);
		if (!quantity_thousandths(option, text, INT64_C(1) << 50, &number, error))
			return NULL;
		return number % 1000 == 0 ? json_integer(number / 1000)
		                          : json_real((double)number / 1000);
	}
}

/* What was said about the tenant (json_decref); NULL with a reason. */
static json_t *read_settings(const struct arguments *arguments, struct error *error)
{
	json_t *body = json_object();
	for (size_t i = 0; i < SETTINGS; i++) {
		const char *text = arguments_value(arguments, settings[i].option);
		if (!text)
			continue;
		json_t *value = read_setting(i, text, error);
		if (!value) {
			json_decref(body);
			return NULL;
		}
		json_object_set_new(body, settings[i].key, value);
	}
	return body;
}

static void tenant_id(struct session *session, struct table *table, const json_t *tenant)
{
	(void)session;
	table_cell(table, "%s", field_text(tenant, "id"));
}

static void tenant_name(struct session *session, struct table *table, const json_t *tenant)
{
	(void)session;
	table_cell(table, "%s", field_text(tenant, "name"));
}

static void limit_cell(struct table *table, const json_t *tenant, const char *key)
{
	if (!field_has(tenant, key))
		table_cell(table, "%s", "-");
	else if (field_number(tenant, key) < 0)
		table_cell(table, "%s", "no end");
	else
		table_cell(table, "%g", field_number(tenant, key));
}

static void tenant_gpus(struct session *session, struct table *table, const json_t *tenant)
{
	(void)session;
	table_cell(table, "%g", field_number(tenant, "current_gpus"));
}

static void tenant_quota(struct session *session, struct table *table, const json_t *tenant)
{
	(void)session;
	limit_cell(table, tenant, "quota_gpus");
}

static void tenant_limit(struct session *session, struct table *table, const json_t *tenant)
{
	(void)session;
	limit_cell(table, tenant, "max_gpus");
}

static void tenant_share(struct session *session, struct table *table, const json_t *tenant)
{
	(void)session;
	limit_cell(table, tenant, "fair_share_gpus");
}

static void tenant_jobs(struct session *session, struct table *table, const json_t *tenant)
{
	(void)session;
	table_cell(table, "%lld", (long long)field_integer(tenant, "current_jobs"));
}

static void tenant_waiting(struct session *session, struct table *table, const json_t *tenant)
{
	(void)session;
	table_cell(table, "%lld", (long long)field_integer(tenant, "waiting_jobs"));
}

static void tenant_hours(struct session *session, struct table *table, const json_t *tenant)
{
	(void)session;
	table_cell(table, "%.1f", field_number(tenant, "total_gpu_hours"));
}

static void tenant_cost(struct session *session, struct table *table, const json_t *tenant)
{
	(void)session;
	table_cell(table, "%.2f", field_number(tenant, "total_cost"));
}

static void tenant_tier(struct session *session, struct table *table, const json_t *tenant)
{
	(void)session;
	table_cell(table, "%s", field_text(tenant, "priority_tier"));
}

static void tenant_parent(struct session *session, struct table *table, const json_t *tenant)
{
	const char *parent = field_text(tenant, "parent_id");
	table_cell(table, "%s", *parent ? session_tenant_name(session, parent) : "");
}

static const struct column columns[] = {
	COLUMN("TENANT", tenant_id),
	COLUMN("NAME", tenant_name, .shrinks = true),
	COLUMN("GPUS", tenant_gpus, .right = true),
	COLUMN("QUOTA", tenant_quota, .right = true),
	COLUMN("LIMIT", tenant_limit, .right = true),
	COLUMN("SHARE", tenant_share, .right = true),
	COLUMN("JOBS", tenant_jobs, .right = true),
	COLUMN("WAIT", tenant_waiting, .right = true),
	COLUMN("GPU-HOURS", tenant_hours, .right = true),
	COLUMN("COST", tenant_cost, .right = true, .extra = true),
	COLUMN("TIER", tenant_tier, .extra = true),
	COLUMN("PARENT", tenant_parent, .extra = true, .shrinks = true),
};

static int print_one(struct session *session, json_t *tenant, const struct error *error)
{
	if (!tenant)
		return session_fail(session, error);
	if (!listing_print_document(session, tenant, "id")) {
		json_t *list = json_pack("[O]", tenant);
		listing_print(session, list, COLUMNS(columns), "id");
		json_decref(list);
	}
	json_decref(tenant);
	return CLI_FINE;
}

static int run_tenants(const struct arguments *arguments)
{
	struct session session;
	struct error error = { 0 };
	int status;
	if (arguments->operand_count > 1)
		return cli_misused(arguments->command, "unexpected argument '%.80s'",
		                   arguments->operands[1]);
	if (!session_open(&session, arguments, &status))
		return status;
	if (arguments->operand_count == 1) {
		const char *path =
		    session_path(&session, "/api/v1/tenants/%s", arguments->operands[0]);
		status = print_one(&session, session_get(&session, path, &error), &error);
	} else {
		json_t *list =
		    session_list(&session, "/api/v1/tenants", "", "tenants", 1000000, &error);
		if (list && json_array_size(list) == 0 && session.form == FORM_TABLE)
			fputs("no tenants; 'gpu-cli create-tenant NAME' makes one\n", stderr);
		else if (list)
			listing_print(&session, list, COLUMNS(columns), "id");
		status = list ? CLI_FINE : session_fail(&session, &error);
		json_decref(list);
	}
	session_close(&session);
	return status;
}

static int run_create(const struct arguments *arguments)
{
	const char *name = arguments_value(arguments, "--name");
	struct session session;
	struct error error = { 0 };
	int status;
	if ((name != NULL) + arguments->operand_count != 1)
		return cli_misused(arguments->command, "what is it to be called? Give one name");
	json_t *body = read_settings(arguments, &error);
	if (!body)
		return cli_misused(arguments->command, "%s", error.text);
	if (!session_open(&session, arguments, &status)) {
		json_decref(body);
		return status;
	}
	json_object_set_new(body, "name", json_string(name ? name : arguments->operands[0]));
	json_t *tenant = session_ask(&session, "POST", "/api/v1/tenants", body, &error);
	if (tenant && session.form == FORM_TABLE)
		printf("%s created (%s)\n", field_text(tenant, "id"), field_text(tenant, "name"));
	else if (tenant)
		listing_print_document(&session, tenant, "id");
	status = tenant ? CLI_FINE : session_fail(&session, &error);
	json_decref(tenant);
	session_close(&session);
	return status;
}

/* Without settings it shows what there is. */
static int run_quota(const struct arguments *arguments)
{
	struct session session;
	struct error error = { 0 };
	int status;
	if (arguments->operand_count != 1)
		return cli_misused(arguments->command, "whose? Give one tenant");
	json_t *body = read_settings(arguments, &error);
	if (!body)
		return cli_misused(arguments->command, "%s", error.text);
	if (!session_open(&session, arguments, &status)) {
		json_decref(body);
		return status;
	}
	const char *path = session_path(&session, "/api/v1/tenants/%s", arguments->operands[0]);
	bool changes = json_object_size(body) > 0;
	if (!changes)
		json_decref(body);
	json_t *tenant = changes ? session_ask(&session, "PUT", path, body, &error)
	                         : session_get(&session, path, &error);
	status = print_one(&session, tenant, &error);
	session_close(&session);
	return status;
}

const struct cli_command tenants_command = {
	.name = "tenants",
	.arguments = "[TENANT]",
	.summary = "tenants: what they hold, are owed, and may hold",
	.examples = "tenants\n"
		    "tenants physics -o yaml\n",
	.asks = true,
	.lists = true,
	.operand = COMPLETES_TENANTS,
	.run = run_tenants,
};

const struct cli_command create_tenant_command = {
	.name = "create-tenant",
	.arguments = "NAME [OPTION...]",
	.summary = "make a tenant",
	.details = "What is left out is not limited, and nothing is guaranteed.\n",
	.examples = "create-tenant physics --max-gpus 8\n"
		    "create-tenant vision --gpus 4 --weight 2 --cost 2.5\n",
	.shared = tenant_options,
	.options = create_options,
	.asks = true,
	.lists = true,
	.run = run_create,
};

const struct cli_command quota_command = {
	.name = "quota",
	.arguments = "TENANT [OPTION...]",
	.summary = "what a tenant is owed and may hold: show it, or change it",
	.details = "What is left out stays as it is; 'none' takes a limit or a quota away.\n",
	.examples = "quota physics\n"
		    "quota physics --gpus 4 --max-gpus 16\n"
		    "quota physics --max-gpu-memory none\n",
	.shared = tenant_options,
	.asks = true,
	.lists = true,
	.operand = COMPLETES_TENANTS,
	.run = run_quota,
};
