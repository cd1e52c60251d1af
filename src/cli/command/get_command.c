/* get_command.c - gpu-cli get: all about a job */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/job/job_page.h"
#include "cli/listing.h"

/* The member of an answer to a question about the job; NULL where there is no answer. */
static json_t *ask_about(struct session *session, const char *job, const char *what,
                         const char *key)
{
	struct error unused = { 0 };
	json_t *answer =
	    session_get(session, session_path(session, "/api/v1/jobs/%s/%s", job, what), &unused);
	json_t *member = json_incref(json_object_get(answer, key));
	json_decref(answer);
	return member;
}

static int get_show(struct session *session, const char *id)
{
	struct error error = { 0 };
	json_t *job = session_get(session, session_path(session, "/api/v1/jobs/%s", id), &error);
	if (!job)
		return session_fail(session, &error);
	if (!listing_print_document(session, job, "id")) {
		json_t *events = ask_about(session, id, "events", "events");
		json_t *why = ask_about(session, id, "why", "why");
		json_t *runs = ask_about(session, id, "runs", "runs");
		job_page_print(session, job, events, why, runs);
		json_decref(runs);
		json_decref(events);
		json_decref(why);
	}
	json_decref(job);
	return CLI_FINE;
}

static int get_run(const struct arguments *arguments)
{
	struct session session;
	int status;
	if (arguments->operand_count == 0)
		return cli_misused(arguments->command, "which job? Give its id, such as job-12");
	if (!session_open(&session, arguments, &status))
		return status;
	status = CLI_FINE;
	for (size_t i = 0; i < arguments->operand_count; i++) {
		if (i > 0 && session.form == FORM_TABLE)
			putchar('\n');
		int one = get_show(&session, session_job(&session, arguments->operands[i]));
		status = status == CLI_FINE ? one : status;
	}
	session_close(&session);
	return status;
}

const struct cli_command get_command = {
	.name = "get",
	.arguments = "JOB...",
	.summary = "all about a job: state, placement, history, why it waits",
	.examples = "get job-12\n"
		    "get 12 -o json\n",
	.asks = true,
	.lists = true,
	.operand = COMPLETES_JOBS,
	.run = get_run,
};
