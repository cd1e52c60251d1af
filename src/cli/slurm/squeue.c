/* squeue.c - squeue: jobs that wait or run */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/slurm/job_row.h"
#include "cli/slurm/submission.h"
#include "json/member.h"

enum { JOBS_MOST = 100000 };

static const struct option options[] = {
	OPTION("--jobs", "-j", "LIST", "these jobs", .repeats = true),
	OPTION("--user", "-u", "LIST", "jobs of these users", .repeats = true),
	OPTION("--me", NULL, NULL, "my jobs"),
	OPTION("--account", "-A", "LIST", "jobs of these tenants", .repeats = true),
	OPTION("--partition", "-p", "LIST", "jobs in these partitions", .repeats = true),
	OPTION("--name", "-n", "LIST", "jobs with these names", .repeats = true),
	OPTION("--states", "-t", "LIST", "jobs in these states: PD,R, or all", .repeats = true),
	OPTION("--nodelist", "-w", "LIST", "jobs on these nodes", .repeats = true),
	OPTION("--format", "-o", "FORMAT", "columns: '%.18i %.9P %j'", .repeats = true),
	OPTION("--Format", "-O", "LIST", "columns by name: JobID,JobName%20", .repeats = true),
	OPTION("--noheader", "-h", NULL, "without heads"),
	OPTION("--long", "-l", NULL, "more columns"),
	OPTION("--start", NULL, NULL, "expected starts of waiting jobs"),
	OPTION("--sort", "-S", "LIST", NULL, .repeats = true),
	OPTION("--iterate", "-i", "SECONDS", "again after that many seconds"),
	OPTION("--all", "-a", NULL, NULL),
	OPTION("--array", "-r", NULL, NULL),
	{ 0 },
};

static bool is_wanted(struct slurm_call *call, const struct job_row *row, const char *me)
{
	const json_t *job = row->job;
	const char *id = member_text(job, "id"), *jobs = slurm_option(call, "--jobs");
	const char *label = member_text(json_object_get(job, "node_labels"), "partition");
	const char *array = member_text(job, "array_id");
	const char *account = slurm_option(call, "--account");
	bool named = slurm_in_list(jobs, id) || slurm_in_list(jobs, submission_number(id)) ||
	             (*array && slurm_in_list(jobs, submission_number(array)));
	return named && slurm_in_list(slurm_option(call, "--user"), member_text(job, "user")) &&
	       (!me || strcmp(me, member_text(job, "user")) == 0) &&
	       (!account || slurm_in_list(account, member_text(job, "tenant_id")) ||
	        slurm_in_list(account,
	                      session_tenant_name(row->session, member_text(job, "tenant_id")))) &&
	       slurm_in_list(slurm_option(call, "--partition"), *label ? label : "all") &&
	       slurm_in_list(slurm_option(call, "--name"), member_text(job, "name")) &&
	       slurm_in_list(slurm_option(call, "--nodelist"), member_text(job, "node_name"));
}

static bool read_format(struct slurm_call *call, struct slurm_format *format)
{
	const char *text = slurm_option(call, "--format"), *names = slurm_option(call, "--Format");
	struct error error = { 0 };
	bool good;
	if (names) {
		good = slurm_format_read_names(format, job_columns, names, &error);
	} else {
		if (!text)
			text = getenv("SQUEUE_FORMAT");
		if (!text && slurm_given(call, "--start"))
			text = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20N %R";
		if (!text)
			text = slurm_given(call, "--long")
			           ? "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
			           : "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
		good = slurm_format_read(format, job_columns, text, &error);
	}
	if (!good)
		slurm_fail(call, "%s", error.text);
	return good;
}

static int print_once(struct slurm_call *call, const struct slurm_format *format,
                      const char *states, const char *me)
{
	struct buffer text = { 0 };
	json_t *jobs = slurm_jobs(call, states, JOBS_MOST);
	size_t place;
	const json_t *job;
	if (!jobs)
		return 1;
	if (slurm_given(call, "--long") && !slurm_given(call, "--noheader"))
		slurm_print_date(&text);
	if (!slurm_given(call, "--noheader"))
		slurm_format_print_heads(format, &text);
	json_array_foreach(jobs, place, job)
	{
		struct job_row row = { &call->session, job, clock_unix_ms() };
		if (is_wanted(call, &row, me))
			slurm_format_print(format, &text, &row);
	}
	json_decref(jobs);
	return slurm_print(&text);
}

static int squeue_run(struct slurm_call *call)
{
	static struct slurm_format format;
	struct buffer states = { 0 };
	struct error error = { 0 };
	const char *wanted = slurm_option(call, "--states");
	const char *seconds = slurm_option(call, "--iterate");
	int status = 1;
	if (!wanted)
		wanted = slurm_given(call, "--start") ? "PD" : "PD,CF,R,S";
	if (!job_row_states(wanted, &states, &error))
		slurm_fail(call, "%s", error.text);
	else if (read_format(call, &format) && slurm_open(call)) {
		bool mine = slurm_given(call, "--me");
		const char *me = mine ? session_user(&call->session, &error) : NULL;
		if (mine && !me)
			slurm_fail(call, "%s", error.text);
		while ((me || !mine) &&
		       (status = print_once(call, &format, states.data, me)) == 0 && seconds)
			sleep((unsigned)atoi(seconds) > 0 ? (unsigned)atoi(seconds) : 1);
	}
	buffer_free(&states);
	return status;
}

const struct slurm_program slurm_squeue = {
	.name = "squeue",
	.usage = "[OPTION...]",
	.summary = "list jobs that wait or run",
	.options = options,
	.run = squeue_run,
};
