/* submit_command.c - gpu-cli submit and run: a job, and staying with it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command/submit.h"
#include "cli/commands.h"
#include "cli/job/job_input.h"
#include "cli/job/job_request.h"
#include "cli/job/job_session.h"
#include "cli/job/job_watch.h"
#include "cli/listing.h"
#include "cli/text/quantity.h"
#include "json/member.h"

static const struct option work_options[] = {
	OPTION("--dry-run", NULL, NULL, "show the request and a forecast, and submit nothing"),
	{ 0 },
};

static const struct option submit_options[] = {
	OPTION("--check", NULL, NULL, "say whether, when and where it would start; submit nothing"),
	OPTION("--wait", "-w", NULL, "wait until it has finished, and exit with its code"),
	OPTION("--follow", NULL, NULL, "like --wait, and show its output"),
	OPTION("--file", "-f", "FILE",
	       "submit the jobs of this file; options go before what it says",
	       .completes = COMPLETES_FILES),
	{ 0 },
};

static const struct option run_options[] = {
	OPTION("--pty", NULL, NULL, "its first task has a terminal, which is this one"),
	{ 0 },
};

static void print_request(const json_t *job)
{
	json_dumpf(job, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
	putchar('\n');
}

/* What the service foresees for the job. Its tenant is filled in where it can be. */
static json_t *ask_forecast(struct session *session, const json_t *job, struct error *error)
{
	json_t *copy = json_copy((json_t *)job);
	if (!json_object_get(copy, "tenant_id")) {
		const char *tenant = session_tenant(session, error);
		if (!tenant) {
			json_decref(copy);
			return NULL;
		}
		if (*tenant)
			json_object_set_new(copy, "tenant_id", json_string(tenant));
	}
	return session_ask(session, "POST", "/api/v1/jobs?check=1", copy, error);
}

/* The sentence, and below it the reasons that it does not give. */
static void print_forecast(FILE *to, const json_t *forecast)
{
	const char *message = member_text(forecast, "message");
	struct buffer text = { 0 };
	size_t place;
	json_t *line;
	quantity_print_sentence(&text, message);
	fprintf(to, "%s\n", text.data);
	json_array_foreach(json_object_get(forecast, "why"), place, line)
	{
		if (place == 0 && strstr(message, json_string_value(line)))
			continue;
		buffer_clear(&text);
		quantity_print_sentence(&text, json_string_value(line));
		fprintf(to, "  %s\n", text.data);
	}
	buffer_free(&text);
}

/* --check: nothing is submitted. What could never start is a failure. */
static int check_one(struct session *session, json_t *job)
{
	struct error error = { 0 };
	json_t *forecast = ask_forecast(session, job, &error);
	json_decref(job);
	if (!forecast)
		return session_fail(session, &error);
	bool never = strcmp(member_text(forecast, "forecast"), "never") == 0;
	if (!listing_print_document(session, forecast, "forecast"))
		print_forecast(stdout, forecast);
	json_decref(forecast);
	return never ? CLI_FAILED : CLI_FINE;
}

/* --dry-run: the request on standard output, and the forecast on standard error, as far as there
 * is a service to make one. */
static void show_request(struct session *session, json_t *job)
{
	struct error error = { 0 };
	print_request(job);
	fflush(stdout);
	json_t *forecast = ask_forecast(session, job, &error);
	if (forecast)
		print_forecast(stderr, forecast);
	else
		fprintf(stderr, "no forecast: %s\n", error.text);
	json_decref(forecast);
	json_decref(job);
}

json_t *submit_send(struct session *session, json_t *job, int *status)
{
	struct error error = { 0 };
	bool dry = arguments_has(session->arguments, "--dry-run");
	bool check = arguments_has(session->arguments, "--check");
	/* A token may say whose it is, and then nothing else needs to. */
	const char *tenant = arguments_value(session->arguments, "--tenant-id");
	bool named = !tenant && json_object_get(job, "tenant_id");
	if (!tenant && !named)
		tenant = session->tenant;
	if (!tenant && !named && !dry && !check)
		tenant = session_tenant(session, &error);
	if (tenant && *tenant)
		json_object_set_new(job, "tenant_id", json_string(tenant));
	if (dry || check) {
		*status = CLI_FINE;
		if (dry)
			show_request(session, job);
		else
			*status = check_one(session, job);
		return NULL;
	}
	if (!tenant && !named) {
		json_decref(job);
		*status = session_fail(session, &error);
		return NULL;
	}
	json_t *answer = session_ask(session, "POST", "/api/v1/jobs", job, &error);
	bool homeless =
	    error.code == ERROR_INVALID && strncmp(error.text, "tenant_id is missing", 20) == 0;
	if (!answer && homeless)
		error_set(&error, ERROR_INVALID,
		          "there are several tenants: say whose the job is with --tenant-id, "
		          "GPU_SCHEDULER_TENANT or in the context");
	if (!answer)
		*status = session_fail(session, &error);
	return answer;
}

/* `run --pty` alone has the option. */
static bool wants_terminal(const struct session *session)
{
	return arguments_has(session->arguments, "--pty");
}

/* The job is taken in: its answer, or NULL with what to end with. With `input`, its first task has
 * standard input where there is any; then it says whether a task has. */
