/* session.c - one call of a command that asks the service */
#include "cli/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json/member.h"

#define USUAL_SERVER "http://127.0.0.1:8080"
enum { CONNECT_MS = 10000, ANSWER_MS = 60000, PAGE_LIMIT = 1000 };

const struct option session_options[] = {
	OPTION("--server", NULL, "URL", "where the service is (default " USUAL_SERVER ")"),
	OPTION("--context", NULL, "NAME", "the context of the configuration to use",
	       .completes = COMPLETES_CONTEXTS),
	OPTION("--token-file", NULL, "FILE", "the token to sign in with",
	       .completes = COMPLETES_FILES),
	OPTION("--ca", NULL, "FILE", "certificates to trust instead of the system's",
	       .completes = COMPLETES_FILES),
	OPTION("--tenant-id", "-t", "TENANT", "whose: an id or a name",
	       .completes = COMPLETES_TENANTS),
	OPTION("--all-tenants", "-A", NULL,
	       "lists show all tenants, whatever GPU_SCHEDULER_TENANT says"),
	{ 0 },
};

const struct option session_output_options[] = {
	OPTION("--output", "-o", "FORM", "json, yaml, wide (all columns) or name (ids alone)",
	       .completes = COMPLETES_WORDS, .words = "json yaml wide name"),
	{ 0 },
};

static const char *environment(const char *name)
{
	const char *value = getenv(name);
	return value && *value ? value : NULL;
}

static const char *first(const char *a, const char *b, const char *c)
{
	return a ? a : b ? b : c;
}

static bool read_form(struct session *session, struct error *error)
{
	static const char *const names[] = { "table", "wide", "json", "yaml", "name" };
	const char *said = arguments_value(session->arguments, "--output");
	if (!said)
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], said) == 0) {
			session->form = (enum form)i;
			return true;
		}
	return error_set(error, ERROR_INVALID,
	                 "invalid -o '%.20s': expected json, yaml, wide or name", said);
}

/* The context that was asked for; NULL: there is none to use. */
static bool find_context(struct session *session, const struct context **context,
                         struct error *error)
{
	struct buffer path = { 0 };
	const char *name = first(arguments_value(session->arguments, "--context"),
	                         environment("GPU_SCHEDULER_CONTEXT"), NULL);
	struct error no_home;
	bool good = true;

	if (config_path(&path, &no_home))
		good = config_load(&session->config, path.data, error);
	if (good && !name)
		name = session->config.current;
	*context = good && name ? config_find(&session->config, name) : NULL;
	if (good && name && !*context)
		good = error_set(error, ERROR_INVALID,
		                 "there is no context '%.80s': 'gpu-cli config get-contexts' lists "
		                 "those there are",
		                 name);
	buffer_free(&path);
	return good;
}

static bool find_token(struct session *session, const struct context *context, struct error *error)
{
	const char *file = arguments_value(session->arguments, "--token-file");
	const char *token = NULL;
	if (!file) {
		token = environment("GPU_SCHEDULER_TOKEN");
		if (!token)
			file = environment("GPU_SCHEDULER_TOKEN_FILE");
		if (!token && !file && context) {
			token = context->token;
			file = token ? NULL : context->token_file;
		}
	}
	if (file)
		token = config_read_token(file, &session->arena, error);
	if (file && !token)
		return false;
	for (const char *at = token; at && *at; at++)
		if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f)
			return error_set(error, ERROR_INVALID,
			                 "the token has characters that no token has");
	session->client.token = token;
	return true;
}

static bool session_settle(struct session *session, struct error *error)
{
	static const struct context nothing = { 0 };
	const struct arguments *arguments = session->arguments;
	const struct context *context;
	if (!read_form(session, error) || !find_context(session, &context, error) ||
	    !find_token(session, context, error))
		return false;
	if (!context)
		context = &nothing;
	session->server = first(arguments_value(arguments, "--server"),
	                        environment("GPU_SCHEDULER_URL"), context->server);
	if (!session->server)
		session->server = USUAL_SERVER;
	session->client.ca_file =
	    first(arguments_value(arguments, "--ca"), environment("GPU_SCHEDULER_CA"), context->ca);
	session->tenant = first(arguments_value(arguments, "--tenant-id"),
	                        environment("GPU_SCHEDULER_TENANT"), context->tenant);
	if (!arguments_has(arguments, "--all-tenants"))
		session->only = first(arguments_value(arguments, "--tenant-id"),
		                      environment("GPU_SCHEDULER_TENANT"), NULL);
	else if (arguments_value(arguments, "--tenant-id"))
		return error_set(error, ERROR_INVALID,
		                 "--all-tenants and --tenant-id contradict each other");
	return address_read(session->server, &session->client.address, error);
}

bool session_open_quietly(struct session *session, const struct arguments *arguments,
                          struct error *error)
{
	*session = (struct session){ .arguments = arguments,
		                     .command = arguments->command,
		                     .client = { .most_ms = ANSWER_MS, .connect_ms = CONNECT_MS },
		                     .terminal = terminal_of(STDOUT_FILENO) };
	if (session_settle(session, error))
		return true;
	session_close(session);
	return false;
}

bool session_open(struct session *session, const struct arguments *arguments, int *status)
{
	struct error error = { 0 };
	if (session_open_quietly(session, arguments, &error))
		return true;
	*status = error.code == ERROR_INVALID ? cli_misused(arguments->command, "%s", error.text)
	                                      : cli_fail(arguments->command, &error);
	return false;
}

void session_close(struct session *session)
{
	client_close(&session->client);
	config_free(&session->config);
	json_decref(session->tenants);
	arena_free(&session->arena);
}

