/* cluster_commands.c - gpu-cli status, nodes and gpus: what there is, and what is on it */
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/text/order.h"
#include "cli/text/quantity.h"
#include "json/member.h"

/* A line such as 'GPUs    16, 12 free'. */
static void cluster_say(const struct session *session, const char *label, struct buffer *text)
{
	(void)session;
	printf("%-12s%s\n", label, text->data);
	buffer_clear(text);
}

static void add_count(struct buffer *text, const json_t *status, const char *key, const char *word)
{
	int64_t count = member_integer(status, key);
	if (count > 0)
		buffer_print(text, "%s%lld %s", text->size > 0 ? ", " : "", (long long)count, word);
}

static void print_status(const struct session *session, const json_t *status, const json_t *health)
{
	struct buffer text = { 0 };
	buffer_print(&text, "%s, %s", session->server, member_text(health, "status"));
	if (*member_text(health, "version"))
		buffer_print(&text, ", version %s", member_text(health, "version"));
	cluster_say(session, "Service", &text);
	buffer_print(&text, "%lld of %lld online",
	             (long long)member_integer(status, "online_nodes"),
	             (long long)member_integer(status, "total_nodes"));
	add_count(&text, status, "draining_nodes", "draining");
	cluster_say(session, "Nodes", &text);
	buffer_print(&text, "%lld, %lld free", (long long)member_integer(status, "total_gpus"),
	             (long long)member_integer(status, "available_gpus"));
	if (member_has(status, "avg_gpu_utilization"))
		buffer_print(&text, ", %.0f%% busy",
		             member_number(status, "avg_gpu_utilization") * 100);
	cluster_say(session, "GPUs", &text);
	size_print(&text, member_integer(status, "reserved_gpu_memory_mb"));
	buffer_text(&text, " of ");
	size_print(&text, member_integer(status, "total_gpu_memory_mb"));
	buffer_text(&text, " reserved");
	if (member_integer(status, "releasing_gpu_memory_mb") > 0) {
		buffer_text(&text, ", ");
		size_print(&text, member_integer(status, "releasing_gpu_memory_mb"));
		buffer_text(&text, " being freed");
	}
	if (member_integer(status, "foreign_gpu_memory_mb") > 0) {
		buffer_text(&text, ", ");
		size_print(&text, member_integer(status, "foreign_gpu_memory_mb"));
		buffer_text(&text, " foreign");
	}
	cluster_say(session, "GPU memory", &text);
	add_count(&text, status, "running_jobs", "running");
	add_count(&text, status, "scheduled_jobs", "starting");
	add_count(&text, status, "pending_jobs", "waiting");
	add_count(&text, status, "preempted_jobs", "preempted");
	add_count(&text, status, "completed_jobs", "completed");
	add_count(&text, status, "failed_jobs", "failed");
	add_count(&text, status, "cancelled_jobs", "cancelled");
	if (text.size == 0)
		buffer_text(&text, "none yet");
	cluster_say(session, "Jobs", &text);
	buffer_free(&text);
}

static int run_status(const struct arguments *arguments)
{
	struct session session;
	struct error error = { 0 };
	int code;
	if (!session_open(&session, arguments, &code))
		return code;
	json_t *health = session_get(&session, "/api/v1/health", &error);
	json_t *status = health ? session_get(&session, "/api/v1/cluster/status", &error) : NULL;
	code = status ? CLI_FINE : session_fail(&session, &error);
	if (status) {
		json_object_set(status, "health", health);
		if (!listing_print_document(&session, status, "total_gpus"))
			print_status(&session, status, health);
	}
	json_decref(status);
	json_decref(health);
	session_close(&session);
	return code;
}

static void node_name(struct session *session, struct table *table, const json_t *node)
{
	(void)session;
	table_cell(table, "%s", member_text(node, "id"));
}

static void node_state(struct session *session, struct table *table, const json_t *node)
{
	const char *state = member_flag(node, "draining") && member_flag(node, "online")
	                        ? "draining"
	                        : member_text(node, "state");
	(void)session;
	table_coloured(table, colour_of_state(state), "%s", state);
}

static void node_gpus(struct session *session, struct table *table, const json_t *node)
{
	(void)session;
	table_cell(table, "%lld", (long long)member_integer(node, "total_gpus"));
}

