/* model_commands.c - gpu-cli models and slots: what is served, and where it is loaded */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "cli/command/logs.h"
#include "cli/commands.h"
#include "cli/job/model_request.h"
#include "cli/listing.h"
#include "cli/text/quantity.h"
#include "json/member.h"

static const struct option options[] = {
	OPTION("--from", NULL, "FILE",
	       "a model's file or directory: its memory is estimated, for --splits",
	       .completes = COMPLETES_FILES),
	OPTION("--wait", "-w", "TIME",
	       "lease, load: how long to wait for a place (default 30s, load 10m)"),
	OPTION("--for", NULL, "TIME", "lease: how long it is for (default 10m)"),
	OPTION("--tail", NULL, "N", "logs: the last N lines alone"),
	OPTION("--node", NULL, "NODE", "evict: the replicas on this node alone",
	       .completes = COMPLETES_NODES),
	OPTION("--now", NULL, NULL,
	       "evict: also with requests in flight, which are tried elsewhere"),
	OPTION("--slot", NULL, "SLOT", "logs: of this slot (default: the newest)"),
	{ 0 },
};

static void model_tenant(struct session *session, struct table *table, const json_t *model)
{
	table_cell(table, "%s", session_tenant_name(session, member_text(model, "tenant_id")));
}

static void model_memory(struct session *session, struct table *table, const json_t *model)
{
	(void)session;
	listing_memory(table, member_integer(model, "gpu_memory_mb"));
}

static void model_slots(struct session *session, struct table *table, const json_t *model)
{
	(void)session;
	table_cell(table, "%lld+%lld", (long long)member_integer(model, "ready_slots"),
	           (long long)member_integer(model, "coming_slots"));
}

static void model_range(struct session *session, struct table *table, const json_t *model)
{
	(void)session;
	table_cell(table, "%lld-%lld", (long long)member_integer(model, "min_replicas"),
	           (long long)member_integer(model, "max_replicas"));
}

static const struct column columns[] = {
	FIELD_COLUMN("MODEL", "id"),
	FIELD_COLUMN("NAME", "name", .shrinks = true),
	COLUMN("TENANT", model_tenant, .shrinks = true),
	FIELD_COLUMN("RUNTIME", "runtime"),
	COLUMN("MEMORY", model_memory, .right = true),
	COLUMN("READY", model_slots, .right = true),
	COLUMN("MIN-MAX", model_range, .right = true),
	FIELD_COLUMN("ACTIVE", "active_requests", .right = true),
	FIELD_COLUMN("WAITING", "waiting_requests", .right = true),
	FIELD_COLUMN("OLDEST-MS", "oldest_wait_ms", .right = true, .extra = true),
	FIELD_COLUMN("FIRST-TOKEN-MS", "first_token_p50_ms", .right = true, .extra = true),
	FIELD_COLUMN("P99-MS", "first_token_p99_ms", .right = true, .extra = true),
	FIELD_COLUMN("TOKENS/S", "tokens_per_second", .right = true, .extra = true),
	FIELD_COLUMN("FAILURES", "failures", .right = true, .extra = true),
	FIELD_COLUMN("MESSAGE", "message", .shrinks = true, .extra = true),
};

static json_t *load_models(struct session *session, struct error *error)
{
	return session_list(session, "/api/v1/models", "", "models", 1000000, error);
}

const struct listing_source models_source = {
	.title = "MODELS",
	.name_key = "id",
	.resource = &model_resource,
	.load = load_models,
	.columns = columns,
	.column_count = sizeof(columns) / sizeof(columns[0]),
};

static int print_model(struct session *session, json_t *model, const struct error *error)
{
	if (!model)
		return session_fail(session, error);
	if (!listing_print_document(session, model, "id")) {
		json_t *list = json_pack("[O]", model);
		listing_print(session, list, COLUMNS(columns), "id");
		json_decref(list);
	}
	json_decref(model);
	return CLI_FINE;
}

static int model_list(struct session *session)
{
	struct error error = { 0 };
	json_t *models = load_models(session, &error);
	if (!models)
		return session_fail(session, &error);
	if (json_array_size(models) == 0 && session->form == FORM_TABLE)
		fputs("no models\n", stderr);
	else
		listing_print(session, models, COLUMNS(columns), "id");
	json_decref(models);
	return CLI_FINE;
}