/* What the service says of a field, as of the option that sets it. */
static bool name_option(const struct session *session, const struct error *error,
                        struct error *named)
{
	const struct resource *resource = session->command->fields;
	size_t size = strcspn(error->text, " ");
	int place = resource ? resource_find(resource, error->text, size) : -1;
	const char *option = place >= 0 ? resource->fields[place].option.name : NULL;
	return option && !error_set(named, error->code, "%s%s", option, error->text + size);
}

int session_fail(const struct session *session, const struct error *error)
{
	struct error named;
	bool is_named = error->code == ERROR_INVALID && name_option(session, error, &named);
	return cli_fail(session->command, is_named ? &named : error);
}

const char *session_path(struct session *session, const char *format, ...)
{
	struct buffer path = { 0 };
	va_list arguments;
	va_start(arguments, format);
	for (; *format; format++) {
		if (format[0] == '%' && format[1] == 's') {
			client_escape(&path, va_arg(arguments, const char *));
			format++;
		} else if (format[0] == '%' && format[1] == 'd') {
			buffer_print(&path, "%d", va_arg(arguments, int));
			format++;
		} else {
			buffer_bytes(&path, format, 1);
		}
	}
	va_end(arguments);
	buffer_text(&path, "");
	const char *kept = arena_string(&session->arena, path.data);
	buffer_free(&path);
	return kept;
}

json_t *session_ask(struct session *session, const char *method, const char *path, json_t *body,
                    struct error *error)
{
	/* A decimal as it was written: 0.1, not what is nearest to it. */
	char *text = body ? json_dumps(body, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
	json_decref(body);
	json_t *answer = client_ask(
	    &session->client,
	    &(struct client_request){ .method = method, .path = path, .body = text }, error);
	free(text);
	return answer;
}

json_t *session_get(struct session *session, const char *path, struct error *error)
{
	return session_ask(session, "GET", path, NULL, error);
}

/* One page: how many came, or -1 with the reason. `after` becomes where the next one begins,
 * if the service says so. */
static long get_page(struct session *session, const char *path, const char *key, json_t *all,
                     struct buffer *after, struct error *error)
{
	json_t *answer = session_get(session, path, error);
	if (!answer)
		return -1;
	json_t *items = key ? json_object_get(answer, key) : answer;
	const char *next = json_string_value(json_object_get(answer, "next_after"));
	long count = (long)json_array_size(items);
	json_array_extend(all, items);
	buffer_clear(after);
	buffer_text(after, next ? next : "");
	json_decref(answer);
	return count;
}

json_t *session_list(struct session *session, const char *path, const char *query, const char *key,
                     size_t most, struct error *error)
{
	json_t *all = json_array();
	struct buffer page = { 0 }, after = { 0 };
	long count = 0;
	size_t limit = 0;
	while (json_array_size(all) < most && count == (long)limit) {
		size_t has = json_array_size(all), wanted = most - has;
		limit = wanted < PAGE_LIMIT ? wanted : PAGE_LIMIT;
		buffer_clear(&page);
		buffer_print(&page, "%s?limit=%zu%s%s", path, limit, *query ? "&" : "", query);
		if (after.size > 0)
			buffer_print(&page, "&after=%s", after.data);
		else if (has > 0)
			buffer_print(&page, "&offset=%zu", has);
		count = get_page(session, page.data, key, all, &after, error);
	}
	buffer_free(&page);
	buffer_free(&after);
	if (count >= 0)
		return all;
	json_decref(all);
	return NULL;
}

static void load_tenants(struct session *session)
{
	struct error unused = { 0 };
	json_t *list = session_list(session, "/api/v1/tenants", "", "tenants", 100000, &unused);
	size_t place;
	json_t *tenant;
	session->tenants = json_object();
	json_array_foreach(list, place, tenant)
	{
		const char *id = json_string_value(json_object_get(tenant, "id"));
		if (id)
			json_object_set(session->tenants, id, tenant);
	}
	json_decref(list);
}

const char *session_tenant_name(struct session *session, const char *id)
{
	if (!id)
		return "";
	if (!session->tenants)
		load_tenants(session);
	const char *name =
	    json_string_value(json_object_get(json_object_get(session->tenants, id), "name"));
	return name ? name : id;
}

const char *session_tenant(struct session *session, struct error *error)
{
	if (session->tenant)
		return session->tenant;
	json_t *list = session_list(session, "/api/v1/tenants", "", "tenants", 2, error);
	if (!list)
		return NULL;
	const char *id = json_string_value(json_object_get(json_array_get(list, 0), "id"));
	const char *tenant = NULL;
	if (json_array_size(list) == 1 && id)
		tenant = arena_string(&session->arena, id);
	else if (json_array_size(list) == 0)
		error_set(error, ERROR_NOT_FOUND,
		          "there is no tenant yet: make one with 'gpu-cli create-tenant NAME'");
	else
		tenant = "";
	json_decref(list);
	return tenant;
}

const char *session_user(struct session *session, struct error *error)
{
	json_t *answer = session_get(session, "/api/v1/session", error);
	if (!answer)
		return NULL;
	const char *user = arena_string(&session->arena, member_text(answer, "user"));
	json_decref(answer);
	if (*user)
		return user;
	error_set(error, ERROR_INVALID,
	          "you are not signed in, so no job is known to be yours: see 'gpu-cli whoami'");
	return NULL;
}

const char *session_job(struct session *session, const char *text)
{
	if (*text && strspn(text, "0123456789") == strlen(text)) {
		struct buffer id = { 0 };
		buffer_print(&id, "job-%s", text);
		const char *kept = arena_string(&session->arena, id.data);
		buffer_free(&id);
		return kept;
	}
	return text;
}