static void node_free(struct session *session, struct table *table, const json_t *node)
{
	(void)session;
	table_cell(table, "%lld", (long long)member_integer(node, "available_gpus"));
}

static void node_tasks(struct session *session, struct table *table, const json_t *node)
{
	(void)session;
	table_cell(table, "%lld", (long long)member_integer(node, "reservations"));
}

static void node_cpus(struct session *session, struct table *table, const json_t *node)
{
	(void)session;
	table_cell(table, "%g/%g", member_number(node, "used_cpu_cores"),
	           member_number(node, "total_cpu_cores"));
}

static void node_memory(struct session *session, struct table *table, const json_t *node)
{
	struct buffer text = { 0 };
	(void)session;
	size_print(&text, member_integer(node, "used_memory_mb"));
	buffer_text(&text, "/");
	size_print(&text, member_integer(node, "total_memory_mb"));
	table_cell(table, "%s", text.data);
	buffer_free(&text);
}

static void node_place(struct session *session, struct table *table, const json_t *node)
{
	const char *zone = member_text(node, "zone"), *rack = member_text(node, "rack");
	(void)session;
	table_cell(table, "%s%s%s", zone, *zone && *rack ? "/" : "", rack);
}

static void node_labels(struct session *session, struct table *table, const json_t *node)
{
	struct buffer text = { 0 };
	const char *key;
	json_t *value;
	(void)session;
	buffer_text(&text, "");
	json_object_foreach(json_object_get(node, "labels"), key, value)
	{
		buffer_print(&text, "%s%s=%s", text.size > 0 ? "," : "", key,
		             json_string_value(value));
	}
	table_cell(table, "%s", text.data);
	buffer_free(&text);
}

static void node_reason(struct session *session, struct table *table, const json_t *node)
{
	(void)session;
	table_cell(table, "%s", member_text(node, "drain_reason"));
}

static const struct column node_columns[] = {
	COLUMN("NODE", node_name, .shrinks = true),
	COLUMN("STATE", node_state),
	COLUMN("GPUS", node_gpus, .right = true),
	COLUMN("FREE", node_free, .right = true),
	COLUMN("TASKS", node_tasks, .right = true),
	COLUMN("CPUS", node_cpus, .right = true),
	COLUMN("MEMORY", node_memory, .right = true),
	COLUMN("PLACE", node_place, .extra = true, .shrinks = true),
	COLUMN("LABELS", node_labels, .extra = true, .shrinks = true),
	COLUMN("REASON", node_reason, .extra = true, .shrinks = true),
};

static json_t *load_nodes(struct session *session, struct error *error)
{
	json_t *nodes = session_list(session, "/api/v1/nodes", "", "nodes", 1000000, error);
	if (nodes)
		order_items(nodes, order_by_node);
	return nodes;
}

const struct listing_source nodes_source = {
	.title = "NODES",
	.name_key = "id",
	.resource = &node_resource,
	.load = load_nodes,
	.columns = node_columns,
	.column_count = sizeof(node_columns) / sizeof(node_columns[0]),
};

/* A list of things, all of it, or those that are named. */
static int print_list(const struct arguments *arguments, const char *path, const char *query,
                      const char *key, const struct column *columns, size_t count,
                      const char *name_key)
{
	struct session session;
	struct error error = { 0 };
	int status;
	if (!session_open(&session, arguments, &status))
		return status;
	json_t *items = session_list(&session, path, query, key, 1000000, &error);
	order_items(items, order_by_node);
	/* A node without GPUs and one that is not there both give an empty list. */
	const char *node = arguments->operand_count > 0 ? arguments->operands[0] : NULL;
	bool known = true;
	if (items && json_array_size(items) == 0 && node) {
		json_t *found =
		    session_get(&session, session_path(&session, "/api/v1/nodes/%s", node), &error);
		known = found != NULL;
		json_decref(found);
	}
	if (items && known)
		listing_print(&session, items, columns, count, name_key);
	status = items && known ? CLI_FINE : session_fail(&session, &error);
	json_decref(items);
	session_close(&session);
	return status;
}

