/* job_row.c - a job as squeue, sacct and scontrol show it */
#include "cli/slurm/job_row.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#include "cli/slurm/submission.h"
#include "slurm/value.h"
#include "json/member.h"

enum { EXIT_TIME_LIMIT = 124, MS_SECOND = 1000, MINUTE_S = 60 };

static const struct {
	const char *word, *letters, *ours;
} states[] = {
	{ "PENDING", "PD", "pending,preempted" },
	{ "CONFIGURING", "CF", "scheduled" },
	{ "RUNNING", "R", "running" },
	{ "COMPLETED", "CD", "completed" },
	{ "FAILED", "F", "failed" },
	{ "TIMEOUT", "TO", "failed" },
	{ "OUT_OF_MEMORY", "OOM", "failed" },
	{ "NODE_FAIL", "NF", "failed" },
	{ "CANCELLED", "CA", "cancelled" },
	{ "PREEMPTED", "PR", "preempted" },
	{ "SUSPENDED", "S", "suspended" },
	{ "COMPLETING", "CG", "running" },
};
enum { STATES = sizeof(states) / sizeof(states[0]) };

const char *job_row_state(const json_t *job)
{
	const char *state = member_text(job, "state");
	if (strcmp(state, "failed") == 0 && member_integer(job, "exit_code") == EXIT_TIME_LIMIT)
		return "TIMEOUT";
	for (int i = 0; i < STATES; i++)
		if (slurm_in_list(states[i].ours, state))
			return states[i].word;
	return "UNKNOWN";
}

const char *job_row_short_state(const json_t *job)
{
	const char *word = job_row_state(job);
	for (int i = 0; i < STATES; i++)
		if (strcmp(states[i].word, word) == 0)
			return states[i].letters;
	return "?";
}

static void add_states(struct buffer *to, const char *ours)
{
	for (const char *at = ours; *at;) {
		size_t size = strcspn(at, ",");
		char word[32];
		snprintf(word, sizeof(word), "%.*s", (int)size, at);
		if (to->size == 0 || !slurm_in_list(to->data, word))
			buffer_print(to, "%s%s", to->size > 0 ? "," : "", word);
		at += size + (at[size] == ',');
	}
}

bool job_row_states(const char *list, struct buffer *to, struct error *error)
{
	for (const char *at = list; *at;) {
		size_t size = strcspn(at, ",");
		bool all = size == 3 && strncasecmp(at, "all", 3) == 0, known = all;
		for (int i = 0; i < STATES; i++)
			if (all ||
			    (strlen(states[i].word) == size &&
			     strncasecmp(states[i].word, at, size) == 0) ||
			    (strlen(states[i].letters) == size &&
			     strncasecmp(states[i].letters, at, size) == 0)) {
				/* No job is ever suspended where the service does not know that. */
				if (strcmp(states[i].ours, "suspended") != 0)
					add_states(to, states[i].ours);
				known = true;
			}
		if (!known)
			return error_set(error, ERROR_INVALID, "invalid state '%.*s'", (int)size,
			                 at);
		at += size + (at[size] == ',');
	}
	buffer_text(to, "");
	return true;
}

void job_row_time(struct buffer *to, int64_t unix_ms)
{
	char text[40];
	time_t seconds = (time_t)(unix_ms / MS_SECOND);
	struct tm day;
	if (unix_ms <= 0 || !localtime_r(&seconds, &day) ||
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &day) == 0)
		buffer_text(to, "N/A");
	else
		buffer_text(to, text);
}

static const struct job_row *row_of(const void *row)
{
	return row;
}

static const json_t *job_of(const void *row)
{
	return row_of(row)->job;
}

static int64_t tasks_of(const json_t *job)
{
	int64_t tasks = member_integer(job, "tasks");
	return tasks > 0 ? tasks : 1;
}

