/* submit_command.c - gpu-cli submit and run: a job, and staying with it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/job/job_request.h"
#include "cli/job/job_watch.h"
#include "cli/listing.h"
#include "json/member.h"

static const struct option work_options[] = {
	OPTION("--dry-run", NULL, NULL, "show the request, and send nothing"),
	{ 0 },
};

static const struct option submit_options[] = {
	OPTION("--wait", "-w", NULL, "wait until it has finished, and exit with its code"),
	OPTION("--follow", "-f", NULL, "like --wait, and show its output"),
	{ 0 },
};

/* The job is taken in: its answer, or NULL with what to end with. */
static json_t *submit_one(struct session *session, int *status)
{
	struct error error = { 0 };
	json_t *job = job_request(session, &error);
	bool dry = arguments_has(session->arguments, "--dry-run");
	if (!job) {
		*status = cli_misused(session->command, "%s", error.text);
		return NULL;
	}
	/* A token may say whose it is, and then nothing else needs to. */
	const char *tenant = session->tenant;
	if (!tenant && !dry)
		tenant = session_tenant(session, &error);
	if (tenant && *tenant)
		json_object_set_new(job, "tenant_id", json_string(tenant));
	if (dry) {
		json_dumpf(job, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
		putchar('\n');
		json_decref(job);
		*status = CLI_FINE;
		return NULL;
	}
	if (!tenant) {
		json_decref(job);
		*status = session_fail(session, &error);
		return NULL;
	}
	json_t *answer = session_ask(session, "POST", "/api/v1/jobs", job, &error);
	if (!answer)
		*status = session_fail(session, &error);
	if (!answer && !*tenant && error.code == ERROR_INVALID)
		fputs("There are several tenants: say whose it is with --tenant-id, "
		      "GPU_SCHEDULER_TENANT or in the context.\n",
		      stderr);
	return answer;
}

static void say_submitted(const struct session *session, const json_t *answer)
{
	const char *id = member_text(answer, "job_id"), *last = member_text(answer, "last_job_id");
	if (listing_print_document(session, answer, "job_id"))
		return;
	if (*last)
		printf("%s to %s submitted (%lld jobs)\n", id, last,
		       (long long)member_integer(answer, "count"));
	else
		printf("%s %s\n", id,
		       member_flag(answer, "repeated") ? "was submitted before" : "submitted");
	fflush(stdout);
}

/* The jobs of an array have ids that follow each other. The first code that is not 0. */
static int wait_for_all(struct session *session, const json_t *answer)
{
	long long first = atoll(member_text(answer, "job_id") + strlen("job-"));
	long long count = member_integer(answer, "count");
	int status = CLI_FINE;
	for (long long i = 0; i < (count > 0 ? count : 1); i++) {
		char id[40];
		snprintf(id, sizeof(id), "job-%lld", first + i);
		int code =
		    job_watch(session, &(struct job_watch){ .job = id, .quiet = true, .task = -1 });
		if (status == CLI_FINE)
			status = code;
	}
	return status;
}

static int run_submit(const struct arguments *arguments)
{
	struct session session;
	int status;
	bool follow = arguments_has(arguments, "--follow");
	if (follow && arguments_value(arguments, "--array"))
		return cli_misused(arguments->command,
		                   "--follow shows the output of one job, and --array makes "
		                   "many: use --wait, then 'gpu-cli logs'");
	if (!session_open(&session, arguments, &status))
		return status;
	json_t *answer = submit_one(&session, &status);
	if (answer) {
		say_submitted(&session, answer);
		status = CLI_FINE;
		if (follow)
			status = job_watch(
			    &session, &(struct job_watch){ .job = member_text(answer, "job_id"),
			                                   .output = true,
			                                   .quiet = !isatty(STDERR_FILENO),
			                                   .task = -1 });
		else if (arguments_has(arguments, "--wait"))
			status = wait_for_all(&session, answer);
	}
	json_decref(answer);
	session_close(&session);
	return status;
}

static int run_run(const struct arguments *arguments)
{
	struct session session;
	int status;
	if (!session_open(&session, arguments, &status))
		return CLI_NO_JOB;
	job_watch_catch();
	json_t *answer = submit_one(&session, &status);
	if (answer)
		status =
		    job_watch(&session, &(struct job_watch){ .job = member_text(answer, "job_id"),
		                                             .output = true,
		                                             .cancels = true,
		                                             .quiet = !isatty(STDERR_FILENO),
		                                             .task = -1 });
	else if (status != CLI_FINE)
		status = CLI_NO_JOB;
	json_decref(answer);
	session_close(&session);
	return status;
}

const struct cli_command submit_command = {
	.name = "submit",
	.arguments = "[OPTION...] [--] COMMAND [ARGUMENT...]",
	.summary = "submit a job, or an array of jobs",
	.details = "What follows the options is the command; with --script it is the script's\n"
		   "arguments. Sizes are written as 20G or 512M, times as 90m, 2h30m or 1d.\n"
		   "Neither --gpus nor --gpu-memory: it gets no GPU. With --wait and --follow it\n"
		   "ends with the job's code.\n",
	.examples = "submit --name train --gpus 4 --gpu-memory 40G -- python train.py\n"
		    "submit --gpu-memory 20G -- ./infer.sh\n"
		    "submit --gpus 1 --array 1-100%8 --script sweep.sh\n"
		    "submit --after job-12 --wait -- ./evaluate.sh\n",
	.fields = &job_resource,
	.shared = work_options,
	.options = submit_options,
	.asks = true,
	.lists = true,
	.runs = true,
	.operand = COMPLETES_FILES,
	.run = run_submit,
};

const struct cli_command run_command = {
	.name = "run",
	.arguments = "[OPTION...] [--] COMMAND [ARGUMENT...]",
	.summary = "submit a job, show its output, end with its code",
	.details = "Ctrl-C cancels the job and waits for its end; a second one leaves at once. It\n"
		   "ends with the job's code; with 125 where the job could not be run or was\n"
		   "cancelled by others, and 130 after Ctrl-C. The output of several tasks has\n"
		   "the task's number before each line.\n",
	.examples = "run --gpus 1 -- nvidia-smi\n"
		    "run --gpus 2 --tasks 4 python train.py --epochs 3\n",
	.fields = &job_resource,
	.without = "--array --hold",
	.shared = work_options,
	.asks = true,
	.runs = true,
	.operand = COMPLETES_FILES,
	.run = run_run,
};
