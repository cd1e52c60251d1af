/* audit_command.c - gpu-cli whoami, audit and events: who asks, who did what, what happened */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/text/quantity.h"
#include "json/member.h"

static int run_whoami(const struct arguments *arguments)
{
	struct session session;
	struct error error = { 0 };
	int status;
	if (arguments->operand_count > 0)
		return cli_misused(arguments->command, "unexpected argument '%.80s'",
		                   arguments->operands[0]);
	if (!session_open(&session, arguments, &status))
		return status;
	json_t *answer = session_get(&session, "/api/v1/session", &error);
	if (answer && !listing_print_document(&session, answer, "name")) {
		const char *tenant = member_text(answer, "tenant"),
			   *name = member_text(answer, "name");
		printf("Server   %s\n", session.server);
		printf("Name     %s\n", *name ? name : "(not signed in)");
		if (*member_text(answer, "user"))
			printf("User     %s\n", member_text(answer, "user"));
		printf("Role     %s\n", member_text(answer, "role"));
		printf("Tenant   %s\n", *tenant ? tenant : "(all)");
		if (session.tenant)
			printf("Default  new jobs belong to %s\n", session.tenant);
	}
	status = answer ? CLI_FINE : session_fail(&session, &error);
	json_decref(answer);
	session_close(&session);
	return status;
}

static void print_time(struct table *table, const json_t *item)
{
	struct buffer text = { 0 };
	buffer_text(&text, "");
	quantity_print_moment(&text, member_moment(item, "time"));
	table_cell(table, "%s", text.data);
	buffer_free(&text);
}

static void audit_time(struct session *session, struct table *table, const json_t *entry)
{
	(void)session;
	print_time(table, entry);
}

static void audit_who(struct session *session, struct table *table, const json_t *entry)
{
	(void)session;
	table_cell(table, "%s", member_text(entry, "who"));
}

static void audit_action(struct session *session, struct table *table, const json_t *entry)
{
	(void)session;
	table_cell(table, "%s", member_text(entry, "action"));
}

static void audit_object(struct session *session, struct table *table, const json_t *entry)
{
	(void)session;
	table_cell(table, "%s", member_text(entry, "object"));
}

static void audit_detail(struct session *session, struct table *table, const json_t *entry)
{
	(void)session;
	table_cell(table, "%s", member_text(entry, "detail"));
}

static void audit_address(struct session *session, struct table *table, const json_t *entry)
{
	(void)session;
	table_cell(table, "%s", member_text(entry, "address"));
}

static const struct column audit_columns[] = {
	COLUMN("TIME", audit_time),
	COLUMN("WHO", audit_who, .shrinks = true),
	COLUMN("ACTION", audit_action),
	COLUMN("OBJECT", audit_object, .shrinks = true),
	COLUMN("DETAIL", audit_detail, .shrinks = true),
	COLUMN("ADDRESS", audit_address, .extra = true),
};

/* --since in milliseconds since 1970; 0: not given. */
static bool read_since(const struct session *session, int64_t *since_ms, struct error *error)
{
	const char *since = arguments_value(session->arguments, "--since");
	*since_ms = 0;
	return !since || quantity_since("--since", since, since_ms, error);
}

/* Appends those of a list that are not older. */
static void append_since(json_t *to, const json_t *items, int64_t since_ms)
{
	size_t place;
	json_t *item;
	json_array_foreach(items, place, item)
	{
		if (member_moment(item, "time") >= since_ms)
			json_array_append(to, item);
	}
}

