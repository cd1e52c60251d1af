/* sreport.c - sreport: GPU hours by tenant */
#include <string.h>
#include <strings.h>

#include "base/calendar.h"
#include "base/clock.h"
#include "cli/slurm/program.h"
#include "slurm/value.h"
#include "json/member.h"

static const struct option options[] = {
	OPTION("--noheader", "-n", NULL, "without heads"),
	OPTION("--parsable", "-p", NULL, "columns separated by |, and one at the end"),
	OPTION("--parsable2", "-P", NULL, "columns separated by |"),
	OPTION("--time", "-t", "UNIT", "hours (the default)", .repeats = true),
	OPTION("--tres", "-T", "LIST", NULL, .repeats = true),
	{ 0 },
};

static void print_name(struct buffer *to, const void *row)
{
	buffer_text(to, member_text(row, "tenant"));
}

static void print_jobs(struct buffer *to, const void *row)
{
	buffer_print(to, "%lld", (long long)member_integer(row, "jobs"));
}

static void print_gpu_hours(struct buffer *to, const void *row)
{
	buffer_print(to, "%.2f", member_number(row, "gpu_hours"));
}

static void print_cpu_hours(struct buffer *to, const void *row)
{
	buffer_print(to, "%.2f", member_number(row, "cpu_core_hours"));
}

static void print_cost(struct buffer *to, const void *row)
{
	buffer_print(to, "%.2f", member_number(row, "cost"));
}

static const struct slurm_column columns[] = {
	{ 0, "Account", "Account", 20, print_name },
	{ 0, "Jobs", "Jobs", 8, print_jobs },
	{ 0, "GPUHours", "GPU Hours", 12, print_gpu_hours },
	{ 0, "CPUHours", "CPU Hours", 12, print_cpu_hours },
	{ 0, "Cost", "Cost", 12, print_cost },
	{ 0 },
};

/* start=TIME and end=TIME among the operands, as a part of the path. False, told. */
static bool add_time(struct slurm_call *call, const char *key, const char *ours,
                     struct buffer *path)
{
	struct error error = { 0 };
	for (size_t i = 2; i < call->arguments.operand_count; i++) {
		const char *word = call->arguments.operands[i];
		int64_t moment;
		char text[CALENDAR_TEXT_MAX];
		if (strncasecmp(word, key, strlen(key)) != 0)
			continue;
		if (!slurm_moment(ours, word + strlen(key), clock_unix_ms(), &moment, &error)) {
			slurm_fail(call, "%s", error.text);
			return false;
		}
		calendar_write(moment * 1000, 0, text);
		buffer_print(path, "%s%s=%s", strchr(path->data, '?') ? "&" : "?", ours, text);
	}
	return true;
}

static int sreport_run(struct slurm_call *call)
{
	static struct slurm_format format;
	const char *const *words = call->arguments.operands;
	size_t count = call->arguments.operand_count, place;
	struct error error = { 0 };
	struct buffer path = { 0 }, text = { 0 };
	const json_t *tenant;
	if (count < 2 || strcasecmp(words[0], "cluster") != 0 ||
	    (strncasecmp(words[1], "AccountUtilization", 18) != 0 &&
	     strncasecmp(words[1], "Utilization", 11) != 0))
		return slurm_fail(call,
		                  "known here is 'cluster AccountUtilizationByUser [start=TIME] "
		                  "[end=TIME]'; 'gpu-cli report' has more");
	format = (struct slurm_format){ .trailing = slurm_given(call, "--parsable") };
	if (format.trailing || slurm_given(call, "--parsable2"))
		format.separator = '|';
	if (!slurm_format_read_names(&format, columns, "Account%-20,Jobs,GPUHours,CPUHours,Cost",
	                             &error))
		return slurm_fail(call, "%s", error.text);
	buffer_text(&path, "/api/v1/reports/billing");
	if (!add_time(call, "start=", "from", &path) || !add_time(call, "end=", "to", &path) ||
	    !slurm_open(call)) {
		buffer_free(&path);
		return 1;
	}
	json_t *report = session_get(&call->session, path.data, &error);
	buffer_free(&path);
	if (!report)
		return slurm_fail(call, "%s", error.text);
	if (!slurm_given(call, "--noheader")) {
		slurm_format_print_heads(&format, &text);
		slurm_format_print_line(&format, &text);
	}
	json_array_foreach(json_object_get(report, "tenants"), place, tenant)
	    slurm_format_print(&format, &text, tenant);
	json_decref(report);
	return slurm_print(&text);
}

const struct slurm_program slurm_sreport = {
	.name = "sreport",
	.usage = "[OPTION...] cluster AccountUtilizationByUser [start=TIME] [end=TIME]",
	.summary = "report GPU hours by tenant",
	.options = options,
	.run = sreport_run,
};
