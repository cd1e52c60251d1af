/* scancel.c - scancel: ends jobs */
#include <string.h>

#include "cli/slurm/job_row.h"
#include "cli/slurm/submission.h"
#include "json/member.h"

enum { JOBS_MOST = 100000 };

static const struct option options[] = {
	OPTION("--user", "-u", "USER", "jobs of this user", .repeats = true),
	OPTION("--me", NULL, NULL, "my jobs"),
	OPTION("--account", "-A", "TENANT", "jobs of this tenant", .repeats = true),
	OPTION("--name", "-n", "NAME", "jobs with this name", .repeats = true),
	OPTION("--jobname", NULL, "NAME", NULL, .repeats = true),
	OPTION("--state", "-t", "STATE", "jobs in this state", .repeats = true),
	OPTION("--partition", "-p", "NAME", "jobs in this partition", .repeats = true),
	OPTION("--signal", "-s", "SIGNAL", NULL, .repeats = true),
	OPTION("--full", "-f", NULL, NULL),
	OPTION("--batch", "-b", NULL, NULL),
	OPTION("--quiet", "-Q", NULL, "no message for jobs that have finished"),
	OPTION("--verbose", "-v", NULL, NULL),
	OPTION("--interactive", "-i", NULL, NULL),
	{ 0 },
};

static int cancel(struct slurm_call *call, const char *id)
{
	struct error error = { 0 };
	json_t *answer =
	    session_ask(&call->session, "DELETE",
	                session_path(&call->session, "/api/v1/jobs/%s", id), NULL, &error);
	json_decref(answer);
	/* As with Slurm, a job that has finished is no failure. */
	if (answer || error.code == ERROR_CONFLICT) {
		if (!answer && !slurm_given(call, "--quiet"))
			slurm_fail(call, "%s", error.text);
		return 0;
	}
	return slurm_fail(call, "%s", error.text);
}

/* 12, job-12, or 12_3: the element with index 3 of the array that begins with 12. */
static int cancel_named(struct slurm_call *call, const char *text)
{
	const char *line = strchr(text, '_');
	if (!line)
		return cancel(call, session_job(&call->session, text));
	json_t *jobs = slurm_jobs(call, "pending,scheduled,running,preempted", JOBS_MOST);
	size_t place;
	const json_t *job;
	int status = jobs ? -1 : 1;
	json_array_foreach(jobs, place, job)
	{
		char index[24];
		const char *array = submission_number(member_text(job, "array_id"));
		snprintf(index, sizeof(index), "%lld",
		         (long long)member_integer(job, "array_index"));
		if (*array && strlen(array) == (size_t)(line - text) &&
		    strncmp(array, text, (size_t)(line - text)) == 0 &&
		    (strcmp(index, line + 1) == 0 || strcmp("*", line + 1) == 0)) {
			int one = cancel(call, member_text(job, "id"));
			status = status > one ? status : one;
		}
	}
	json_decref(jobs);
	return status >= 0 ? status : slurm_fail(call, "no element %s waits or runs", text);
}

static bool has_filter(const struct slurm_call *call)
{
	static const char *const names[] = { "--user",  "--account",   "--name", "--jobname",
		                             "--state", "--partition", "--me" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (slurm_given(call, names[i]))
			return true;
	return false;
}

static int cancel_filtered(struct slurm_call *call)
{
	const char *name = slurm_option(call, "--name"), *state = slurm_option(call, "--state");
	const char *partition = slurm_option(call, "--partition");
	struct error error = { 0 };
	struct buffer states = { 0 };
	const char *me = NULL;
	int status = 0;
	size_t place;
	const json_t *job;
	if (!name)
		name = slurm_option(call, "--jobname");
	if (!job_row_states(state ? state : "PD,CF,R", &states, &error))
		return slurm_fail(call, "%s", error.text);
	if (slurm_given(call, "--me") && !(me = session_user(&call->session, &error))) {
		buffer_free(&states);
		return slurm_fail(call, "%s", error.text);
	}
	json_t *jobs = slurm_jobs(call, states.data, JOBS_MOST);
	buffer_free(&states);
	json_array_foreach(jobs, place, job)
	{
		const char *user = member_text(job, "user");
		const char *label = member_text(json_object_get(job, "node_labels"), "partition");
		if (slurm_in_list(slurm_option(call, "--user"), user) &&
		    (!me || strcmp(user, me) == 0) &&
		    slurm_in_list(name, member_text(job, "name")) &&
		    slurm_in_list(partition, *label ? label : "all"))
			status |= cancel(call, member_text(job, "id"));
	}
	if (!jobs)
		return 1;
	json_decref(jobs);
	return status;
}

static int scancel_run(struct slurm_call *call)
{
	const char *signal = slurm_option(call, "--signal");
	int status = 0;
	if (signal && strcmp(signal, "TERM") != 0 && strcmp(signal, "SIGTERM") != 0 &&
	    strcmp(signal, "KILL") != 0 && strcmp(signal, "SIGKILL") != 0 &&
	    strcmp(signal, "9") != 0 && strcmp(signal, "15") != 0)
		return slurm_fail(call,
		                  "--signal %s is not supported: a cancelled job gets SIGTERM, "
		                  "and SIGKILL after its grace period",
		                  signal);
	if (call->arguments.operand_count == 0 && !has_filter(call))
		return slurm_fail(call, "No job identification provided");
	if (!slurm_open(call))
		return 1;
	for (size_t i = 0; i < call->arguments.operand_count; i++)
		status |= cancel_named(call, call->arguments.operands[i]);
	if (call->arguments.operand_count == 0)
		status = cancel_filtered(call);
	return status;
}

const struct slurm_program slurm_scancel = {
	.name = "scancel",
	.usage = "[OPTION...] [JOB...]",
	.summary = "cancel jobs",
	.notes = "12_3 is the element with index 3 of the array that begins with job 12.\n",
	.options = options,
	.run = scancel_run,
};
