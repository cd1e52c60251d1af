/* why_command.c - gpu-cli why: what a job waits for, or where it went, with the arithmetic */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/text/quantity.h"
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
		quantity_print_sentence(&clean, json_string_value(sentence));
		printf("%s%s\n", place > 0 ? "  " : "", clean.data);
		buffer_free(&clean);
	}
}

/* The id of the newest job of the pod 'NAMESPACE/NAME'; NULL with a reason. */
static const char *job_of_pod(struct session *session, const char *pod, struct error *error)
{
	struct buffer label = { 0 };
	buffer_print(&label, "pod/%s=true", pod);
	const char *path = session_path(session, "/api/v1/jobs?limit=1&label=%s", label.data);
	buffer_free(&label);
	json_t *answer = session_get(session, path, error);
	if (!answer)
		return NULL;
	const json_t *job = json_array_get(json_object_get(answer, "jobs"), 0);
	const char *id = arena_string(&session->arena, member_text(job, "id"));
	json_decref(answer);
	if (*id)
		return id;
	error_set(
	    error, ERROR_NOT_FOUND,
	    "no job is known of pod %.120s: write pod/NAMESPACE/NAME. Its events may say more",
	    pod);
	return NULL;
}

static int why_show(struct session *session, const char *job)
{
	struct error error = { 0 };
	bool trace = arguments_has(session->arguments, "--trace");
	bool is_model = strncmp(job, "model-", 6) == 0;
	if (strncmp(job, "pod/", 4) == 0 && !(job = job_of_pod(session, job + 4, &error)))
		return session_fail(session, &error);
	const char *path = is_model ? session_path(session, "/api/v1/models/%s/why", job)
	                   : trace  ? session_path(session, "/api/v1/jobs/%s/why?trace=1", job)
	                            : session_path(session, "/api/v1/jobs/%s/why?decision=1", job);
	json_t *answer = session_get(session, path, &error);
	if (!answer && error.code == ERROR_NOT_FOUND && strncmp(job, "job-", 4) != 0 && !is_model) {
		/* Models are known by their names too. */
		struct error unused = { 0 };
		is_model = true;
		answer = session_get(session, session_path(session, "/api/v1/models/%s/why", job),
		                     &unused);
	}
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
	.details =
	    "Of a model (model-3): what it has, wants and waits for. Of a pod of Kubernetes\n"
	    "(pod/NAMESPACE/NAME): of its job.\n",
	.examples = "why job-12\n"
		    "why job-12 --trace\n"
		    "why pod/default/train\n",
	.options = options,
	.asks = true,
	.lists = true,
	.operand = COMPLETES_JOBS,
	.run = why_run,
};
