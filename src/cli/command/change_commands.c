/* change_commands.c - commands that change one thing after the other: cancel, hold, release,
 * requeue and priority of jobs, and resume of nodes */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/job/job_choice.h"
#include "cli/session.h"
#include "cli/text/quantity.h"
#include "json/member.h"

enum { CHOSEN_MAX = 1000000 };

/* What is asked for each operand. `path` has one %s for it. */
struct change {
	const char *method, *path, *done, *which;
	bool is_job;
};

static int change_one(struct session *session, const struct change *change, const char *operand)
{
	struct error error = { 0 };
	const char *name = change->is_job ? session_job(session, operand) : operand;
	struct buffer path = { 0 };
	const char *place = strstr(change->path, "%s");
	buffer_bytes(&path, change->path, (size_t)(place - change->path));
	client_escape(&path, name);
	buffer_text(&path, place + 2);
	json_t *answer = session_ask(session, change->method, path.data, NULL, &error);
	buffer_free(&path);
	if (!answer)
		return session_fail(session, &error);
	printf("%s %s\n", name, change->done);
	json_decref(answer);
	return CLI_FINE;
}

/* All jobs that the options choose. */
static int change_chosen(struct session *session, const struct change *change)
{
	struct error error = { 0 };
	size_t place;
	json_t *job;
	int status = CLI_FINE;
	json_t *jobs = job_choice_list(session, "pending,scheduled,running,preempted,suspended",
	                               true, CHOSEN_MAX, &error);
	if (!jobs)
		return session_fail(session, &error);
	json_array_foreach(jobs, place, job)
	{
		int one = change_one(session, change, member_text(job, "id"));
		status = status == CLI_FINE ? one : status;
	}
	if (json_array_size(jobs) == 0)
		fputs("no such jobs\n", stderr);
	json_decref(jobs);
	return status;
}

/* Continues after one that could not be changed; returns the status of the first failure. */
static int change_all(const struct arguments *arguments, const struct change *change)
{
	struct session session;
	int status;
	bool chosen = change->is_job && job_choice_is_made(arguments);
	if (chosen && arguments->operand_count > 0)
		return cli_misused(arguments->command, "give ids, or options that choose jobs");
	if (!chosen && arguments->operand_count == 0)
		return cli_misused(arguments->command, "%s", change->which);
	if (!session_open(&session, arguments, &status))
		return status;
	status = chosen ? change_chosen(&session, change) : CLI_FINE;
	for (size_t i = 0; i < arguments->operand_count; i++) {
		int one = change_one(&session, change, arguments->operands[i]);
		status = status == CLI_FINE ? one : status;
	}
	session_close(&session);
	return status;
}

static const char which_jobs[] = "which job? Give ids, such as job-12";
static const char which_nodes[] = "which node? Give names ('gpu-cli nodes' lists them)";

static int run_cancel(const struct arguments *arguments)
{
	return change_all(arguments, &(struct change){ "DELETE", "/api/v1/jobs/%s", "cancelled",
	                                               which_jobs, true });
}

static int run_hold(const struct arguments *arguments)
{
	return change_all(arguments, &(struct change){ "POST", "/api/v1/jobs/%s/hold", "held",
	                                               which_jobs, true });
}

static int run_release(const struct arguments *arguments)
{
	return change_all(arguments, &(struct change){ "POST", "/api/v1/jobs/%s/release",
	                                               "released", which_jobs, true });
}

static int run_requeue(const struct arguments *arguments)
{
	return change_all(arguments, &(struct change){ "POST", "/api/v1/jobs/%s/requeue",
	                                               "queued again", which_jobs, true });
}

static int run_suspend(const struct arguments *arguments)
{
	return change_all(arguments, &(struct change){ "POST", "/api/v1/jobs/%s/suspend",
	                                               "is being suspended", which_jobs, true });
}

/* Jobs are told apart from nodes by their ids. */
static bool is_job_id(const char *name)
{
	return strncmp(name, "job-", 4) == 0 && name[4] &&
	       strspn(name + 4, "0123456789") == strlen(name + 4);
}