/* Seconds that it has run, or did. */
static int64_t elapsed_s(const struct job_row *row)
{
	int64_t start = member_moment(row->job, "started_at");
	int64_t end = member_moment(row->job, "completed_at");
	if (start <= 0)
		return 0;
	if (end <= 0)
		end = strcmp(member_text(row->job, "state"), "running") == 0 ? row->now_ms : start;
	return end > start ? (end - start) / MS_SECOND : 0;
}

static int64_t limit_s(const json_t *job)
{
	return (int64_t)(member_number(job, "max_runtime_minutes") * MINUTE_S + 0.5);
}

static void print_id(struct buffer *to, const void *row)
{
	buffer_text(to, submission_number(member_text(job_of(row), "id")));
}

static void print_name(struct buffer *to, const void *row)
{
	buffer_text(to, member_text(job_of(row), "name"));
}

static void print_user(struct buffer *to, const void *row)
{
	const char *user = member_text(job_of(row), "user");
	buffer_text(to, *user ? user : "-");
}

static void print_account(struct buffer *to, const void *row)
{
	buffer_text(
	    to, session_tenant_name(row_of(row)->session, member_text(job_of(row), "tenant_id")));
}

static void print_partition(struct buffer *to, const void *row)
{
	const char *label = member_text(json_object_get(job_of(row), "node_labels"), "partition");
	buffer_text(to, *label ? label : "all");
}

static void print_state(struct buffer *to, const void *row)
{
	buffer_text(to, job_row_state(job_of(row)));
}

static void print_short_state(struct buffer *to, const void *row)
{
	buffer_text(to, job_row_short_state(job_of(row)));
}

static void print_used(struct buffer *to, const void *row)
{
	slurm_print_elapsed(to, elapsed_s(row), false);
}

static void print_elapsed(struct buffer *to, const void *row)
{
	slurm_print_elapsed(to, elapsed_s(row), true);
}

static void print_elapsed_raw(struct buffer *to, const void *row)
{
	buffer_print(to, "%lld", (long long)elapsed_s(row));
}

static void print_limit(struct buffer *to, const void *row)
{
	int64_t limit = limit_s(job_of(row));
	if (limit > 0)
		slurm_print_elapsed(to, limit, false);
	else
		buffer_text(to, "UNLIMITED");
}

static void print_left(struct buffer *to, const void *row)
{
	int64_t limit = limit_s(job_of(row)), used = elapsed_s(row);
	if (limit > 0)
		slurm_print_elapsed(to, limit > used ? limit - used : 0, false);
	else
		buffer_text(to, "UNLIMITED");
}

/* How many nodes it is on, or at least needs. */
static void print_nodes(struct buffer *to, const void *row)
{
	const json_t *allocations = json_object_get(job_of(row), "allocations");
	json_t *seen = json_object();
	size_t place;
	const json_t *one;
	json_array_foreach(allocations, place, one)
	{
		const char *node = member_text(one, "node_name");
		if (!*node)
			node = member_text(one, "node");
		if (*node)
			json_object_set_new(seen, node, json_true());
	}
	size_t count = json_object_size(seen);
	buffer_print(to, "%zu", count > 0 ? count : 1);
	json_decref(seen);
}

static void print_node_list(struct buffer *to, const void *row)
{
	buffer_text(to, member_text(job_of(row), "node_name"));
}

static void print_reason(struct buffer *to, const void *row)
{
	const json_t *job = job_of(row);
	const char *reason = member_text(job, "reason");
	if (strcmp(member_text(job, "state"), "running") == 0 || member_has(job, "completed_at"))
		buffer_text(to, "None");
	else if (member_flag(job, "held"))
		buffer_text(to, "JobHeldUser");
	else
		buffer_text(to, *reason ? reason : "Resources");
}

static void print_nodes_or_reason(struct buffer *to, const void *row)
{
	const char *node = member_text(job_of(row), "node_name");
	if (*node || member_has(job_of(row), "completed_at")) {
		buffer_text(to, node);
		return;
	}
	buffer_text(to, "(");
	print_reason(to, row);
	buffer_text(to, ")");
}

