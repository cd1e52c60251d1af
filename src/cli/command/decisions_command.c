/* decisions_command.c - gpu-cli decisions: what was decided, and by which arithmetic */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/text/quantity.h"
#include "json/member.h"

static const struct option options[] = {
	OPTION("--job", "-j", "JOB", "about this one", .completes = COMPLETES_JOBS),
	OPTION("--node", NULL, "NODE", "that chose GPUs of this one", .completes = COMPLETES_NODES),
	OPTION("--model", NULL, "MODEL", "about this model", .completes = COMPLETES_MODELS),
	OPTION("--type", NULL, "TYPE",
	       "start, claim, reclaim, preempt, move, wait, promise, lapsed, gang, grow, evict, "
	       "evicted, load, unload, adopt, fail, share, suspended, resume, "
	       "close, reopen, awaited, sleep or wake",
	       .completes = COMPLETES_WORDS,
	       .words = "start claim reclaim preempt move wait promise lapsed gang grow evict "
	                "evicted load unload adopt fail share suspended resume close reopen "
	                "awaited sleep wake"),
	OPTION("--limit", NULL, "N", "the most to show (default 20)"),
	OPTION("--short", NULL, NULL, "a line for each, without the arithmetic"),
	{ 0 },
};

static void column_id(struct session *session, struct table *table, const json_t *decision)
{
	(void)session;
	table_cell(table, "%lld", (long long)member_integer(decision, "id"));
}

static void column_time(struct session *session, struct table *table, const json_t *decision)
{
	struct buffer text = { 0 };
	(void)session;
	quantity_print_moment(&text, member_moment(decision, "time"));
	table_cell(table, "%s", text.data);
	buffer_free(&text);
}

static void column_type(struct session *session, struct table *table, const json_t *decision)
{
	(void)session;
	table_cell(table, "%s", member_text(decision, "type"));
}

static void column_about(struct session *session, struct table *table, const json_t *decision)
{
	const char *job = member_text(decision, "job_id"), *slot = member_text(decision, "slot_id"),
		   *model = member_text(decision, "model");
	(void)session;
	table_cell(table, "%s", *job ? job : *slot ? slot : model);
}

static void column_name(struct session *session, struct table *table, const json_t *decision)
{
	(void)session;
	if (member_has(decision, "array_index"))
		table_cell(table, "%s[%lld]", member_text(decision, "name"),
		           (long long)member_integer(decision, "array_index"));
	else
		table_cell(table, "%s", member_text(decision, "name"));
}

static void column_node(struct session *session, struct table *table, const json_t *decision)
{
	(void)session;
	table_cell(table, "%s", member_text(decision, "runner_id"));
}

static void column_gpus(struct session *session, struct table *table, const json_t *decision)
{
	(void)session;
	table_cell(table, "%zu", json_array_size(json_object_get(decision, "gpus")));
}

static void column_message(struct session *session, struct table *table, const json_t *decision)
{
	const json_t *lines = json_object_get(decision, "explanation");
	const char *message = member_text(decision, "message");
	size_t count = json_array_size(lines);
	const char *first = json_string_value(json_array_get(lines, count > 1 ? 1 : 0));
	struct buffer text = { 0 };
	(void)session;
	buffer_text(&text, "");
	quantity_print_sentence(&text, *message ? message : first);
	table_cell(table, "%s", text.data);
	buffer_free(&text);
}

static const struct column columns[] = {
	COLUMN("#", column_id, .right = true),
	COLUMN("TIME", column_time),
	COLUMN("TYPE", column_type),
	COLUMN("ABOUT", column_about),
	COLUMN("NAME", column_name, .shrinks = true),
	COLUMN("NODE", column_node, .shrinks = true),
	COLUMN("GPUS", column_gpus, .right = true),
	COLUMN("WHY", column_message, .shrinks = true),
};

static void print_explained(const json_t *decisions)
{
	size_t place, line;
	json_t *decision, *sentence;
	json_array_foreach(decisions, place, decision)
	{
		json_array_foreach(json_object_get(decision, "explanation"), line, sentence)
		{
			struct buffer clean = { 0 };
			quantity_print_sentence(&clean, json_string_value(sentence));
			printf("%s%s\n", line > 0 ? "  " : "", clean.data);
			buffer_free(&clean);
		}
	}
}

static void add_query(const struct arguments *arguments, struct buffer *query, const char *option,
                      const char *key)
{
	const char *value = arguments_value(arguments, option);
	if (!value)
		return;
	buffer_print(query, "&%s=", key);
	client_escape(query, value);
}

static int decisions_show(struct session *session, int64_t limit)
{
	const struct arguments *arguments = session->arguments;
	struct error error = { 0 };
	struct buffer query = { 0 };
	const char *job = arguments_value(arguments, "--job");
	buffer_text(&query, "explain=1");
	if (job) {
		buffer_text(&query, "&job=");
		client_escape(&query, session_job(session, job));
	}
	add_query(arguments, &query, "--node", "node");
	add_query(arguments, &query, "--model", "model");
	add_query(arguments, &query, "--type", "type");
	json_t *decisions = session_list(session, "/api/v1/scheduler/decisions", query.data, NULL,
	                                 (size_t)limit, &error);
	buffer_free(&query);
	if (!decisions)
		return session_fail(session, &error);
	bool explained = session->form == FORM_TABLE && !arguments_has(arguments, "--short");
	if (json_array_size(decisions) == 0 && session->form == FORM_TABLE)
		fputs("no decisions\n", stderr);
	else if (explained)
		print_explained(decisions);
	else
		listing_print(session, decisions, COLUMNS(columns), "id");
	json_decref(decisions);
	return CLI_FINE;
}

static int decisions_run(const struct arguments *arguments)
{
	return listing_run(arguments, 20, " (--job JOB chooses)", decisions_show);
}

const struct cli_command decisions_command = {
	.name = "decisions",
	.arguments = "[OPTION...]",
	.summary = "what was decided, the newest first, with the arithmetic",
	.examples = "decisions --job job-12\n"
		    "decisions --type preempt --limit 5\n"
		    "decisions --short\n",
	.options = options,
	.shows = &decision_resource,
	.asks = true,
	.lists = true,
	.run = decisions_run,
};
