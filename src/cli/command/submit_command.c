/* submit_command.c - gpu-cli submit and run: a job, and staying with it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/job/job_request.h"
#include "cli/job/job_watch.h"
#include "cli/listing.h"
#include "cli/text/field.h"

static const struct option work_options[] = {
	OPTION("--name", "-n", "NAME", "what people will know it by"),
	OPTION("--gpus", "-g", "N", "whole GPUs of each task, or 0.5: a part of one"),
	OPTION("--gpu-memory", "-m", "SIZE",
	       "of a GPU: 20G. Without --gpus a part of one GPU of this size; 40G,20G: of two"),
	OPTION("--gpu-model", NULL, "MODEL", "that will do: H100, or several with | between"),
	OPTION("--priority", "-p", "N",
	       "a number, or low (100), normal (500), high (1000), urgent (2500)",
	       .completes = COMPLETES_WORDS, .words = "low normal high urgent"),
	OPTION("--image", NULL, "IMAGE", "a container image to run in"),
	OPTION("--script", NULL, "FILE", "a script to run instead of a command; - reads it",
	       .completes = COMPLETES_FILES),
	OPTION("--tasks", NULL, "N", "number of copies, on one node or several"),
	OPTION("--min-available", NULL, "N",
	       "tasks that start together or not at all (default: all)"),
	OPTION("--gang", NULL, NULL, "more GPUs than a node has: split over nodes"),
	OPTION("--cpus", "-c", "N", "CPU cores of each task"),
	OPTION("--memory", NULL, "SIZE", "host memory of each task"),
	OPTION("--env", "-e", "NAME=VALUE", "a variable; NAME alone takes the one here",
	       .repeats = true),
	OPTION("--secret-env", NULL, "NAME=VALUE", "one that is sealed and never shown",
	       .repeats = true),
	OPTION("--label", "-l", "NAME=VALUE", "for people, and for 'list --label'",
	       .repeats = true),
	OPTION("--node-label", NULL, "NAME=VALUE", "that its nodes must have", .repeats = true),
	OPTION("--max-runtime", NULL, "TIME", "after which it is ended: 2h, 90m, 1d12h"),
	OPTION("--deadline", NULL, "MOMENT", "by which it should be done: 2030-01-31T12:00:00Z"),
	OPTION("--after", NULL, "JOB",
	       "start after that job has succeeded; JOB:any: after it has finished",
	       .repeats = true, .completes = COMPLETES_JOBS),
	OPTION("--checkpoint", NULL, NULL, "it saves its work, and may be moved"),
	OPTION("--checkpoint-path", NULL, "DIR", "where"),
	OPTION("--preemptible", NULL, NULL, "others may take its place (default: as its tenant)"),
	OPTION("--no-preemptible", NULL, NULL, "they may not"),
	OPTION("--close", NULL, "HOW", "how close its GPUs should be: any, nvlink, node, rack",
	       .completes = COMPLETES_WORDS, .words = "any nvlink node rack"),
	OPTION("--on-lease-loss", NULL, "HOW",
	       "when its node is silent for long: keep (default) or stop",
	       .completes = COMPLETES_WORDS, .words = "keep stop"),
	OPTION("--workdir", NULL, "DIR", "to run in"),
	OPTION("--check", NULL, NULL, "refuse what could never run on this cluster"),
	OPTION("--idempotency-key", NULL, "KEY", "sent again, the first job is the answer"),
	OPTION("--dry-run", NULL, NULL, "show what would be sent, and send nothing"),
	{ 0 },
};

static const struct option submit_options[] = {
	OPTION("--array", NULL, "1-100%8", "a job for each number, 8 at a time"),
	OPTION("--hold", NULL, NULL, "does not start before it is released"),
	OPTION("--wait", "-w", NULL, "wait until it finishes, and exit with its exit code"),
	OPTION("--follow", "-f", NULL, "the same, and show its output"),
	{ 0 },
};

/* The job is taken in: its answer, or NULL with what to end with. */
static json_t *submit(struct session *session, int *status)
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
	const char *id = field_text(answer, "job_id"), *last = field_text(answer, "last_job_id");
	if (listing_print_document(session, answer, "job_id"))
		return;
	if (*last)
		printf("%s to %s submitted (%lld jobs)\n", id, last,
		       (long long)field_integer(answer, "count"));
	else
		printf("%s %s\n", id,
		       field_flag(answer, "repeated") ? "was submitted before" : "submitted");
	fflush(stdout);
}

/* The jobs of an array have ids that follow each other. The first code that is not 0. */
static int wait_for_all(struct session *session, const json_t *answer)
{
	long long first = atoll(field_text(answer, "job_id") + strlen("job-"));
	long long count = field_integer(answer, "count");
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
	json_t *answer = submit(&session, &status);
	if (answer) {
		say_submitted(&session, answer);
		status = CLI_FINE;
		if (follow)
			status = job_watch(&session,
			                   &(struct job_watch){ .job = field_text(answer, "job_id"),
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
	json_t *answer = submit(&session, &status);
	if (answer)
		status =
		    job_watch(&session, &(struct job_watch){ .job = field_text(answer, "job_id"),
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
	.shared = work_options,
	.asks = true,
	.runs = true,
	.operand = COMPLETES_FILES,
	.run = run_run,
};
