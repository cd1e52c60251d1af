/* list_command.c - gpu-cli list: jobs, the newest first */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/job/job_choice.h"
#include "cli/job/job_columns.h"
#include "cli/text/quantity.h"
#include "json/member.h"

enum { WATCH_SECONDS = 2 };

static const struct option options[] = {
	OPTION("--state", "-s", "STATE,...",
	       "pending, scheduled, running, completed, failed, cancelled, preempted",
	       .completes = COMPLETES_WORDS,
	       .words = "pending scheduled running completed failed cancelled preempted"),
	OPTION("--name", "-n", "NAME", "those whose name begins so"),
	OPTION("--label", "-l", "NAME=VALUE", "those with this label"),
	OPTION("--mine", NULL, NULL, "those that you submitted"),
	OPTION("--user", NULL, "USER", "those that USER submitted"),
	OPTION("--array", NULL, "JOB", "those of the array that JOB belongs to",
	       .completes = COMPLETES_JOBS),
	OPTION("--since", NULL, "TIME", "those submitted since: 2h, or 2030-01-31T12:00:00Z"),
	OPTION("--watch", "-w", NULL, "again every 2 seconds, until Ctrl-C"),
	OPTION("--sort", NULL, "BY", "submitted_at (oldest first) or priority",
	       .completes = COMPLETES_WORDS, .words = "submitted_at priority"),
	OPTION("--limit", NULL, "N", "the most to show (default 50)"),
	OPTION("--all", "-a", NULL, "all of them"),
	{ 0 },
};

/* How long it ran, or has run so far. */
static void column_time(struct session *session, struct table *table, const json_t *job)
{
	int64_t start = member_moment(job, "started_at"), end = member_moment(job, "completed_at");
	const char *state = member_text(job, "state");
	(void)session;
	/* One that was stopped and waits again does not run. */
	if (end < 0 && strcmp(state, "running") != 0)
		start = -1;
	listing_duration(table, start < 0 ? -1 : (end < 0 ? clock_unix_ms() : end) - start);
}

static void column_code(struct session *session, struct table *table, const json_t *job)
{
	(void)session;
	if (member_has(job, "exit_code"))
		table_cell(table, "%lld", (long long)member_integer(job, "exit_code"));
	else
		table_cell(table, "%s", "");
}

static void column_message(struct session *session, struct table *table, const json_t *job)
{
	(void)session;
	table_cell(table, "%s", member_text(job, "message"));
}

static const struct column columns[] = {
	COLUMN("JOB", job_column_id),
	COLUMN("NAME", job_column_name, .shrinks = true),
	COLUMN("TENANT", job_column_tenant, .shrinks = true),
	COLUMN("STATE", job_column_state),
	COLUMN("GPUS", job_column_gpus, .right = true),
	COLUMN("PRIORITY", job_column_priority, .right = true, .extra = true),
	COLUMN("AGE", job_column_submitted, .right = true),
	COLUMN("TIME", column_time, .right = true),
	COLUMN("NODE", job_column_node, .shrinks = true),
	COLUMN("CODE", column_code, .right = true, .extra = true),
	COLUMN("MESSAGE", column_message, .shrinks = true, .extra = true),
	COLUMN("COMMAND", job_column_command, .shrinks = true, .extra = true),
};

static int print_jobs(struct session *session, int64_t limit)
{
	struct error error = { 0 };
	json_t *jobs = job_choice_list(session, NULL, false, (size_t)limit + 1, &error);
	if (!jobs)
		return session_fail(session, &error);
	bool more = json_array_size(jobs) > (size_t)limit;
	if (more)
		json_array_remove(jobs, (size_t)limit);
	if (json_array_size(jobs) == 0 && session->form == FORM_TABLE)
		fputs("no jobs\n", stderr);
	else
		listing_print(session, jobs, COLUMNS(columns), "id");
	if (more)
		fprintf(stderr, "there are more jobs: use --all, or --limit N\n");
	json_decref(jobs);
	return CLI_FINE;
}

static int list_show(struct session *session, int64_t limit)
{
	int status = print_jobs(session, limit);
	while (arguments_has(session->arguments, "--watch") && status == CLI_FINE &&
	       !ferror(stdout)) {
		fflush(stdout);
		sleep(WATCH_SECONDS);
		if (session->terminal.is_terminal)
			fputs("\033[H\033[J", stdout);
		status = print_jobs(session, limit);
	}
	return status;
}

static int list_run(const struct arguments *arguments)
{
	return listing_run(arguments, arguments_has(arguments, "--all") ? LISTING_MAX : 50,
	                   " ('gpu-cli get JOB' shows one)", list_show);
}

const struct cli_command list_command = {
	.name = "list",
	.arguments = "[OPTION...]",
	.summary = "list jobs, the newest first",
	.examples = "list\n"
		    "list --state running,pending -o wide\n"
		    "list --mine --since 1h --watch\n"
		    "list --label sweep=3 -o name\n"
		    "list --columns id,name,working_directory,labels\n",
	.options = options,
	.shows = &job_resource,
	.asks = true,
	.lists = true,
	.run = list_run,
};
