/* reserve_command.c - gpu-cli reserve: windows for some jobs, or for maintenance */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/job/field_request.h"
#include "cli/listing.h"
#include "json/member.h"

static void window_state(struct session *session, struct table *table, const json_t *window)
{
	bool open = member_flag(window, "open");
	(void)session;
	table_coloured(table, open ? COLOUR_GREEN : COLOUR_NONE, "%s", open ? "open" : "to come");
}

static void window_for(struct session *session, struct table *table, const json_t *window)
{
	const char *tenant = member_text(window, "tenant_id");
	if (member_flag(window, "maintenance"))
		table_cell(table, "%s", "maintenance");
	else
		table_cell(table, "%s",
		           *tenant ? session_tenant_name(session, tenant) : "jobs that name it");
}

static void window_start(struct session *session, struct table *table, const json_t *window)
{
	(void)session;
	table_cell(table, "%s", member_text(window, "next_start"));
}

static void window_end(struct session *session, struct table *table, const json_t *window)
{
	(void)session;
	table_cell(table, "%s", member_text(window, "next_end"));
}

/* node2,node3 4 GPUs */
static void window_on(struct session *session, struct table *table, const json_t *window)
{
	size_t gpus = json_array_size(json_object_get(window, "gpus")), place;
	struct buffer text = { 0 };
	json_t *node;
	(void)session;
	buffer_text(&text, "");
	json_array_foreach(json_object_get(window, "nodes"), place, node)
	{
		buffer_print(&text, "%s%s", place > 0 ? "," : "", json_string_value(node));
	}
	if (gpus > 0)
		buffer_print(&text, "%s%zu GPU%s", text.size > 0 ? " " : "", gpus,
		             gpus == 1 ? "" : "s");
	table_cell(table, "%s", text.data);
	buffer_free(&text);
}

static const struct column columns[] = {
	FIELD_COLUMN("NAME", "name"),
	COLUMN("STATE", window_state),
	COLUMN("FOR", window_for, .shrinks = true),
	COLUMN("ON", window_on, .shrinks = true),
	COLUMN("OPENS", window_start),
	COLUMN("CLOSES", window_end),
	FIELD_COLUMN("REPEAT", "repeat"),
	FIELD_COLUMN("REASON", "reason", .shrinks = true),
};

static int reserve_list(struct session *session)
{
	struct error error = { 0 };
	json_t *answer = session_get(session, "/api/v1/windows", &error);
	if (!answer)
		return session_fail(session, &error);
	const json_t *windows = json_object_get(answer, "windows");
	if (json_array_size(windows) == 0 && session->form == FORM_TABLE)
		fputs("no windows\n", stderr);
	else
		listing_print(session, windows, COLUMNS(columns), "name");
	json_decref(answer);
	return CLI_FINE;
}

static int reserve_print(struct session *session, json_t *window, const struct error *error)
{
	if (!window)
		return session_fail(session, error);
	if (!listing_print_document(session, window, "name")) {
		json_t *list = json_pack("[O]", window);
		listing_print(session, list, COLUMNS(columns), "name");
		json_decref(list);
	}
	json_decref(window);
	return CLI_FINE;
}

static const struct special_field special[] = {
	{ "name", NULL },
	{ "start", field_request_moment },
	{ NULL, NULL },
};

static int reserve_create(struct session *session)
{
	struct error error = { 0 };
	json_t *body = json_pack("{s:s}", "name", session->arguments->operands[1]);
	if (!field_request(session, &window_resource, special, body, &error)) {
		json_decref(body);
		return cli_misused(session->command, "%s", error.text);
	}
	return reserve_print(session, session_ask(session, "POST", "/api/v1/windows", body, &error),
	                     &error);
}

static int reserve_show(struct session *session)
{
	struct error error = { 0 };
	json_t *window = session_get(
	    session, session_path(session, "/api/v1/windows/%s", session->arguments->operands[1]),
	    &error);
	return reserve_print(session, window, &error);
}

static int reserve_delete(struct session *session)
{
	const struct arguments *arguments = session->arguments;
	int status = CLI_FINE;
	for (size_t i = 1; i < arguments->operand_count; i++) {
		struct error error = { 0 };
		json_t *answer =
		    session_ask(session, "DELETE",
		                session_path(session, "/api/v1/windows/%s", arguments->operands[i]),
		                NULL, &error);
		if (answer)
			printf("%s deleted\n", arguments->operands[i]);
		else
			status = session_fail(session, &error);
		json_decref(answer);
	}
	return status;
}

static int run_reserve(const struct arguments *arguments)
{
	static const struct {
		const char *verb;
		size_t least, most;
		int (*run)(struct session *session);
	} verbs[] = {
		{ "list", 0, 1, reserve_list },
		{ "create", 2, 2, reserve_create },
		{ "show", 2, 2, reserve_show },
		{ "delete", 2, SIZE_MAX, reserve_delete },
	};
	const char *verb = arguments->operand_count > 0 ? arguments->operands[0] : "list";
	struct session session;
	size_t at = 0;
	int status;
	while (at < sizeof(verbs) / sizeof(verbs[0]) && strcmp(verbs[at].verb, verb) != 0)
		at++;
	if (at == sizeof(verbs) / sizeof(verbs[0]))
		return cli_misused(arguments->command,
		                   "unknown subcommand '%.40s' (create, delete, list, show)", verb);
	if (arguments->operand_count < verbs[at].least)
		return cli_misused(arguments->command, "missing the name of a window");
	if (arguments->operand_count > verbs[at].most)
		return cli_misused(arguments->command, "unexpected argument '%.80s'",
		                   arguments->operands[verbs[at].most]);
	if (!session_open(&session, arguments, &status))
		return status;
	status = verbs[at].run(&session);
	session_close(&session);
	return status;
}

const struct cli_command reserve_command = {
	.name = "reserve",
	.arguments = "[create|list|show|delete] [NAME] [OPTION...]",
	.summary = "keep GPUs for some jobs, or free for maintenance, at times",
	.details =
	    "While a window is open, only its own jobs start on its GPUs: those that name it\n"
	    "('submit --window NAME'), or all of the tenant --for. In a maintenance window\n"
	    "nothing starts. Others do not start there if they might run into it.\n",
	.examples = "reserve create exam --gpus 4 --for students --start 2h --length 3h\n"
		    "reserve create fans --maintenance --node alpha --start 2d "
		    "--length 1h\n"
		    "reserve create nightly --gpus 8 --repeat daily --length 6h\n"
		    "reserve list\n",
	.fields = &window_resource,
	.shows = &window_resource,
	.asks = true,
	.lists = true,
	.operand = COMPLETES_WORDS,
	.words = "create list show delete",
	.run = run_reserve,
};