static json_t *submit_one(struct session *session, bool *input, int *status)
{
	struct error error = { 0 };
	json_t *job = job_request(session, &error);
	if (job && wants_terminal(session))
		job_session_ask_terminal(job);
	if (job && input && !json_object_get(job, "standard_input") && job_input_is_there())
		json_object_set_new(job, "standard_input", json_string("first"));
	if (input)
		*input = *member_text(job, "standard_input") &&
		         strcmp(member_text(job, "standard_input"), "none") != 0;
	if (job)
		return submit_send(session, job, status);
	*status = cli_misused(session->command, "%s", error.text);
	return NULL;
}

/* A job that no node could ever take waits for hardware that is not there: say so at once. */
static void warn_of_impossible(struct session *session, const json_t *answer)
{
	static const char never[] = "it can never run on this cluster";
	const char *id = member_text(answer, "job_id");
	struct error unused = { 0 };
	json_t *why =
	    session_get(session, session_path(session, "/api/v1/jobs/%s/why", id), &unused);
	const char *line = json_string_value(json_array_get(json_object_get(why, "why"), 0));
	const char *found = line ? strstr(line, never) : NULL;
	if (found)
		fprintf(stderr, "warning: %s waits for nodes that could take it: %s\n", id, found);
	json_decref(why);
}

static void warn_of_deadline(const json_t *answer)
{
	if (member_has(answer, "deadline_risk"))
		fprintf(stderr, "warning: %s may miss its deadline, with a probability of %.0f%%\n",
		        member_text(answer, "job_id"),
		        member_number(answer, "deadline_risk") * 100);
}

void submit_say(const struct session *session, const json_t *answer)
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
	warn_of_deadline(answer);
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
	if (arguments_value(arguments, "--file"))
		return job_file_submit(arguments);
	if (!session_open(&session, arguments, &status))
		return status;
	json_t *answer = submit_one(&session, NULL, &status);
	if (answer) {
		submit_say(&session, answer);
		warn_of_impossible(&session, answer);
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
	bool input = false;
	int status;
	if (!session_open(&session, arguments, &status))
		return CLI_NO_JOB;
	job_watch_catch();
	json_t *answer = submit_one(&session, &input, &status);
	if (answer && wants_terminal(&session)) {
		warn_of_impossible(&session, answer);
		status = job_session_stay(&session, member_text(answer, "job_id"),
		                          !isatty(STDERR_FILENO));
	} else if (answer) {
		warn_of_impossible(&session, answer);
		status =
		    job_watch(&session, &(struct job_watch){ .job = member_text(answer, "job_id"),
		                                             .output = true,
		                                             .cancels = true,
		                                             .input = input,
		                                             .quiet = !isatty(STDERR_FILENO),
		                                             .task = -1 });
	} else if (status != CLI_FINE) {
		status = CLI_NO_JOB;
	}
	json_decref(answer);
	session_close(&session);
	return status;
}

const struct cli_command submit_command = {
	.name = "submit",
	.arguments = "[OPTION...] [--] COMMAND [ARGUMENT...]",
	.summary = "submit a job, an array of jobs, or the jobs of a file",
	.details = "What follows the options is the command; with --script it is the script's\n"
		   "arguments. Sizes are written as 20G or 512M, times as 90m, 2h30m or 1d.\n"
		   "Neither --gpus nor --gpu-memory: it gets no GPU. With --wait and --follow it\n"
		   "ends with the job's code. The task starts in the current directory, where it\n"
		   "can. A file has jobs as YAML documents or JSON, with the fields of the REST\n"
		   "API; - reads standard input. --check ends with 1 if the job could never run.\n",
	.examples = "submit --name train --gpus 4 --gpu-memory 40G -- python train.py\n"
		    "submit --gpu-memory 20G -- ./infer.sh\n"
		    "submit --gpus 1 --array 1-100%8 --script sweep.sh\n"
		    "submit --after job-12 --wait -- ./evaluate.sh\n"
		    "submit --gpus 8 --check -- python train.py\n"
		    "submit -f jobs.yaml --priority high\n",
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
	.summary = "submit a job, show its output, exit with its code",
	.details = "Its standard input goes to the first task, or to those of --stdin. Ctrl-C\n"
		   "cancels the job and waits for its end; a second one leaves at once. It\n"
		   "ends with the job's code; with 125 where the job could not be run or was\n"
		   "cancelled by others, and 130 after Ctrl-C. The output of several tasks has\n"
		   "the task's number before each line. With --pty, Ctrl-P Ctrl-Q, or ~. at the\n"
		   "beginning of a line, leaves the job running; 'gpu-cli attach' returns to it.\n",
	.examples = "run --pty --gpus 1 -- bash\n"
		    "run --gpus 1 -- nvidia-smi\n"
		    "run --gpus 1 -- python score.py <samples.json >scores.json\n"
		    "run --gpus 2 --tasks 4 python train.py --epochs 3\n",
	.fields = &job_resource,
	.without = "--array --hold",
	.shared = work_options,
	.options = run_options,
	.asks = true,
	.runs = true,
	.operand = COMPLETES_FILES,
	.run = run_run,
};