static void print_cpus(struct buffer *to, const void *row)
{
	const json_t *job = job_of(row);
	double cpus = member_number(job, "cpu_cores");
	buffer_print(to, "%lld", (long long)((cpus > 1 ? cpus : 1) * (double)tasks_of(job)));
}

static void print_memory(struct buffer *to, const void *row)
{
	int64_t mib = member_integer(job_of(row), "memory_mb");
	if (mib > 0 && mib % 1024 == 0)
		buffer_print(to, "%lldG", (long long)mib / 1024);
	else
		buffer_print(to, "%lldM", (long long)mib);
}

static void print_gres(struct buffer *to, const void *row)
{
	const json_t *job = job_of(row);
	int64_t gpus = member_integer(job, "gpu_count");
	const char *models = member_text(job, "gpu_model");
	if (gpus > 0)
		buffer_print(to, "gres/gpu%s%s:%lld", *models ? ":" : "", models, (long long)gpus);
	else if (member_integer(job, "gpu_memory_mb") > 0 || member_number(job, "gpu_fraction") > 0)
		buffer_text(to, "gres/gpu:part");
	else
		buffer_text(to, "N/A");
}

static void print_tres(struct buffer *to, const void *row)
{
	const json_t *job = job_of(row);
	int64_t gpus = member_integer(job, "gpu_count") * tasks_of(job);
	buffer_text(to, "cpu=");
	print_cpus(to, row);
	if (member_integer(job, "memory_mb") > 0) {
		buffer_text(to, ",mem=");
		print_memory(to, row);
	}
	if (gpus > 0)
		buffer_print(to, ",gres/gpu=%lld", (long long)gpus);
}

static void print_priority(struct buffer *to, const void *row)
{
	buffer_print(to, "%lld", (long long)member_integer(job_of(row), "priority"));
}

static void print_start(struct buffer *to, const void *row)
{
	int64_t start = member_moment(job_of(row), "started_at");
	job_row_time(to, start > 0 ? start : member_moment(job_of(row), "estimated_start"));
}

static void print_end(struct buffer *to, const void *row)
{
	const json_t *job = job_of(row);
	int64_t end = member_moment(job, "completed_at");
	int64_t start = member_moment(job, "started_at");
	if (end <= 0 && start > 0 && limit_s(job) > 0)
		end = start + limit_s(job) * MS_SECOND;
	job_row_time(to, end);
}

static void print_submit(struct buffer *to, const void *row)
{
	job_row_time(to, member_moment(job_of(row), "submitted_at"));
}

static void print_exit(struct buffer *to, const void *row)
{
	int64_t code = member_integer(job_of(row), "exit_code");
	if (code > 128 && code < 193)
		buffer_print(to, "0:%lld", (long long)code - 128);
	else
		buffer_print(to, "%lld:0", (long long)code);
}

static void print_max_rss(struct buffer *to, const void *row)
{
	if (member_has(job_of(row), "peak_memory_mb"))
		buffer_print(to, "%lldK",
		             (long long)member_integer(job_of(row), "peak_memory_mb") * 1024);
}

static void print_cpu_time(struct buffer *to, const void *row)
{
	slurm_print_elapsed(to, member_integer(job_of(row), "cpu_seconds"), true);
}

static void print_array(struct buffer *to, const void *row)
{
	const char *array = member_text(job_of(row), "array_id");
	buffer_text(to, submission_number(*array ? array : member_text(job_of(row), "id")));
}

static void print_index(struct buffer *to, const void *row)
{
	if (member_has(job_of(row), "array_index"))
		buffer_print(to, "%lld", (long long)member_integer(job_of(row), "array_index"));
	else
		buffer_text(to, "N/A");
}

static void print_command(struct buffer *to, const void *row)
{
	const json_t *words = json_object_get(job_of(row), "command");
	size_t place;
	const json_t *word;
	json_array_foreach(words, place, word)
	    buffer_print(to, "%s%s", place > 0 ? " " : "", json_string_value(word));
	if (json_array_size(words) == 0)
		buffer_text(to, member_has(job_of(row), "script") ? "(script)" : "(null)");
}