static int run_resume(const struct arguments *arguments)
{
	static const struct change node = { "POST", "/api/v1/nodes/%s/resume", "is accepting work",
		                            which_nodes, false };
	static const struct change job = { "POST", "/api/v1/jobs/%s/resume",
		                           "resumes when its GPUs are free", which_jobs, true };
	struct session session;
	int status = CLI_FINE;

	if (arguments->operand_count == 0)
		return cli_misused(arguments->command,
		                   "which node or suspended job? Give names or ids");
	if (!session_open(&session, arguments, &status))
		return status;
	for (size_t i = 0; i < arguments->operand_count; i++) {
		const char *name = arguments->operands[i];
		int one = change_one(&session, is_job_id(name) ? &job : &node, name);
		status = status == CLI_FINE ? one : status;
	}
	session_close(&session);
	return status;
}

static int run_priority(const struct arguments *arguments)
{
	struct session session;
	struct error error = { 0 };
	int64_t priority;
	int status;
	if (arguments->operand_count != 2)
		return cli_misused(arguments->command,
		                   "give a job and its priority, such as: job-12 1000");
	if (!quantity_integer("the priority", arguments->operands[1], INT32_MIN, INT32_MAX,
	                      &priority, &error))
		return cli_misused(arguments->command, "%s", error.text);
	if (!session_open(&session, arguments, &status))
		return status;
	const char *job = session_job(&session, arguments->operands[0]);
	json_t *answer =
	    session_ask(&session, "PUT", session_path(&session, "/api/v1/jobs/%s/priority", job),
	                json_pack("{s:I}", "priority", (json_int_t)priority), &error);
	if (answer)
		printf("%s has priority %lld\n", job, (long long)priority);
	status = answer ? CLI_FINE : session_fail(&session, &error);
	json_decref(answer);
	session_close(&session);
	return status;
}

const struct cli_command cancel_command = {
	.name = "cancel",
	.arguments = "JOB... | OPTION...",
	.summary = "end jobs, or take them out of the queue",
	.examples = "cancel job-12 job-13\n"
		    "cancel --name sweep\n"
		    "cancel --label team=a --state pending\n"
		    "cancel --array job-40\n",
	.options = job_choice_options,
	.asks = true,
	.operand = COMPLETES_JOBS,
	.run = run_cancel,
};

const struct cli_command hold_command = {
	.name = "hold",
	.arguments = "JOB... | OPTION...",
	.summary = "keep waiting jobs from starting",
	.examples = "hold job-12\n",
	.options = job_choice_options,
	.asks = true,
	.operand = COMPLETES_JOBS,
	.run = run_hold,
};

const struct cli_command release_command = {
	.name = "release",
	.arguments = "JOB... | OPTION...",
	.summary = "let held jobs start",
	.examples = "release job-12\n",
	.options = job_choice_options,
	.asks = true,
	.operand = COMPLETES_JOBS,
	.run = run_release,
};

const struct cli_command requeue_command = {
	.name = "requeue",
	.arguments = "JOB... | OPTION...",
	.summary = "stop jobs and queue them again",
	.examples = "requeue job-12\n",
	.options = job_choice_options,
	.asks = true,
	.operand = COMPLETES_JOBS,
	.run = run_requeue,
};

const struct cli_command suspend_command = {
	.name = "suspend",
	.arguments = "JOB... | OPTION...",
	.summary = "move the GPU memory of jobs to host memory, until resumed",
	.examples = "suspend job-12\n",
	.options = job_choice_options,
	.asks = true,
	.operand = COMPLETES_JOBS,
	.run = run_suspend,
};

const struct cli_command priority_command = {
	.name = "priority",
	.arguments = "JOB N",
	.summary = "change the priority of a job",
	.examples = "priority job-12 1000\n",
	.asks = true,
	.operand = COMPLETES_JOBS,
	.run = run_priority,
};

const struct cli_command resume_command = {
	.name = "resume",
	.arguments = "NODE|JOB...",
	.summary = "give nodes work again, or let suspended jobs resume",
	.examples = "resume alpha beta\n"
		    "resume job-12\n",
	.asks = true,
	.operand = COMPLETES_NODES,
	.run = run_resume,
};
