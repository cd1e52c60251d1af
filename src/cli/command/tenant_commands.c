/* tenant_commands.c - gpu-cli tenants, create-tenant and quota */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/job/field_request.h"
#include "cli/listing.h"
#include "json/member.h"

static void limit_cell(struct table *table, const json_t *tenant, const char *key)
{
	if (!member_has(tenant, key))
		table_cell(table, "%s", "-");
	else if (member_number(tenant, key) < 0)
		table_cell(table, "%s", "no end");
	else
		table_cell(table, "%g", member_number(tenant, key));
}

static void tenant_gpus(struct session *session, struct table *table, const json_t *tenant)
{
	(void)session;
	table_cell(table, "%g", member_number(tenant, "current_gpus"));
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

static void tenant_hours(struct session *session, struct table *table, const json_t *tenant)
{
	(void)session;
	table_cell(table, "%.1f", member_number(tenant, "total_gpu_hours"));
}

static void tenant_cost(struct session *session, struct table *table, const json_t *tenant)
{
	(void)session;
	table_cell(table, "%.2f", member_number(tenant, "total_cost"));
}

static void tenant_parent(struct session *session, struct table *table, const json_t *tenant)
{
	const char *parent = member_text(tenant, "parent_id");
	table_cell(table, "%s", *parent ? session_tenant_name(session, parent) : "");
}

static const struct column columns[] = {
	FIELD_COLUMN("TENANT", "id"),
	FIELD_COLUMN("NAME", "name", .shrinks = true),
	COLUMN("GPUS", tenant_gpus, .right = true),
	COLUMN("QUOTA", tenant_quota, .right = true),
	COLUMN("LIMIT", tenant_limit, .right = true),
	COLUMN("SHARE", tenant_share, .right = true),
	FIELD_COLUMN("JOBS", "current_jobs", .right = true),
	FIELD_COLUMN("WAIT", "waiting_jobs", .right = true),
	COLUMN("GPU-HOURS", tenant_hours, .right = true),
	COLUMN("COST", tenant_cost, .right = true, .extra = true),
	FIELD_COLUMN("TIER", "priority_tier", .extra = true),
	COLUMN("PARENT", tenant_parent, .extra = true, .shrinks = true),
};

static json_t *load_tenants(struct session *session, struct error *error)
{
	return session_list(session, "/api/v1/tenants", "", "tenants", 1000000, error);
}

const struct listing_source tenants_source = {
	.title = "TENANTS",
	.name_key = "id",
	.resource = &tenant_resource,
	.load = load_tenants,
	.columns = columns,
	.column_count = sizeof(columns) / sizeof(columns[0]),
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

/* tenants rename TENANT NAME, tenants delete TENANT */
static int change_tenant(const struct arguments *arguments, bool renames)
{
	const char *const *words = (const char *const *)arguments->operands;
	struct session session;
	struct error error = { 0 };
	int status;
	if (arguments->operand_count != (renames ? 3 : 2))
		return cli_misused(arguments->command,
		                   renames ? "give a tenant and its new name" : "give one tenant");
	if (!session_open(&session, arguments, &status))
		return status;
	const char *path = session_path(&session, "/api/v1/tenants/%s", words[1]);
	json_t *body = renames ? json_pack("{s:s}", "name", words[2]) : NULL;
	json_t *answer = session_ask(&session, renames ? "PUT" : "DELETE", path, body, &error);
	if (answer && renames)
		printf("%s is now called %s\n", words[1], words[2]);
	else if (answer)
		printf("%s deleted\n", words[1]);
	status = answer ? CLI_FINE : session_fail(&session, &error);
	json_decref(answer);
	session_close(&session);
	return status;
}

static int run_tenants(const struct arguments *arguments)
{
	const char *verb = arguments->operand_count > 0 ? arguments->operands[0] : "";
	struct session session;
	struct error error = { 0 };
	int status;
	if (strcmp(verb, "rename") == 0 || strcmp(verb, "delete") == 0)
		return change_tenant(arguments, verb[0] == 'r');
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
		json_t *list = load_tenants(&session, &error);
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
		return cli_misused(arguments->command, "give the tenant one name");
	if (!session_open(&session, arguments, &status))
		return status;
	json_t *body = json_object();
	if (!field_request(&session, &tenant_resource, NULL, body, &error)) {
		json_decref(body);
		session_close(&session);
		return cli_misused(arguments->command, "%s", error.text);
	}
	json_object_set_new(body, "name", json_string(name ? name : arguments->operands[0]));
	json_t *tenant = session_ask(&session, "POST", "/api/v1/tenants", body, &error);
	if (tenant && session.form == FORM_TABLE)
		printf("%s created (%s)\n", member_text(tenant, "id"), member_text(tenant, "name"));
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
		return cli_misused(arguments->command, "give one tenant");
	if (!session_open(&session, arguments, &status))
		return status;
	json_t *body = json_object();
	if (!field_request(&session, &tenant_resource, NULL, body, &error)) {
		json_decref(body);
		session_close(&session);
		return cli_misused(arguments->command, "%s", error.text);
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
	.arguments = "[TENANT] | rename TENANT NAME | delete TENANT",
	.summary = "tenants: what they hold, are owed, and may hold",
	.examples = "tenants\n"
		    "tenants physics -o yaml\n"
		    "tenants --columns name,max_gpus,month_cost\n"
		    "tenants rename physics astro\n",
	.shows = &tenant_resource,
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
	.fields = &tenant_resource,
	.shows = &tenant_resource,
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
	.fields = &tenant_resource,
	.shows = &tenant_resource,
	.asks = true,
	.lists = true,
	.operand = COMPLETES_TENANTS,
	.run = run_quota,
};
