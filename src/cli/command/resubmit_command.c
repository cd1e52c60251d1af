/* resubmit_command.c - gpu-cli resubmit and clone: a job again, or as a file to change */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/command/submit.h"
#include "cli/commands.h"
#include "cli/job/job_request.h"
#include "cli/listing.h"
#include "cli/text/quantity.h"
#include "cli/text/yaml_text.h"
#include "json/member.h"

/* What belongs to the old job alone. */
static bool is_of_the_old_one(const struct resource_field *field, const json_t *value)
{
	static const char *const names[] = { "idempotency_key", "user",           "depends_on",
		                             "check",           "standard_input", NULL };
	for (const char *const *name = names; *name; name++)
		if (strcmp(*name, field->name) == 0)
			return true;
	int64_t moment = field->kind == VALUE_TIME ? quantity_moment(json_string_value(value)) : 0;
	return field->kind == VALUE_TIME && moment <= clock_unix_ms();
}

/* The request that would make the job again (json_decref). */
static json_t *request_of(const json_t *job)
{
	json_t *request = json_object();
	const char *sharing = member_text(job, "gpu_sharing");
	for (int i = 0; i < job_resource.field_count; i++) {
		const struct resource_field *field = &job_resource.fields[i];
		json_t *value = json_object_get(job, field->name);
		if (!field_is_settable(field) || field->hidden || !value || json_is_null(value) ||
		    is_of_the_old_one(field, value))
			continue;
		if (field->shown_as) {
			fprintf(stderr, "%s of %s is sealed and is not copied\n", field->name,
			        member_text(job, "id"));
			continue;
		}
		json_object_set(request, field->name, value);
	}
	/* A part of a GPU is asked for by its size alone. */
	if (strcmp(sharing, "whole") != 0)
		json_object_del(request, "gpu_count");
	if (strcmp(sharing, "fraction") == 0)
		json_object_del(request, "gpu_memory_mb");
	if (strcmp(sharing, "memory") != 0 && member_integer(request, "gpu_memory_mb") == 0)
		json_object_del(request, "gpu_memory_mb");
	int64_t index = member_integer(job, "array_index");
	if (member_has(job, "array_index") && index > 0) {
		char text[32];
		snprintf(text, sizeof(text), "%lld", (long long)index);
		json_object_set_new(request, "array", json_string(text));
	}
	return request;
}

static json_t *get_request(struct session *session, const char *id, struct error *error)
{
	json_t *job = session_get(
	    session, session_path(session, "/api/v1/jobs/%s", session_job(session, id)), error);
	json_t *request = job ? request_of(job) : NULL;
	json_decref(job);
	return request;
}

static int resubmit_one(struct session *session, const char *id)
{
	struct error error = { 0 };
	int status = CLI_FINE;
	json_t *request = get_request(session, id, &error);
	if (!request)
		return session_fail(session, &error);
	/* One of these says all about GPUs, as it does for a new job. */
	if (arguments_value(session->arguments, "--gpus") ||
	    arguments_value(session->arguments, "--gpu-memory")) {
		json_object_del(request, "gpu_count");
		json_object_del(request, "gpu_fraction");
		json_object_del(request, "gpu_memory_mb");
	}
	if (!job_request_overlay(session, request, &error)) {
		json_decref(request);
		return cli_misused(session->command, "%s", error.text);
	}
	json_t *answer = submit_send(session, request, &status);
	if (answer)
		submit_say(session, answer);
	json_decref(answer);
	return status;
}

static int clone_one(struct session *session, const char *id)
{
	struct error error = { 0 };
	struct buffer text = { 0 };
	json_t *request = get_request(session, id, &error);
	if (!request)
		return session_fail(session, &error);
	if (!listing_print_document(session, request, "name")) {
		yaml_text_print(&text, request);
		printf("---\n%s", text.data);
		buffer_free(&text);
	}
	json_decref(request);
	return CLI_FINE;
}

static int for_each(const struct arguments *arguments,
                    int (*one)(struct session *session, const char *id))
{
	struct session session;
	int status;
	if (arguments->operand_count == 0)
		return cli_misused(arguments->command, "which job? Give ids, such as job-12");
	if (!session_open(&session, arguments, &status))
		return status;
	status = CLI_FINE;
	for (size_t i = 0; i < arguments->operand_count && status == CLI_FINE; i++)
		status = one(&session, arguments->operands[i]);
	session_close(&session);
	return status;
}

static int run_resubmit(const struct arguments *arguments)
{
	return for_each(arguments, resubmit_one);
}

static int run_clone(const struct arguments *arguments)
{
	return for_each(arguments, clone_one);
}

static const struct option resubmit_options[] = {
	OPTION("--dry-run", NULL, NULL, "show the request and a forecast, and submit nothing"),
	{ 0 },
};

const struct cli_command resubmit_command = {
	.name = "resubmit",
	.arguments = "JOB... [OPTION...]",
	.summary = "submit jobs again, with changes",
	.details = "Everything that the job asked for is asked for again, but for dependencies,\n"
		   "times that have passed, and sealed variables. Options change the rest.\n",
	.examples = "resubmit job-12\n"
		    "resubmit job-12 --gpus 4 --priority high\n",
	.fields = &job_resource,
	.options = resubmit_options,
	.asks = true,
	.lists = true,
	.operand = COMPLETES_JOBS,
	.run = run_resubmit,
};

const struct cli_command clone_command = {
	.name = "clone",
	.arguments = "JOB...",
	.summary = "print jobs as a file, to change and submit with -f",
	.examples = "clone job-12 > job.yaml\n",
	.asks = true,
	.lists = true,
	.operand = COMPLETES_JOBS,
	.run = run_clone,
};
