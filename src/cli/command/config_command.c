/* config_command.c - gpu-cli config, login and logout: which clusters there are, and signing in */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "cli/command/single_sign_on.h"
#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/session.h"
#include "json/member.h"

static const struct option context_options[] = {
	OPTION("--server", NULL, "URL", "where the service is"),
	OPTION("--token-file", NULL, "FILE", "the token to sign in with",
	       .completes = COMPLETES_FILES),
	OPTION("--ca", NULL, "FILE", "certificates to trust instead of the system's",
	       .completes = COMPLETES_FILES),
	OPTION("--tenant-id", "-t", "TENANT", "whose, where nothing else is said"),
	{ 0 },
};

static const struct option login_options[] = {
	OPTION("--server", NULL, "URL", "where the service is"),
	OPTION("--sso", NULL, NULL, "sign in by the provider of single sign-on, with a browser"),
	OPTION("--token-file", NULL, "FILE", "the token to sign in with",
	       .completes = COMPLETES_FILES),
	OPTION("--ca", NULL, "FILE", "certificates to trust instead of the system's",
	       .completes = COMPLETES_FILES),
	OPTION("--tenant-id", "-t", "TENANT", "whose, where nothing else is said"),
	{ 0 },
};

/* The configuration and where it is. */
struct editing {
	const struct arguments *arguments;
	struct buffer path;
	struct config config;
};

static bool config_begin(struct editing *editing, const struct arguments *arguments, int *status)
{
	struct error error = { 0 };
	*editing = (struct editing){ .arguments = arguments };
	if (config_path(&editing->path, &error) &&
	    config_load(&editing->config, editing->path.data, &error))
		return true;
	*status = cli_fail(arguments->command, &error);
	buffer_free(&editing->path);
	config_free(&editing->config);
	return false;
}

static void config_end(struct editing *editing)
{
	buffer_free(&editing->path);
	config_free(&editing->config);
}

static int save(struct editing *editing, const char *said, const char *name)
{
	struct error error = { 0 };
	if (!config_save(&editing->config, editing->path.data, &error))
		return cli_fail(editing->arguments->command, &error);
	printf("context %s %s\n", name, said);
	return CLI_FINE;
}

/* A file's path from the root, so that the context can be used from anywhere. */
static const char *absolute(struct editing *editing, const char *path)
{
	char *full = path ? realpath(path, NULL) : NULL;
	const char *kept = arena_string(&editing->config.arena, full ? full : path);
	free(full);
	return kept;
}

static void set_fields(struct editing *editing, struct context *context)
{
	const struct arguments *arguments = editing->arguments;
	const char *server = arguments_value(arguments, "--server"),
		   *token_file = arguments_value(arguments, "--token-file"),
		   *ca = arguments_value(arguments, "--ca"),
		   *tenant = arguments_value(arguments, "--tenant-id");
	if (server)
		context->server = server;
	if (token_file) {
		context->token_file = absolute(editing, token_file);
		context->token = NULL;
	}
	if (ca)
		context->ca = absolute(editing, ca);
	if (tenant)
		context->tenant = tenant;
}

static int set_context(struct editing *editing, const char *name)
{
	const char *server = arguments_value(editing->arguments, "--server");
	struct address address;
	struct error error = { 0 };
	if (server && !address_read(server, &address, &error))
		return cli_misused(editing->arguments->command, "%s", error.text);
	set_fields(editing, config_make(&editing->config, name));
	if (!editing->config.current)
		editing->config.current = name;
	return save(editing, "is set", name);
}

static int config_refuse_unknown(const struct editing *editing, const char *name)
{
	struct error error;
	error_set(
	    &error, ERROR_NOT_FOUND,
	    "there is no context '%.80s': 'gpu-cli config get-contexts' lists those there are",
	    name);
	return cli_fail(editing->arguments->command, &error);
}

static int use_context(struct editing *editing, const char *name)
{
	if (!config_find(&editing->config, name))
		return config_refuse_unknown(editing, name);
	editing->config.current = name;
	return save(editing, "is used from now on", name);
}

static int delete_context(struct editing *editing, const char *name)
{
	struct context *context = config_find(&editing->config, name);
	if (!context)
		return config_refuse_unknown(editing, name);
	config_remove(&editing->config, context);
	if (editing->config.current && strcmp(editing->config.current, name) == 0)
		editing->config.current = NULL;
	return save(editing, "is removed", name);
}

/* Tokens are never shown: only that there is one. */
static void context_add_row(struct table *table, const struct context *context, bool current)
{
	table_cell(table, "%s", current ? "*" : "");
	table_cell(table, "%s", context->name);
	table_cell(table, "%s", context->server ? context->server : "-");
	table_cell(table, "%s", context->tenant ? context->tenant : "-");
	table_cell(table, "%s",
	           context->token        ? "(in this file)"
	           : context->token_file ? context->token_file
	                                 : "-");
}

