/* why_command.c - gpu-cli why: what a job waits for, or where it went, with the arithmetic */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/text/text_width.h"
#include "json/member.h"

static const struct option options[] = {
	OPTION("--trace", NULL, NULL, "how it would be decided about now, step by step"),
	{ 0 },
};

static void print_sentences(const json_t *sentences)
{
	size_t place;
	json_t *sentence;
	json_array_foreach(sentences, place, sentence)
	{
		struct buffer clean = { 0 };
		text_clean(&clean, json_string_value(sentence));
		printf("%s%s\n", place > 0 ? "  " : "", clean.data);
		buffer_free(&clean);
	}
}

static int why_show(struct session *session, const char *job)
{
	struct error error = { 0 };
	bool trace = arguments_has(session->arguments, "--trace");
	bool is_model = strncmp(job, "model-", 6) == 0;
	const char *path = is_model ? session_path(session, "/api/v1/models/%s/why", job)
	                   : trace  ? session_path(session, "/api/v1/jobs/%s/why?trace=1", job)
	                            : session_path(session, "/api/v1/jobs/%s/why?decision=1", job);
	json_t *answer = session_get(session, path, &error);
	if (!answer)
		return session_fail(session, &error);
	if (!listing_print_document(session, answer, is_model ? "model_id" : "job_id")) {
		print_sentences(json_object_get(answer, "why"));
		/* The arithmetic by which it was placed last. */
		print_sentences(json_object_get(answer, "decision"));
	}
	json_decref(answer);
	return CLI_FINE;
}

static int why_run(const struct arguments *arguments)
{
	struct session session;
	int status;
	if (arguments->operand_count != 1)
		return cli_misused(arguments->command, "missing job id, for example job-12");
	if (!session_open(&session, arguments, &status))
		return status;
	status = why_show(&session, session_job(&session, arguments->operands[0]));
	session_close(&session);
	return status;
}

const struct cli_command why_command = {
	.name = "why",
	.arguments = "JOB [OPTION...]",
	.summary = "why a job waits or is where it is, with the arithmetic",
	.details = "Of a model (model-3): what it has, wants and waits for.\n",
	.examples = "why job-12\n"
		    "why job-12 --trace\n",
	.options = options,
	.asks = true,
	.lists = true,
	.operand = COMPLETES_JOBS,
	.run = why_run,
};