static int create(struct session *session, const char *name)
{
	struct error error = { 0 };
	json_t *body = model_request(session, true, &error);
	if (!body)
		return error.code == ERROR_INVALID ? cli_misused(session->command, "%s", error.text)
		                                   : session_fail(session, &error);
	const char *tenant = session_tenant(session, &error);
	json_object_set_new(body, "name", json_string(name));
	if (tenant && *tenant)
		json_object_set_new(body, "tenant_id", json_string(tenant));
	json_t *model = NULL;
	if (tenant)
		model = session_ask(session, "POST", "/api/v1/models", body, &error);
	else
		json_decref(body);
	if (model && session->form == FORM_TABLE) {
		printf("%s created (%s)\n", member_text(model, "id"), member_text(model, "name"));
		json_decref(model);
		return CLI_FINE;
	}
	return print_model(session, model, &error);
}

/* What is not given stays as it is. */
static int update(struct session *session, const char *name)
{
	struct error error = { 0 };
	json_t *body = model_request(session, false, &error);
	if (!body)
		return error.code == ERROR_INVALID ? cli_misused(session->command, "%s", error.text)
		                                   : session_fail(session, &error);
	if (json_object_size(body) == 0) {
		json_decref(body);
		return cli_misused(session->command, "nothing to change: give an option");
	}
	const char *path = session_path(session, "/api/v1/models/%s", name);
	return print_model(session, session_ask(session, "PUT", path, body, &error), &error);
}

static int delete (struct session *session, const char *name)
{
	struct error error = { 0 };
	json_t *answer = session_ask(
	    session, "DELETE", session_path(session, "/api/v1/models/%s", name), NULL, &error);
	if (answer)
		printf("%s is removed, with its last slot\n", name);
	int status = answer ? CLI_FINE : session_fail(session, &error);
	json_decref(answer);
	return status;
}

/* How long to wait in milliseconds, and the text of a duration for a query. */
static bool model_read_time(const struct session *session, const char *option, const char *usual,
                            int64_t *ms, char text[40], struct error *error)
{
	const char *said = arguments_value(session->arguments, option);
	bool zero =
	    said && strspn(said, "0") == strlen(said) - 1 && strchr("smh", said[strlen(said) - 1]);
	if (zero)
		*ms = 0;
	else if (!quantity_duration(option, said ? said : usual, ms, error))
		return false;
	snprintf(text, 40, "%lldms", (long long)*ms);
	return true;
}

static void print_lease(const json_t *lease)
{
	const char *id = member_text(lease, "lease_id"), *key = member_text(lease, "key");

	printf("%s: %s serves at %s until %s\n", id, member_text(lease, "slot_id"),
	       member_text(lease, "address"), member_text(lease, "expires_at"));
	if (*key)
		printf("Requests carry the header: Authorization: Bearer %s\n", key);
	printf("Give it back with: gpu-cli models release %s\n", id);
}

/* A place in a slot, to try it out by hand. */
static int lease(struct session *session, const char *name)
{
	struct error error = { 0 };
	char wait[40], length[40];
	int64_t wait_ms, length_ms;
	if (!model_read_time(session, "--wait", "30s", &wait_ms, wait, &error) ||
	    !model_read_time(session, "--for", "10m", &length_ms, length, &error))
		return cli_misused(session->command, "%s", error.text);
	session->client.most_ms = wait_ms + 30000;
	json_t *answer = session_ask(
	    session, "POST",
	    session_path(session, "/api/v1/models/%s/leases?wait=%s&lease=%s", name, wait, length),
	    NULL, &error);
	if (!answer)
		return session_fail(session, &error);
	if (!listing_print_document(session, answer, "lease_id"))
		print_lease(answer);
	json_decref(answer);
	return CLI_FINE;
}

static int model_release(struct session *session, const char *name)
{
	struct error error = { 0 };
	json_t *answer = session_ask(
	    session, "DELETE", session_path(session, "/api/v1/leases/%s", name), NULL, &error);
	if (answer)
		printf("%s is given back\n", name);
	int status = answer ? CLI_FINE : session_fail(session, &error);
	json_decref(answer);
	return status;
}

/* A request that nobody makes: its slot is loaded for it, and stays as an idle one does. */
static int model_load(struct session *session, const char *name)
{
	struct error error = { 0 };
	char wait[40];
	int64_t wait_ms;
	if (!model_read_time(session, "--wait", "10m", &wait_ms, wait, &error))
		return cli_misused(session->command, "%s", error.text);
	session->client.most_ms = wait_ms + 30000;
	json_t *lease = session_ask(
	    session, "POST",
	    session_path(session, "/api/v1/models/%s/leases?wait=%s&lease=10s", name, wait), NULL,
	    &error);
	if (!lease)
		return session_fail(session, &error);
	json_t *released =
	    session_ask(session, "DELETE",
	                session_path(session, "/api/v1/leases/%s", member_text(lease, "lease_id")),
	                NULL, &error);
	/* One that is not given back expires by itself. */
	if (!released)
		fprintf(stderr, "warning: %s: %s\n", member_text(lease, "lease_id"), error.text);
	printf("%s is loaded: %s at %s\n", name, member_text(lease, "slot_id"),
	       member_text(lease, "address"));
	json_decref(released);
	json_decref(lease);
	return CLI_FINE;
}