static int get_contexts(struct editing *editing)
{
	const struct config *config = &editing->config;
	struct table table = { .columns = 5,
		               .shrinks = 1U << 1 | 1U << 2 | 1U << 4,
		               .terminal = terminal_of(STDOUT_FILENO) };
	static const char *const titles[] = { "", "CONTEXT", "SERVER", "TENANT", "TOKEN" };
	if (config->count == 0) {
		fprintf(stderr,
		        "no contexts; 'gpu-cli config set-context NAME --server URL' makes "
		        "one in %s\n",
		        editing->path.data);
		return CLI_FINE;
	}
	for (int i = 0; i < 5; i++)
		table_coloured(&table, COLOUR_BOLD, "%s", titles[i]);
	for (size_t i = 0; i < config->count; i++)
		context_add_row(&table, &config->contexts[i],
		                config->current &&
		                    strcmp(config->current, config->contexts[i].name) == 0);
	table_print(&table, stdout);
	table_free(&table);
	return CLI_FINE;
}

static int current_context(struct editing *editing)
{
	if (!editing->config.current)
		return cli_failed(editing->arguments->command, "no context is used");
	puts(editing->config.current);
	return CLI_FINE;
}

static int show_path(struct editing *editing)
{
	puts(editing->path.data);
	return CLI_FINE;
}

static int run_config(const struct arguments *arguments)
{
	static const struct {
		const char *verb;
		int (*one)(struct editing *editing, const char *name);
		int (*none)(struct editing *editing);
	} verbs[] = {
		{ "get-contexts", NULL, get_contexts },
		{ "current-context", NULL, current_context },
		{ "use-context", use_context, NULL },
		{ "set-context", set_context, NULL },
		{ "delete-context", delete_context, NULL },
		{ "path", NULL, show_path },
	};
	const char *verb = arguments->operand_count > 0 ? arguments->operands[0] : "get-contexts";
	size_t given = arguments->operand_count > 0 ? arguments->operand_count - 1 : 0;
	struct editing editing;
	int status;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(verbs[i].verb, verb) != 0)
			continue;
		if (given != (verbs[i].one ? 1 : 0))
			return cli_misused(arguments->command,
			                   verbs[i].one ? "%s needs one name" : "%s stands alone",
			                   verb);
		if (!config_begin(&editing, arguments, &status))
			return status;
		status = verbs[i].one ? verbs[i].one(&editing, arguments->operands[1])
		                      : verbs[i].none(&editing);
		config_end(&editing);
		return status;
	}
	return cli_misused(arguments->command, "there is no '%.40s' here", verb);
}

/* Reads a line without showing it where it is typed. False: there is none. */
static bool read_secret(char *text, size_t size)
{
	struct termios before, silent;
	bool typed = tcgetattr(STDIN_FILENO, &before) == 0;
	if (typed) {
		fputs("Token: ", stderr);
		silent = before;
		silent.c_lflag &= ~(tcflag_t)ECHO;
		tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
	}
	bool good = fgets(text, (int)size, stdin) != NULL;
	if (typed) {
		tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
		fputc('\n', stderr);
	}
	text[good ? strcspn(text, " \t\r\n") : 0] = '\0';
	return good && *text;
}

/* Whether the service takes the token; told on stderr if not. */
static bool is_welcome(const struct arguments *arguments, const struct context *context,
                       const char *token, int *status)
{
	struct error error = { 0 };
	struct client client = {
		.token = token, .ca_file = context->ca, .connect_ms = 10000, .most_ms = 30000
	};
	json_t *answer = NULL;
	if (address_read(context->server, &client.address, &error))
		answer = client_ask(
		    &client,
		    &(struct client_request){ .method = "GET", .path = "/api/v1/cluster/status" },
		    &error);
	client_close(&client);
	if (!answer)
		*status = cli_fail(arguments->command, &error);
	json_decref(answer);
	return answer != NULL;
}

/* The context of that name, with what the options say. */
static struct context *login_context(struct editing *editing, const char *name)
{
	struct context *context = config_make(&editing->config, name);
	const char *url = getenv("GPU_SCHEDULER_URL");
	set_fields(editing, context);
	if (url && *url && !arguments_value(editing->arguments, "--server"))
		context->server = arena_string(&editing->config.arena, url);
	if (!context->server)
		context->server = "http://127.0.0.1:8080";
	return context;
}

/* Keeps the token in a file of its own beside the configuration. */
static int sign_in(struct editing *editing, const char *name, const char *token)
{
	struct context *context = login_context(editing, name);
	struct buffer path = { 0 }, text = { 0 };
	struct error error = { 0 };
	int status;
	if (!is_welcome(editing->arguments, context, token, &status))
		return status;
	const char *slash = strrchr(editing->path.data, '/');
	size_t directory = slash ? (size_t)(slash - editing->path.data) + 1 : 0;
	buffer_print(&path, "%.*s%s.token", (int)directory, editing->path.data, name);
	buffer_print(&text, "%s\n", token);
	bool good = config_write_private(path.data, text.data, text.size, &error);
	explicit_bzero(text.data, text.size);
	buffer_free(&text);
	context->token_file = arena_string(&editing->config.arena, path.data);
	context->token = NULL;
	buffer_free(&path);
	editing->config.current = name;
	return good ? save(editing, "is signed in, and used from now on", name)
	            : cli_fail(editing->arguments->command, &error);
}