/* One node as it is, with its GPUs. */
static int print_node(const struct arguments *arguments, const char *name)
{
	struct session session;
	struct error error = { 0 };
	int status;
	if (!session_open(&session, arguments, &status))
		return status;
	json_t *node =
	    session_get(&session, session_path(&session, "/api/v1/nodes/%s", name), &error);
	if (node && !listing_print_document(&session, node, "id")) {
		json_t *list = json_pack("[O]", node);
		listing_print(&session, list, COLUMNS(node_columns), "id");
		json_decref(list);
	}
	status = node ? CLI_FINE : session_fail(&session, &error);
	json_decref(node);
	session_close(&session);
	return status;
}

/* nodes dead NODE..., nodes remove NODE... */
static int change_nodes(const struct arguments *arguments, bool dead)
{
	struct session session;
	int status;
	if (arguments->operand_count < 2)
		return cli_misused(arguments->command, "which node? Give names");
	if (!session_open(&session, arguments, &status))
		return status;
	status = CLI_FINE;
	for (size_t i = 1; i < arguments->operand_count && status == CLI_FINE; i++) {
		const char *name = arguments->operands[i];
		struct error error = { 0 };
		json_t *answer = session_ask(
		    &session, dead ? "POST" : "DELETE",
		    session_path(&session, dead ? "/api/v1/nodes/%s/dead" : "/api/v1/nodes/%s",
		                 name),
		    NULL, &error);
		if (answer)
			printf(dead ? "%s is declared dead: its jobs are queued again\n"
			            : "%s is removed\n",
			       name);
		else
			status = session_fail(&session, &error);
		json_decref(answer);
	}
	session_close(&session);
	return status;
}

static int run_nodes(const struct arguments *arguments)
{
	const char *verb = arguments->operand_count > 0 ? arguments->operands[0] : "";
	if (strcmp(verb, "dead") == 0 || strcmp(verb, "remove") == 0)
		return change_nodes(arguments, verb[0] == 'd');
	if (arguments->operand_count > 1)
		return cli_misused(arguments->command, "unexpected argument '%.80s'",
		                   arguments->operands[1]);
	if (arguments->operand_count == 1)
		return print_node(arguments, arguments->operands[0]);
	return print_list(arguments, "/api/v1/nodes", "", "nodes", COLUMNS(node_columns), "id");
}

static void gpu_node(struct session *session, struct table *table, const json_t *gpu)
{
	(void)session;
	table_cell(table, "%s", member_text(gpu, "node"));
}

static void gpu_index(struct session *session, struct table *table, const json_t *gpu)
{
	(void)session;
	table_cell(table, "%lld", (long long)member_integer(gpu, "index"));
}

static void gpu_model(struct session *session, struct table *table, const json_t *gpu)
{
	(void)session;
	table_cell(table, "%s", member_text(gpu, "model"));
}

static void gpu_total(struct session *session, struct table *table, const json_t *gpu)
{
	(void)session;
	listing_memory(table, member_integer(gpu, "total_memory"));
}

static void gpu_free(struct session *session, struct table *table, const json_t *gpu)
{
	(void)session;
	listing_memory(table, member_integer(gpu, "free_memory"));
}

static void gpu_reserved(struct session *session, struct table *table, const json_t *gpu)
{
	(void)session;
	listing_memory(table, member_integer(gpu, "reserved_memory"));
}

static void gpu_releasing(struct session *session, struct table *table, const json_t *gpu)
{
	(void)session;
	listing_memory(table, member_integer(gpu, "releasing_memory"));
}

static void gpu_foreign(struct session *session, struct table *table, const json_t *gpu)
{
	(void)session;
	listing_memory(table, member_integer(gpu, "foreign_memory"));
}

static void gpu_unexplained(struct session *session, struct table *table, const json_t *gpu)
{
	int64_t mib = member_integer(gpu, "unexplained_memory");

	if (mib > 0)
		listing_memory(table, mib);
	else
		table_cell(table, "%s", "-");
	(void)session;
}

static void gpu_busy(struct session *session, struct table *table, const json_t *gpu)
{
	(void)session;
	if (member_has(gpu, "utilization"))
		table_cell(table, "%.0f%%", member_number(gpu, "utilization") * 100);
	else
		table_cell(table, "%s", "-");
}

static void gpu_heat(struct session *session, struct table *table, const json_t *gpu)
{
	(void)session;
	if (member_has(gpu, "temperature_c"))
		table_coloured(table, member_flag(gpu, "hot") ? COLOUR_RED : COLOUR_NONE, "%lld C",
		               (long long)member_integer(gpu, "temperature_c"));
	else
		table_cell(table, "%s", "-");
}