/* Its replicas stop: when they have no requests, or with --now at once. */
static int model_evict(struct session *session, const char *name)
{
	const char *node = arguments_value(session->arguments, "--node");
	bool now = arguments_has(session->arguments, "--now");
	struct buffer path = { 0 };
	struct error error = { 0 };

	buffer_text(&path, session_path(session, "/api/v1/models/%s/evict?now=", name));
	buffer_text(&path, now ? "true" : "false");
	if (node) {
		buffer_text(&path, "&node=");
		client_escape(&path, node);
	}
	json_t *answer = session_ask(session, "POST", path.data, NULL, &error);
	buffer_free(&path);
	if (!answer)
		return session_fail(session, &error);
	int64_t count = member_integer(answer, "replicas");
	if (!listing_print_document(session, answer, "replicas"))
		printf("%s: %lld replica%s %s\n", name, (long long)count, count == 1 ? "" : "s",
		       now ? "stopping" : "stopping once idle");
	json_decref(answer);
	return CLI_FINE;
}

static int model_logs(struct session *session, const char *name)
{
	const char *tail = arguments_value(session->arguments, "--tail"),
		   *slot = arguments_value(session->arguments, "--slot");
	struct buffer path = { 0 };
	struct error error = { 0 };
	int64_t lines = 0;
	if (tail && !quantity_integer("--tail", tail, 1, 1000000, &lines, &error))
		return cli_misused(session->command, "%s", error.text);
	buffer_text(&path, session_path(session, "/api/v1/models/%s/logs?tail=", name));
	buffer_print(&path, "%lld",
	             (long long)(lines > 0 ? lines * LOGS_LINE_BYTES : INT64_MAX / 2));
	if (slot) {
		buffer_text(&path, "&slot=");
		client_escape(&path, slot);
	}
	int status = logs_show(session, path.data, lines);
	buffer_free(&path);
	return status;
}

static int model_print(struct session *session, const char *name)
{
	struct error error = { 0 };
	json_t *model =
	    session_get(session, session_path(session, "/api/v1/models/%s", name), &error);
	return print_model(session, model, &error);
}

static int run_models(const struct arguments *arguments)
{
	static const struct {
		const char *verb;
		int (*run)(struct session *session, const char *name);
	} verbs[] = {
		{ "create", create },   { "update", update },         { "delete", delete },
		{ "lease", lease },     { "release", model_release }, { "get", model_print },
		{ "logs", model_logs }, { "load", model_load },       { "evict", model_evict },
	};
	/* Arguments of the model's server follow --. */
	size_t count = arguments->operand_count - arguments->after_dashes;
	const char *verb = count > 0 ? arguments->operands[0] : "list";
	int (*chosen)(struct session * session, const char *name) = NULL;
	struct session session;
	int status;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verbs[i].verb, verb) == 0)
			chosen = verbs[i].run;
	bool lists = strcmp(verb, "list") == 0;
	if (chosen ? count != 2 : count > 1)
		return cli_misused(
		    arguments->command,
		    chosen ? "%s needs one name"
			   : "unknown subcommand '%.40s' (create, delete, evict, get, lease, "
			     "list, load, logs, release, update)",
		    verb);
	if (!session_open(&session, arguments, &status))
		return status;
	status = chosen  ? chosen(&session, arguments->operands[1])
	         : lists ? model_list(&session)
	                 : model_print(&session, verb);
	session_close(&session);
	return status;
}

static void slot_id(struct session *session, struct table *table, const json_t *slot)
{
	(void)session;
	table_cell(table, "%s", member_text(slot, "id"));
}

static void slot_model(struct session *session, struct table *table, const json_t *slot)
{
	(void)session;
	table_cell(table, "%s", member_text(slot, "model"));
}

static void slot_status(struct session *session, struct table *table, const json_t *slot)
{
	const char *status = member_text(slot, "status");
	(void)session;
	table_coloured(table, colour_of_state(status), "%s", status);
}

static void slot_node(struct session *session, struct table *table, const json_t *slot)
{
	(void)session;
	table_cell(table, "%s", member_text(slot, "runner_id"));
}

