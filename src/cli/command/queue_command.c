/* queue_command.c - gpu-cli queue: what waits, when it is expected to start, and why it waits */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/job/job_choice.h"
#include "cli/job/job_columns.h"
#include "cli/text/order.h"
#include "cli/text/quantity.h"
#include "json/member.h"

static const struct option options[] = {
	OPTION("--limit", NULL, "N", "the most to show (default 100)"),
	OPTION("--mine", NULL, NULL, "those that you submitted"),
	OPTION("--user", NULL, "USER", "those that USER submitted"),
	OPTION("--no-reasons", NULL, NULL, "without asking why each of them waits"),
	{ 0 },
};

/* The most jobs whose reason is fetched, each by its own request. */
enum { REASONS_MAX = 100 };

static void column_place(struct session *session, struct table *table, const json_t *job)
{
	(void)session;
	if (member_has(job, "queue_position"))
		table_cell(table, "%lld", (long long)member_integer(job, "queue_position"));
	else
		table_cell(table, "%s", "-");
}

static void column_start(struct session *session, struct table *table, const json_t *job)
{
	struct buffer text = { 0 };
	(void)session;
	buffer_text(&text, "");
	if (member_has(job, "estimated_start"))
		quantity_print_moment(&text, member_moment(job, "estimated_start"));
	else
		buffer_text(&text, member_flag(job, "held") ? "when released" : "-");
	table_cell(table, "%s", text.data);
	buffer_free(&text);
}

static void column_reason(struct session *session, struct table *table, const json_t *job)
{
	struct buffer text = { 0 };
	(void)session;
	buffer_text(&text, "");
	quantity_print_sentence(&text, member_text(job, "reason"));
	table_cell(table, "%s", text.data);
	buffer_free(&text);
}

static const struct column columns[] = {
	COLUMN("#", column_place, .right = true),
	COLUMN("JOB", job_column_id),
	COLUMN("NAME", job_column_name, .shrinks = true),
	COLUMN("TENANT", job_column_tenant, .shrinks = true),
	COLUMN("PRIORITY", job_column_priority, .right = true, .extra = true),
	COLUMN("GPUS", job_column_gpus, .right = true),
	COLUMN("WAITS", job_column_submitted, .right = true),
	COLUMN("START", column_start),
	COLUMN("REASON", column_reason, .shrinks = true),
};

/* Why it waits, without what says again that it does: 'job-2 waits: ...'. */
static void add_reason(struct session *session, json_t *job)
{
	struct error unused = { 0 };
	json_t *answer = session_get(
	    session, session_path(session, "/api/v1/jobs/%s/why", member_text(job, "id")), &unused);
	const char *reason = json_string_value(json_array_get(json_object_get(answer, "why"), 0));
	const char *waits = reason ? strstr(reason, " waits") : NULL;
	if (waits)
		reason = waits + strlen(" waits") + strspn(waits + strlen(" waits"), ": ");
	if (reason)
		json_object_set_new(job, "reason", json_string(reason));
	json_decref(answer);
}

/* Only those of a user, in the order of the queue. */
static json_t *only_of_user(json_t *jobs, const char *user, size_t most)
{
	json_t *own = json_array(), *job;
	size_t place;
	json_array_foreach(jobs, place, job)
	{
		if (strcmp(member_text(job, "user"), user) == 0 && json_array_size(own) < most)
			json_array_append(own, job);
	}
	json_decref(jobs);
	return own;
}

/* Up to `most` of them, in the order of the queue. */
static json_t *load_queue(struct session *session, size_t most, struct error *error)
{
	struct buffer query = { 0 };
	buffer_text(&query, "");
	if (session->only) {
		buffer_text(&query, "tenant_id=");
		client_escape(&query, session->only);
	}
	json_t *jobs =
	    session_list(session, "/api/v1/scheduler/queue", query.data, NULL, most, error);
	buffer_free(&query);
	if (jobs)
		order_items(jobs, order_by_position);
	return jobs;
}

/* For top: with the service's reasons, which it gives for the first of them in one answer. */
static json_t *load_with_reasons(struct session *session, struct error *error)
{
	const char *path = "/api/v1/scheduler/queue?limit=1000&reasons=1";
	if (session->only)
		path = session_path(session,
		                    "/api/v1/scheduler/queue?limit=1000&reasons=1"
		                    "&tenant_id=%s",
		                    session->only);
	json_t *jobs = session_get(session, path, error);
	if (jobs)
		order_items(jobs, order_by_position);
	return jobs;
}

const struct listing_source queue_source = {
	.title = "QUEUE",
	.name_key = "id",
	.resource = &job_resource,
	.load = load_with_reasons,
	.columns = columns,
	.column_count = sizeof(columns) / sizeof(columns[0]),
};

static int queue_show(struct session *session, int64_t limit)
{
	struct error error = { 0 };
	const char *user;
	size_t place;
	json_t *job;
	if (!job_choice_user(session, &user, &error))
		return session_fail(session, &error);
	json_t *jobs = load_queue(session, user ? LISTING_MAX : (size_t)limit, &error);
	if (!jobs)
		return session_fail(session, &error);
	if (user)
		jobs = only_of_user(jobs, user, (size_t)limit);
	json_array_foreach(jobs, place, job)
	{
		if (place < REASONS_MAX && session->form != FORM_NAME &&
		    !arguments_has(session->arguments, "--no-reasons"))
			add_reason(session, job);
	}
	if (json_array_size(jobs) == 0 && session->form == FORM_TABLE)
		fputs("no jobs waiting\n", stderr);
	else
		listing_print(session, jobs, COLUMNS(columns), "id");
	json_decref(jobs);
	return CLI_FINE;
}

static int queue_run(const struct arguments *arguments)
{
	return listing_run(arguments, 100, "", queue_show);
}

const struct cli_command queue_command = {
	.name = "queue",
	.arguments = "[OPTION...]",
	.summary = "jobs that wait: expected starts, and reasons",
	.details =
	    "In the order that they are looked at; those that are held, or wait for others\n"
	    "of their array or for other jobs, come last. A start is expected from what runs\n"
	    "now and how long that is thought to take; where nothing can be said there is a\n"
	    "dash.\n",
	.examples = "queue\n"
		    "queue --tenant-id physics -o json\n",
	.options = options,
	.shows = &job_resource,
	.asks = true,
	.lists = true,
	.run = queue_run,
};