static int audit_show(struct session *session, int64_t limit)
{
	enum { PAGE = 1000 };
	struct error error = { 0 };
	int64_t before = 0, since_ms;
	bool more = true;
	if (!read_since(session, &since_ms, &error))
		return cli_misused(session->command, "%s", error.text);
	json_t *all = json_array();
	while (more && (int64_t)json_array_size(all) < limit) {
		int64_t wanted = limit - (int64_t)json_array_size(all);
		struct buffer path = { 0 };
		buffer_print(&path, "/api/v1/audit?limit=%lld",
		             (long long)(wanted < PAGE ? wanted : PAGE));
		if (before > 0)
			buffer_print(&path, "&before=%lld", (long long)before);
		json_t *answer = session_get(session, path.data, &error);
		buffer_free(&path);
		if (!answer) {
			json_decref(all);
			return session_fail(session, &error);
		}
		json_t *entries = json_object_get(answer, "entries");
		size_t count = json_array_size(entries);
		before =
		    member_integer(json_array_get(entries, count > 0 ? count - 1 : 0), "number");
		const json_t *last = json_array_get(entries, count > 0 ? count - 1 : 0);
		more = count > 0 && before > 1 && member_moment(last, "time") >= since_ms;
		append_since(all, entries, since_ms);
		json_decref(answer);
	}
	if (json_array_size(all) == 0 && session->form == FORM_TABLE)
		fputs("no entries\n", stderr);
	else
		listing_print(session, all, COLUMNS(audit_columns), "number");
	json_decref(all);
	return CLI_FINE;
}

static int run_audit(const struct arguments *arguments)
{
	return listing_run(arguments, 50, "", audit_show);
}

static void event_type(struct session *session, struct table *table, const json_t *event)
{
	(void)session;
	table_cell(table, "%s", member_text(event, "type"));
}

static void event_task(struct session *session, struct table *table, const json_t *event)
{
	(void)session;
	if (member_has(event, "task"))
		table_cell(table, "%lld", (long long)member_integer(event, "task"));
	else
		table_cell(table, "%s", "");
}

static void event_node(struct session *session, struct table *table, const json_t *event)
{
	(void)session;
	table_cell(table, "%s", member_text(event, "node"));
}

static const struct column event_columns[] = {
	COLUMN("TIME", audit_time),
	COLUMN("EVENT", event_type),
	COLUMN("TASK", event_task, .right = true),
	COLUMN("NODE", event_node, .shrinks = true),
};

static int run_events(const struct arguments *arguments)
{
	struct session session;
	struct error error = { 0 };
	int64_t since_ms;
	int status;
	if (arguments->operand_count != 1)
		return cli_misused(arguments->command, "which job? Give one id, such as job-12");
	if (!session_open(&session, arguments, &status))
		return status;
	if (!read_since(&session, &since_ms, &error)) {
		session_close(&session);
		return cli_misused(arguments->command, "%s", error.text);
	}
	json_t *answer = session_get(&session,
	                             session_path(&session, "/api/v1/jobs/%s/events",
	                                          session_job(&session, arguments->operands[0])),
	                             &error);
	if (answer) {
		json_t *events = json_array();
		append_since(events, json_object_get(answer, "events"), since_ms);
		listing_print(&session, events, COLUMNS(event_columns), "type");
		json_decref(events);
	}
	status = answer ? CLI_FINE : session_fail(&session, &error);
	json_decref(answer);
	session_close(&session);
	return status;
}

const struct cli_command whoami_command = {
	.name = "whoami",
	.arguments = "",
	.summary = "who you are to the service: name, role and tenant",
	.examples = "whoami\n",
	.asks = true,
	.lists = true,
	.run = run_whoami,
};

static const struct option audit_options[] = {
	OPTION("--limit", NULL, "N", "the most to show (default 50)"),
	OPTION("--since", NULL, "TIME", "since 2h ago, or 2030-01-31T12:00"),
	{ 0 },
};

static const struct option events_options[] = {
	OPTION("--since", NULL, "TIME", "since 2h ago, or 2030-01-31T12:00"),
	{ 0 },
};

const struct cli_command audit_command = {
	.name = "audit",
	.arguments = "[OPTION...]",
	.summary = "who changed what, the newest first (administrators)",
	.examples = "audit --since 1d --limit 200 -o json\n",
	.options = audit_options,
	.asks = true,
	.lists = true,
	.run = run_audit,
};

const struct cli_command events_command = {
	.name = "events",
	.arguments = "JOB",
	.summary = "what happened to a job, the oldest first",
	.examples = "events job-12 --since 1h\n",
	.options = events_options,
	.asks = true,
	.lists = true,
	.operand = COMPLETES_JOBS,
	.run = run_events,
};
