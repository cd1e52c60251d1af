/* token_command.c - gpu-cli token: make, list and revoke API tokens */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/job/field_request.h"
#include "cli/listing.h"
#include "cli/text/quantity.h"
#include "json/member.h"

static const struct option options[] = {
	OPTION("--save", NULL, "FILE", "write it there, for its owner alone, and do not show it",
	       .completes = COMPLETES_FILES),
	/* As in gpu-scheduler token create. */
	OPTION("--name", NULL, "NOTE", "the same as --note"),
	OPTION("--days", NULL, "N", "--expires-in in days"),
	{ 0 },
};

static void column_id(struct session *session, struct table *table, const json_t *token)
{
	(void)session;
	table_cell(table, "%s", member_text(token, "id"));
}

static void column_role(struct session *session, struct table *table, const json_t *token)
{
	(void)session;
	table_cell(table, "%s", member_text(token, "role"));
}

static void column_for(struct session *session, struct table *table, const json_t *token)
{
	const char *tenant = member_text(token, "tenant_id");
	table_cell(table, "%s",
	           *tenant ? session_tenant_name(session, tenant) : member_text(token, "node"));
}

static void column_age(struct session *session, struct table *table, const json_t *token)
{
	(void)session;
	listing_since(table, member_moment(token, "created_at"));
}

static void column_expires(struct session *session, struct table *table, const json_t *token)
{
	int64_t end = member_moment(token, "expires_at");
	(void)session;
	if (end < 0)
		table_cell(table, "%s", "never");
	else if (end <= clock_unix_ms())
		table_cell(table, "%s", "expired");
	else
		listing_since(table, end);
}

static void column_note(struct session *session, struct table *table, const json_t *token)
{
	(void)session;
	table_cell(table, "%s", member_text(token, "note"));
}

static const struct column columns[] = {
	COLUMN("TOKEN", column_id),
	COLUMN("ROLE", column_role),
	COLUMN("FOR", column_for, .shrinks = true),
	COLUMN("AGE", column_age, .right = true),
	COLUMN("EXPIRES", column_expires, .right = true),
	COLUMN("NOTE", column_note, .shrinks = true),
};

static int token_list(struct session *session)
{
	struct error error = { 0 };
	json_t *answer = session_get(session, "/api/v1/tokens", &error);
	if (!answer)
		return session_fail(session, &error);
	const json_t *tokens = json_object_get(answer, "tokens");
	if (json_array_size(tokens) == 0 && session->form == FORM_TABLE)
		fputs("no tokens\n", stderr);
	else
		listing_print(session, tokens, COLUMNS(columns), "id");
	json_decref(answer);
	return CLI_FINE;
}

/* --name, which gpu-scheduler token create has as well. */
static bool read_note(struct session *session, const struct resource_field *field, json_t *body,
                      struct error *error)
{
	const char *note = arguments_value(session->arguments, field->option.name),
		   *name = arguments_value(session->arguments, "--name");
	if (note && name)
		return error_set(error, ERROR_INVALID, "give --note or --name, not both");
	if (note || name)
		json_object_set_new(body, field->name, json_string(note ? note : name));
	return true;
}

static bool read_validity(struct session *session, const struct resource_field *field, json_t *body,
                          struct error *error)
{
	const char *expires = arguments_value(session->arguments, field->option.name),
		   *days = arguments_value(session->arguments, "--days");
	char text[40];
	int64_t ms, count;
	if (expires && days)
		return error_set(error, ERROR_INVALID, "give --expires-in or --days, not both");
	if (days && !quantity_integer("--days", days, 1, 10000, &count, error))
		return false;
	if (expires && !quantity_duration(field->option.name, expires, &ms, error))
		return false;
	if (expires)
		snprintf(text, sizeof(text), "%llds", (long long)((ms + 999) / 1000));
	else if (days)
		snprintf(text, sizeof(text), "%lldd", (long long)count);
	if (expires || days)
		json_object_set_new(body, field->name, json_string(text));
	return true;
}

/* A viewer that sees a single tenant must be asked for: the context does not bind it. */
static bool read_tenant(struct session *session, const struct resource_field *field, json_t *body,
                        struct error *error)
{
	const char *role = member_text(body, "role");
	const char *tenant = strcmp(role, "tenant") == 0 || strcmp(role, "tenant_admin") == 0
	                         ? session->tenant
	                         : arguments_value(session->arguments, "--tenant-id");
	(void)error;
	if (tenant)
		json_object_set_new(body, field->name, json_string(tenant));
	return true;
}

static const struct special_field special[] = {
	{ "role", NULL },      { "tenant_id", read_tenant },
	{ "note", read_note }, { "expires_in", read_validity },
	{ NULL, NULL },
};