/* 0:20G,1:20G */
static void slot_gpus(struct session *session, struct table *table, const json_t *slot)
{
	struct buffer text = { 0 };
	size_t place;
	json_t *gpu;
	(void)session;
	buffer_text(&text, "");
	json_array_foreach(json_object_get(slot, "gpu_allocation"), place, gpu)
	{
		buffer_print(&text, "%s%lld:", place > 0 ? "," : "",
		             (long long)member_integer(gpu, "index"));
		size_print(&text, member_integer(gpu, "memory_mb"));
	}
	table_cell(table, "%s", text.data);
	buffer_free(&text);
}

static void slot_requests(struct session *session, struct table *table, const json_t *slot)
{
	(void)session;
	table_cell(table, "%lld/%lld", (long long)member_integer(slot, "active_requests"),
	           (long long)member_integer(slot, "max_concurrency"));
}

static void slot_age(struct session *session, struct table *table, const json_t *slot)
{
	(void)session;
	listing_since(table, member_moment(slot, "created"));
}

static void slot_idle(struct session *session, struct table *table, const json_t *slot)
{
	(void)session;
	listing_since(table, member_moment(slot, "last_used_at"));
}

static void slot_address(struct session *session, struct table *table, const json_t *slot)
{
	(void)session;
	table_cell(table, "%s", member_text(slot, "address"));
}

static void slot_runtime(struct session *session, struct table *table, const json_t *slot)
{
	(void)session;
	table_cell(table, "%s", member_text(slot, "runtime"));
}

static const struct column slot_columns[] = {
	COLUMN("SLOT", slot_id),
	COLUMN("MODEL", slot_model, .shrinks = true),
	COLUMN("STATUS", slot_status),
	COLUMN("NODE", slot_node, .shrinks = true),
	COLUMN("GPUS", slot_gpus, .shrinks = true),
	COLUMN("REQUESTS", slot_requests, .right = true),
	COLUMN("AGE", slot_age, .right = true),
	COLUMN("USED", slot_idle, .right = true),
	COLUMN("ADDRESS", slot_address, .shrinks = true, .extra = true),
	COLUMN("RUNTIME", slot_runtime, .extra = true),
};

static int run_slots(const struct arguments *arguments)
{
	struct session session;
	struct error error = { 0 };
	int status;
	if (arguments->operand_count > 0)
		return cli_misused(arguments->command, "unexpected argument '%.80s'",
		                   arguments->operands[0]);
	if (!session_open(&session, arguments, &status))
		return status;
	json_t *slots = session_get(&session, "/api/v1/scheduler/slots", &error);
	if (slots && json_array_size(slots) == 0 && session.form == FORM_TABLE)
		fputs("nothing is loaded\n", stderr);
	else if (slots)
		listing_print(&session, slots, COLUMNS(slot_columns), "id");
	status = slots ? CLI_FINE : session_fail(&session, &error);
	json_decref(slots);
	session_close(&session);
	return status;
}

const struct cli_command models_command = {
	.name = "models",
	.arguments = "[SUBCOMMAND] [NAME] [OPTION...] [-- ARGUMENT...]",
	.summary = "models that are served from slots",
	.details =
	    "list            all models (the default)\n"
	    "get NAME        one model\n"
	    "create NAME     create a model; --from FILE estimates its memory\n"
	    "update NAME     change the given settings\n"
	    "delete NAME     delete it, with its slots\n"
	    "load NAME       load it, unless it is, and wait until it is ready\n"
	    "evict NAME      stop its replicas, or those on --node, when they have no\n"
	    "                requests, or with --now at once\n"
	    "lease NAME      take a lease for a test; prints the slot's address\n"
	    "release LEASE   return a lease\n"
	    "logs NAME       what its server has written, the last one that there is or was\n"
	    "'gpu-cli why model-3' says what a model waits for.\n",
	.examples = "models create llama --from llama-8b.gguf --context-length 8k --min 1\n"
		    "models create m7b --runtime vllm --gpu-memory 20G --path mistralai/7B\n"
		    "models load llama --wait 5m\n"
		    "models lease llama --wait 2m\n",
	.fields = &model_resource,
	.options = options,
	.shows = &model_resource,
	.asks = true,
	.lists = true,
	.operand = COMPLETES_WORDS,
	.words = "list get create update delete load evict lease release logs",
	.run = run_models,
};

const struct cli_command slots_command = {
	.name = "slots",
	.arguments = "",
	.summary = "loaded models: where, in how much memory, how busy",
	.examples = "slots -o wide\n",
	.shows = &slot_resource,
	.asks = true,
	.lists = true,
	.run = run_slots,
};