static void gpu_power(struct session *session, struct table *table, const json_t *gpu)
{
	(void)session;
	table_cell(table, "%.0f W", member_number(gpu, "power_watts"));
}

/* What is to be said about it in a word or two; nothing where all is well. */
static void gpu_note(struct session *session, struct table *table, const json_t *gpu)
{
	const char *note = !member_flag(gpu, "present")    ? "gone"
	                   : !member_flag(gpu, "healthy")  ? "unhealthy"
	                   : member_flag(gpu, "over")      ? "over"
	                   : member_flag(gpu, "hot")       ? "hot"
	                   : member_flag(gpu, "mig_mode")  ? "MIG"
	                   : member_flag(gpu, "available") ? "free"
	                   : member_flag(gpu, "whole")     ? "whole"
	                                                   : "";
	bool bad = strcmp(note, "unhealthy") == 0 || strcmp(note, "over") == 0 ||
	           strcmp(note, "hot") == 0 || strcmp(note, "gone") == 0;
	(void)session;
	table_coloured(table, bad ? COLOUR_RED : COLOUR_NONE, "%s", note);
}

static void cluster_gpu_uuid(struct session *session, struct table *table, const json_t *gpu)
{
	(void)session;
	table_cell(table, "%s", member_text(gpu, "uuid"));
}

static const struct column gpu_columns[] = {
	COLUMN("NODE", gpu_node, .shrinks = true),
	COLUMN("GPU", gpu_index, .right = true),
	COLUMN("MEMORY", gpu_total, .right = true),
	COLUMN("RESERVED", gpu_reserved, .right = true),
	COLUMN("FREEING", gpu_releasing, .right = true),
	COLUMN("FOREIGN", gpu_foreign, .right = true),
	COLUMN("UNEXPLAINED", gpu_unexplained, .right = true),
	COLUMN("FREE", gpu_free, .right = true),
	COLUMN("BUSY", gpu_busy, .right = true),
	COLUMN("TEMP", gpu_heat, .right = true),
	COLUMN("NOTE", gpu_note),
	COLUMN("MODEL", gpu_model, .shrinks = true, .extra = true),
	COLUMN("POWER", gpu_power, .right = true, .extra = true),
	COLUMN("UUID", cluster_gpu_uuid, .extra = true),
};

static int run_gpus(const struct arguments *arguments)
{
	struct buffer query = { 0 };
	if (arguments->operand_count > 1)
		return cli_misused(arguments->command, "unexpected argument '%.80s'",
		                   arguments->operands[1]);
	buffer_text(&query, "");
	if (arguments->operand_count == 1) {
		buffer_text(&query, "node=");
		client_escape(&query, arguments->operands[0]);
	}
	int status =
	    print_list(arguments, "/api/v1/gpus", query.data, "gpus", COLUMNS(gpu_columns), "uuid");
	buffer_free(&query);
	return status;
}

const struct cli_command status_command = {
	.name = "status",
	.arguments = "",
	.summary = "the cluster in a few lines",
	.examples = "status\n"
		    "status -o json\n",
	.asks = true,
	.lists = true,
	.run = run_status,
};

const struct cli_command nodes_command = {
	.name = "nodes",
	.arguments = "[NODE] | dead NODE... | remove NODE...",
	.summary = "the nodes, and what they have",
	.details = "dead NODE       declare a lost node dead: its jobs are queued again. Only if\n"
		   "                nothing runs there any more: otherwise they run twice\n"
		   "remove NODE     forget a node that is gone\n",
	.examples = "nodes\n"
		    "nodes alpha -o yaml\n"
		    "nodes dead alpha\n",
	.shows = &node_resource,
	.asks = true,
	.lists = true,
	.operand = COMPLETES_NODES,
	.run = run_nodes,
};

const struct cli_command gpus_command = {
	.name = "gpus",
	.arguments = "[NODE]",
	.summary = "every GPU: memory reserved, being freed, foreign and free",
	.examples = "gpus\n"
		    "gpus alpha -o wide\n",
	.shows = &gpu_resource,
	.asks = true,
	.lists = true,
	.operand = COMPLETES_NODES,
	.run = run_gpus,
};