/* What is asked for (json_decref); NULL with a reason. */
static json_t *read_wishes(struct session *session, struct error *error)
{
	const char *role = arguments_value(session->arguments, "--role");
	json_t *body = json_pack("{s:s}", "role", role ? role : "tenant");
	if (!field_request(session, &token_resource, special, body, error)) {
		json_decref(body);
		return NULL;
	}
	return body;
}

/* Whom it is for, for people: stdout has the token alone. */
static void say_for_whom(struct session *session, const json_t *answer)
{
	const char *tenant = member_text(answer, "tenant_id"), *node = member_text(answer, "node"),
		   *role = member_text(answer, "role");
	const char *whom = *tenant                      ? session_tenant_name(session, tenant)
	                   : *node                      ? node
	                   : strcmp(role, "agent") == 0 ? "all nodes"
	                                                : "all tenants";
	fprintf(stderr, "%s: role %s, for %s\n", member_text(answer, "id"), role, whom);
}

/* The one time that it is shown, or kept. */
static int hand_over(struct session *session, json_t *answer)
{
	const char *path = arguments_value(session->arguments, "--save");
	const char *token = member_text(answer, "token");
	struct error error = { 0 };
	struct buffer text = { 0 };
	say_for_whom(session, answer);
	if (!path) {
		if (!listing_print_document(session, answer, "id"))
			puts(token);
		return CLI_FINE;
	}
	buffer_print(&text, "%s\n", token);
	bool good = config_write_private(path, text.data, text.size, &error);
	explicit_bzero(text.data, text.size);
	buffer_free(&text);
	if (good)
		printf("%s is in %s\n", member_text(answer, "id"), path);
	return good ? CLI_FINE : session_fail(session, &error);
}

static int create(struct session *session)
{
	struct error error = { 0 };
	json_t *body = read_wishes(session, &error);
	if (!body)
		return cli_misused(session->command, "%s", error.text);
	json_t *answer = session_ask(session, "POST", "/api/v1/tokens", body, &error);
	int status = answer ? hand_over(session, answer) : session_fail(session, &error);
	json_decref(answer);
	return status;
}

static int revoke(struct session *session)
{
	const struct arguments *arguments = session->arguments;
	int status = CLI_FINE;
	for (size_t i = 1; i < arguments->operand_count; i++) {
		struct error error = { 0 };
		json_t *answer =
		    session_ask(session, "DELETE",
		                session_path(session, "/api/v1/tokens/%s", arguments->operands[i]),
		                NULL, &error);
		if (answer)
			printf("%s revoked\n", arguments->operands[i]);
		int one = answer ? CLI_FINE : session_fail(session, &error);
		status = status == CLI_FINE ? one : status;
		json_decref(answer);
	}
	return status;
}

static int token_run(const struct arguments *arguments)
{
	const char *verb = arguments->operand_count > 0 ? arguments->operands[0] : "list";
	bool lists = strcmp(verb, "list") == 0, creates = strcmp(verb, "create") == 0,
	     revokes = strcmp(verb, "revoke") == 0;
	struct session session;
	int status;
	if (!lists && !creates && !revokes)
		return cli_misused(arguments->command,
		                   "unknown subcommand '%.40s' (create, list, revoke)", verb);
	if (revokes ? arguments->operand_count < 2 : arguments->operand_count > 1)
		return cli_misused(arguments->command,
		                   revokes ? "missing token id, for example t-20df1e19dc55"
		                           : "unexpected argument '%.80s'",
		                   revokes ? "" : arguments->operands[1]);
	if (!session_open(&session, arguments, &status))
		return status;
	status = lists ? token_list(&session) : creates ? create(&session) : revoke(&session);
	session_close(&session);
	return status;
}

const struct cli_command token_command = {
	.name = "token",
	.arguments = "[create|list|revoke] [OPTION...] [ID...]",
	.summary = "make, list and revoke API tokens",
	.details = "A token is shown once, when it is made. --tenant-id says whom one of the role\n"
		   "tenant or viewer is for; a viewer without it sees all tenants.\n",
	.examples = "token create --tenant-id physics --expires-in 30d --note ci\n"
		    "token create --tenant-id vision --role inference --max-streams 4\n"
		    "token create --role agent --node alpha --save agent.token\n"
		    "token create --role agent --node alpha --replace --save agent.token\n"
		    "token list\n"
		    "token revoke t-20df1e19dc55\n",
	.fields = &token_resource,
	.options = options,
	.shows = &token_resource,
	.asks = true,
	.lists = true,
	.operand = COMPLETES_WORDS,
	.words = "create list revoke",
	.run = token_run,
};