static void print_directory(struct buffer *to, const void *row)
{
	buffer_text(to, member_text(job_of(row), "working_directory"));
}

static void print_comment(struct buffer *to, const void *row)
{
	buffer_text(to, member_text(json_object_get(job_of(row), "annotations"), "comment"));
}

static void print_tasks(struct buffer *to, const void *row)
{
	buffer_print(to, "%lld", (long long)tasks_of(job_of(row)));
}

static void print_nothing(struct buffer *to, const void *row)
{
	(void)row;
	buffer_text(to, "normal");
}

const struct slurm_column job_columns[] = {
	{ 'i', "JobID", "JOBID", -12, print_id },
	{ 'A', "JobIDRaw", "JOBID", -12, print_id },
	{ 'j', "JobName", "NAME", 10, print_name },
	{ 'u', "User", "USER", 9, print_user },
	{ 'a', "Account", "ACCOUNT", 10, print_account },
	{ 'P', "Partition", "PARTITION", 10, print_partition },
	{ 'T', "State", "STATE", 10, print_state },
	{ 't', "StateCompact", "ST", 2, print_short_state },
	{ 'M', "TimeUsed", "TIME", 10, print_used },
	{ 0, "Elapsed", "Elapsed", 10, print_elapsed },
	{ 0, "ElapsedRaw", "ElapsedRaw", 10, print_elapsed_raw },
	{ 'l', "Timelimit", "TIME_LIMIT", 10, print_limit },
	{ 'L', "TimeLeft", "TIME_LEFT", 10, print_left },
	{ 'D', "NNodes", "NODES", 8, print_nodes },
	{ 'R', "ReasonList", "NODELIST(REASON)", 20, print_nodes_or_reason },
	{ 'N', "NodeList", "NODELIST", 15, print_node_list },
	{ 'B', "BatchHost", "EXEC_HOST", 15, print_node_list },
	{ 'r', "Reason", "REASON", 20, print_reason },
	{ 'C', "AllocCPUS", "CPUS", 10, print_cpus },
	{ 0, "NCPUS", "NCPUS", 10, print_cpus },
	{ 0, "ReqCPUS", "ReqCPUS", 10, print_cpus },
	{ 'm', "ReqMem", "MIN_MEMORY", 10, print_memory },
	{ 'b', "TresPerNode", "TRES_PER_NODE", 15, print_gres },
	{ 0, "AllocTRES", "AllocTRES", 10, print_tres },
	{ 0, "ReqTRES", "ReqTRES", 10, print_tres },
	{ 'Q', "Priority", "PRIORITY", 10, print_priority },
	{ 'p', NULL, "PRIORITY", 10, print_priority },
	{ 'q', "QOS", "QOS", 10, print_nothing },
	{ 'S', "Start", "START_TIME", 19, print_start },
	{ 'e', "End", "END_TIME", 19, print_end },
	{ 'V', "Submit", "SUBMIT_TIME", 19, print_submit },
	{ 0, "ExitCode", "ExitCode", 8, print_exit },
	{ 0, "DerivedExitCode", "DerivedExitCode", 15, print_exit },
	{ 0, "MaxRSS", "MaxRSS", 10, print_max_rss },
	{ 0, "TotalCPU", "TotalCPU", 10, print_cpu_time },
	{ 0, "CPUTime", "CPUTime", 10, print_cpu_time },
	{ 'F', "ArrayJobID", "ARRAY_JOB_ID", 12, print_array },
	{ 'K', "ArrayTaskID", "ARRAY_TASK_ID", 13, print_index },
	{ 'o', "SubmitLine", "COMMAND", 20, print_command },
	{ 'Z', "WorkDir", "WORK_DIR", 20, print_directory },
	{ 'k', "Comment", "COMMENT", 14, print_comment },
	{ 0, "NTasks", "NTasks", 8, print_tasks },
	{ 0 },
};
