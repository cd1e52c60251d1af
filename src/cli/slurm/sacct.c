/* sacct.c - sacct: jobs of the past, and what they used */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/slurm/job_row.h"
#include "cli/slurm/submission.h"
#include "slurm/value.h"
#include "json/member.h"

enum { JOBS_MOST = 100000, MS_SECOND = 1000 };

static const struct option options[] = {
	OPTION("--jobs", "-j", "LIST", "these jobs", .repeats = true),
	OPTION("--user", "-u", "LIST", "jobs of these users", .repeats = true),
	OPTION("--account", "-A", "LIST", "jobs of these tenants", .repeats = true),
	OPTION("--accounts", NULL, "LIST", NULL, .repeats = true),
	OPTION("--name", NULL, "LIST", "jobs with these names", .repeats = true),
	OPTION("--state", "-s", "LIST", "jobs in these states: CD,F,TO", .repeats = true),
	OPTION("--starttime", "-S", "TIME", "jobs that were there after TIME (default: today)",
	       .repeats = true),
	OPTION("--endtime", "-E", "TIME", "jobs that were there before TIME", .repeats = true),
	OPTION("--format", "-o", "LIST", "columns: JobID,JobName%20,State,Elapsed",
	       .repeats = true),
	OPTION("--noheader", "-n", NULL, "without heads"),
	OPTION("--parsable", "-p", NULL, "columns separated by |, and one at the end"),
	OPTION("--parsable2", "-P", NULL, "columns separated by |"),
	OPTION("--long", "-l", NULL, "more columns"),
	OPTION("--allusers", "-a", NULL, NULL),
	OPTION("--allocations", "-X", NULL, NULL),
	OPTION("--duplicates", "-D", NULL, NULL),
	OPTION("--units", NULL, "UNIT", NULL),
	OPTION("--helpformat", "-e", NULL, "list the columns"),
	{ 0 },
};

static bool read_format(struct slurm_call *call, struct slurm_format *format)
{
	const char *names = slurm_option(call, "--format");
	struct error error = { 0 };
	if (!names)
		names = getenv("SACCT_FORMAT");
	if (!names)
		names = slurm_given(call, "--long")
		            ? "JobID,JobName,Partition,Account,User,AllocCPUS,AllocTRES%30,State,"
		              "ExitCode,Submit,Start,End,Elapsed,Timelimit,MaxRSS,NodeList"
		            : "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode";
	*format =
	    (struct slurm_format){ .sacct = true, .trailing = slurm_given(call, "--parsable") };
	if (format->trailing || slurm_given(call, "--parsable2"))
		format->separator = '|';
	if (!slurm_format_read_names(format, job_columns, names, &error)) {
		slurm_fail(call, "%s", error.text);
		return false;
	}
	return true;
}

/* From when to when; by default today, or all of time for jobs that are named. */
static bool read_period(struct slurm_call *call, int64_t *from_ms, int64_t *to_ms)
{
	const char *from = slurm_option(call, "--starttime"), *to = slurm_option(call, "--endtime");
	int64_t now_ms = clock_unix_ms();
	struct error error = { 0 };
	*from_ms = 0;
	*to_ms = INT64_MAX;
	if (!from && !slurm_option(call, "--jobs"))
		from = "today";
	if ((!from || slurm_moment("--starttime", from, now_ms, from_ms, &error)) &&
	    (!to || slurm_moment("--endtime", to, now_ms, to_ms, &error)))
		return true;
	slurm_fail(call, "%s", error.text);
	return false;
}

static bool is_wanted(struct slurm_call *call, const struct job_row *row, int64_t from_ms,
                      int64_t to_ms)
{
	const json_t *job = row->job;
	const char *id = member_text(job, "id"), *jobs = slurm_option(call, "--jobs");
	const char *array = member_text(job, "array_id"), *states = slurm_option(call, "--state");
	const char *account = slurm_option(call, "--account");
	int64_t submitted = member_moment(job, "submitted_at");
	int64_t ended = member_moment(job, "completed_at");
	if (!account)
		account = slurm_option(call, "--accounts");
	return (slurm_in_list(jobs, submission_number(id)) || slurm_in_list(jobs, id) ||
	        (*array && slurm_in_list(jobs, submission_number(array)))) &&
	       slurm_in_list(slurm_option(call, "--user"), member_text(job, "user")) &&
	       slurm_in_list(slurm_option(call, "--name"), member_text(job, "name")) &&
	       (!states || slurm_in_list(states, job_row_state(job)) ||
	        slurm_in_list(states, job_row_short_state(job))) &&
	       (!account ||
	        slurm_in_list(account,
	                      session_tenant_name(row->session, member_text(job, "tenant_id")))) &&
	       submitted <= to_ms && (ended <= 0 || ended >= from_ms);
}

static int sacct_run(struct slurm_call *call)
{
	static struct slurm_format format;
	struct buffer text = { 0 };
	int64_t from_ms, to_ms;
	size_t place;
	const json_t *job;
	if (slurm_given(call, "--helpformat")) {
		for (const struct slurm_column *column = job_columns; column->head; column++)
			if (column->name)
				buffer_print(&text, "%s\n", column->name);
		return slurm_print(&text);
	}
	if (!read_format(call, &format) || !read_period(call, &from_ms, &to_ms) ||
	    !slurm_open(call))
		return 1;
	json_t *jobs = slurm_jobs(
	    call, "pending,scheduled,running,preempted,completed,failed,cancelled", JOBS_MOST);
	if (!jobs)
		return 1;
	if (!slurm_given(call, "--noheader")) {
		slurm_format_print_heads(&format, &text);
		slurm_format_print_line(&format, &text);
	}
	json_array_foreach(jobs, place, job)
	{
		struct job_row row = { &call->session, job, clock_unix_ms() };
		if (is_wanted(call, &row, from_ms, to_ms))
			slurm_format_print(&format, &text, &row);
	}
	json_decref(jobs);
	return slurm_print(&text);
}

const struct slurm_program slurm_sacct = {
	.name = "sacct",
	.usage = "[OPTION...]",
	.summary = "list jobs with their times, states and use",
	.options = options,
	.run = sacct_run,
};