/* A client of the context's service; false with a reason. */
static bool client_of(const struct context *context, const char *token, struct client *client,
                      struct error *error)
{
	*client = (struct client){
		.token = token, .ca_file = context->ca, .connect_ms = 10000, .most_ms = 30000
	};
	return address_read(context->server, &client->address, error);
}

static int sign_in_by_provider(struct editing *editing, const char *name)
{
	const struct context *context = login_context(editing, name);
	struct error error = { 0 };
	struct client client;
	char *token =
	    client_of(context, NULL, &client, &error) ? single_sign_on(&client, &error) : NULL;
	client_close(&client);
	if (!token)
		return cli_fail(editing->arguments->command, &error);
	int status = sign_in(editing, name, token);
	explicit_bzero(token, strlen(token));
	free(token);
	return status;
}

/* Ends the session, and forgets its token. */
static int sign_out(struct editing *editing, struct context *context)
{
	struct error error = { 0 };
	struct client client = { 0 };
	const char *token = context->token;
	if (!token && context->token_file)
		token = config_read_token(context->token_file, &editing->config.arena, &error);
	if (!token && error.code == ERROR_NONE)
		error_set(&error, ERROR_INVALID, "the context %s is not signed in", context->name);
	bool good =
	    token && client_of(context, token, &client, &error) && single_sign_off(&client, &error);
	client_close(&client);
	if (!good)
		return cli_fail(editing->arguments->command, &error);
	if (context->token_file)
		unlink(context->token_file);
	context->token = context->token_file = NULL;
	return save(editing, "is signed out", context->name);
}

static int run_logout(const struct arguments *arguments)
{
	struct editing editing;
	int status;
	if (arguments->operand_count > 1)
		return cli_misused(arguments->command, "give one name of a context");
	if (!config_begin(&editing, arguments, &status))
		return status;
	const char *name =
	    arguments->operand_count > 0 ? arguments->operands[0] : editing.config.current;
	struct context *context = name ? config_find(&editing.config, name) : NULL;
	if (context)
		status = sign_out(&editing, context);
	else
		status = cli_misused(arguments->command, "there is no context '%.80s'",
		                     name ? name : "default");
	config_end(&editing);
	return status;
}

static int run_login(const struct arguments *arguments)
{
	const char *name = arguments->operand_count > 0 ? arguments->operands[0] : "default";
	struct editing editing;
	char token[4096];
	int status;
	if (arguments->operand_count > 1 || strchr(name, '/') || name[0] == '.')
		return cli_misused(arguments->command,
		                   "give one name for the context, without slashes");
	if (!config_begin(&editing, arguments, &status))
		return status;
	if (arguments_has(arguments, "--sso"))
		status = sign_in_by_provider(&editing, name);
	else if (read_secret(token, sizeof(token)))
		status = sign_in(&editing, name, token);
	else
		status = cli_misused(arguments->command, "no token was given");
	explicit_bzero(token, sizeof(token));
	config_end(&editing);
	return status;
}

const struct cli_command config_command = {
	.name = "config",
	.arguments = "[get-contexts|use-context|set-context|...] [NAME]",
	.summary = "contexts: several clusters, and which of them is used",
	.details = "get-contexts         list them, the one that is used with a star\n"
		   "current-context      the one that is used\n"
		   "use-context NAME     use this one from now on\n"
		   "set-context NAME     make or change one, by the options\n"
		   "delete-context NAME  remove one\n"
		   "path                 where they are kept\n",
	.examples = "config set-context lab --server https://gpu.lab.example -t physics\n"
		    "config use-context lab\n",
	.options = context_options,
	.operand = COMPLETES_WORDS,
	.words = "get-contexts current-context use-context set-context delete-context path",
	.run = run_config,
};

const struct cli_command login_command = {
	.name = "login",
	.arguments = "[CONTEXT] [OPTION...]",
	.summary = "sign in, and keep the token in a context",
	.details = "The token is read from the terminal, where it is not shown, or from standard\n"
		   "input. It is tried, and kept in a file that only you can read. With --sso you\n"
		   "sign in with a browser, on any machine, by the provider of single sign-on.\n",
	.examples = "login lab --server https://gpu.lab.example\n"
		    "login lab --server https://gpu.lab.example --sso\n",
	.options = login_options,
	.operand = COMPLETES_CONTEXTS,
	.run = run_login,
};

const struct cli_command logout_command = {
	.name = "logout",
	.arguments = "[CONTEXT]",
	.summary = "end a session of single sign-on",
	.details = "The token is not valid any more, and its file is removed.\n",
	.examples = "logout lab\n",
	.operand = COMPLETES_CONTEXTS,
	.run = run_logout,
};
