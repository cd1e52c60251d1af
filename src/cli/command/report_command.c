/* report_command.c - gpu-cli report: GPU-hours, cost and efficiency, by tenant, owner or job */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/calendar.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"
#include "cli/command/logs.h"
#include "cli/command/report_tables.h"
#include "cli/commands.h"
#include "cli/job/job_columns.h"
#include "cli/text/quantity.h"
#include "json/member.h"

static const struct option options[] = {
	OPTION("--since", NULL, "TIME", "the last 7d, 12h, 4w (default 30d)"),
	OPTION("--from", NULL, "DAY", "or a moment: 2030-01-31"),
	OPTION("--to", NULL, "DAY", "(default now)"),
	OPTION("--by", NULL, "WHAT", "tenant (default), owner or job", .completes = COMPLETES_WORDS,
	       .words = "tenant owner job"),
	OPTION("--limit", NULL, "N", "jobs or owners at most (default 1000)"),
	OPTION("--csv", NULL, NULL, "the billing export: tenants with all columns, as CSV"),
	OPTION("--quotas", NULL, NULL, "guaranteed GPUs that follow from what tenants used"),
	OPTION("--predictions", NULL, NULL, "how well run times and starts were predicted"),
	{ 0 },
};

/* A period in milliseconds since 1970. */
struct period {
	int64_t from_ms, to_ms;
};

static bool read_day(const char *option, const char *text, int64_t *ms, struct error *error)
{
	return calendar_read_day(text_of(text), ms) ||
	       error_set(
		   error, ERROR_INVALID,
		   "invalid %s '%.40s': expected a day such as 2030-01-31, or a moment such as "
		   "2030-01-31T12:00:00Z",
		   option, text);
}

static bool read_period(const struct arguments *arguments, struct period *period,
                        struct error *error)
{
	const char *since = arguments_value(arguments, "--since"),
		   *from = arguments_value(arguments, "--from"),
		   *to = arguments_value(arguments, "--to");
	int64_t length_ms = INT64_C(30) * 24 * 3600 * 1000;
	period->to_ms = clock_unix_ms();
	if (since && from)
		return error_set(error, ERROR_INVALID, "--since and --from say the same: give one");
	if ((to && !read_day("--to", to, &period->to_ms, error)) ||
	    (since && !quantity_duration("--since", since, &length_ms, error)))
		return false;
	period->from_ms = max64(period->to_ms - length_ms, 0);
	return !from || read_day("--from", from, &period->from_ms, error);
}

static void add_moment(struct buffer *to, const char *key, int64_t ms)
{
	char text[CALENDAR_TEXT_MAX];
	calendar_write(ms * 1000, 0, text);
	buffer_print(to, "%c%s=%s", strchr(to->data, '?') ? '&' : '?', key, text);
}

static void tenant_name(struct session *session, struct table *table, const json_t *usage)
{
	const char *name = member_text(usage, "tenant");
	(void)session;
	table_cell(table, "%s", *name ? name : member_text(usage, "tenant_id"));
}

static void report_count(struct table *table, const json_t *usage, const char *key)
{
	table_cell(table, "%lld", (long long)member_integer(usage, key));
}

static void usage_jobs(struct session *session, struct table *table, const json_t *usage)
{
	(void)session;
	report_count(table, usage, "jobs");
}

static void usage_completed(struct session *session, struct table *table, const json_t *usage)
{
	(void)session;
	report_count(table, usage, "completed_jobs");
}

static void usage_failed(struct session *session, struct table *table, const json_t *usage)
{
	(void)session;
	report_count(table, usage, "failed_jobs");
}

static void usage_cancelled(struct session *session, struct table *table, const json_t *usage)
{
	(void)session;
	report_count(table, usage, "cancelled_jobs");
}

static void gpu_hours(struct session *session, struct table *table, const json_t *usage)
{
	(void)session;
	if (member_has(usage, "gpu_hours"))
		table_cell(table, "%.3f", member_number(usage, "gpu_hours"));
	else
		table_cell(table, "%s", "-");
}

static void cpu_hours(struct session *session, struct table *table, const json_t *usage)
{
	(void)session;
	table_cell(table, "%.3f", member_number(usage, "cpu_core_hours"));
}

static void report_cost(struct session *session, struct table *table, const json_t *usage)
{
	(void)session;
	if (member_has(usage, "cost"))
		table_cell(table, "%.2f", member_number(usage, "cost"));
	else
		table_cell(table, "%s", "-");
}

/* A part of the GPU-hours; nothing where there were none. */
static void part_of_hours(struct table *table, const json_t *usage, const char *key)
{
	double all = member_number(usage, "gpu_hours");
	if (all > 0 && member_has(usage, key))
		table_cell(table, "%.0f%%", member_number(usage, key) / all * 100);
	else
		table_cell(table, "%s", "-");
}

static void report_useful(struct session *session, struct table *table, const json_t *usage)
{
	(void)session;
	part_of_hours(table, usage, "useful_gpu_hours");
}

static void report_idle(struct session *session, struct table *table, const json_t *usage)
{
	(void)session;
	part_of_hours(table, usage, "idle_gpu_hours");
}

static void report_lost(struct session *session, struct table *table, const json_t *usage)
{
	(void)session;
	part_of_hours(table, usage, "lost_gpu_hours");
}

static void owner_name(struct session *session, struct table *table, const json_t *usage)
{
	const char *user = member_text(usage, "user");
	(void)session;
	table_cell(table, "%s", *user ? user : "-");
}

/* The peak use of the reserved GPU memory. */
static void memory_used(struct session *session, struct table *table, const json_t *usage)
{
	(void)session;
	if (member_has(usage, "memory_used"))
		table_cell(table, "%.0f%%", member_number(usage, "memory_used") * 100);
	else
		table_cell(table, "%s", "-");
}

static const struct column tenant_columns[] = {
	COLUMN("TENANT", tenant_name, .shrinks = true),
	COLUMN("JOBS", usage_jobs, .right = true),
	COLUMN("DONE", usage_completed, .right = true),
	COLUMN("FAILED", usage_failed, .right = true),
	COLUMN("CANCELLED", usage_cancelled, .right = true),
	COLUMN("GPU-HOURS", gpu_hours, .right = true),
	COLUMN("USEFUL", report_useful, .right = true),
	COLUMN("IDLE", report_idle, .right = true),
	COLUMN("LOST", report_lost, .right = true),
	COLUMN("COST", report_cost, .right = true),
	COLUMN("CPU-HOURS", cpu_hours, .right = true, .extra = true),
};

static const struct column owner_columns[] = {
	COLUMN("OWNER", owner_name, .shrinks = true),
	COLUMN("TENANT", tenant_name, .shrinks = true),
	COLUMN("JOBS", usage_jobs, .right = true),
	COLUMN("GPU-HOURS", gpu_hours, .right = true),
	COLUMN("USEFUL", report_useful, .right = true),
	COLUMN("IDLE", report_idle, .right = true),
	COLUMN("LOST", report_lost, .right = true),
	COLUMN("COST", report_cost, .right = true),
};

static void energy(struct session *session, struct table *table, const json_t *job)
{
	(void)session;
	if (member_has(job, "energy_joules"))
		table_cell(table, "%.3g Wh", member_number(job, "energy_joules") / 3600);
	else
		table_cell(table, "%s", "-");
}

static void job_time(struct session *session, struct table *table, const json_t *job)
{
	(void)session;
	listing_duration(table,
	                 member_moment(job, "completed_at") - member_moment(job, "started_at"));
}

static const struct column job_table[] = {
	COLUMN("JOB", job_column_id),
	COLUMN("NAME", job_column_name, .shrinks = true),
	COLUMN("TENANT", job_column_tenant, .shrinks = true),
	COLUMN("STATE", job_column_state),
	COLUMN("GPUS", job_column_gpus, .right = true),
	COLUMN("TIME", job_time, .right = true),
	COLUMN("GPU-HOURS", gpu_hours, .right = true),
	COLUMN("LOST", report_lost, .right = true),
	COLUMN("COST", report_cost, .right = true),
	COLUMN("ENERGY", energy, .right = true, .extra = true),
	COLUMN("MEMORY", memory_used, .right = true, .extra = true),
};

/* GPUs that it had all together, in GPUs; below 0: that is not known any more. */
static double gpus_of(const json_t *job)
{
	double tasks = (double)max64(member_integer(job, "tasks"), 1);
	if (member_has(job, "gpu_fraction"))
		return tasks * member_number(job, "gpu_fraction");
	if (job_is_part(job))
		return -1;
	return tasks * (double)member_integer(job, "gpu_count");
}

/* Adds GPU-hours and how well memory was used, as far as that is known. */
static void add_figures(json_t *job)
{
	double hours =
	    (double)(member_moment(job, "completed_at") - member_moment(job, "started_at")) /
	    3600000.0;
	double gpus = gpus_of(job);
	double used = member_has(job, "gpu_seconds") ? member_number(job, "gpu_seconds") / 3600
	              : gpus >= 0                    ? gpus * hours
	                                             : -1;
	double limit = member_number(json_object_get(job, "guard"), "limit_mb");
	const json_t *memory = json_object_get(job, "gpu_memory_mb");
	if (limit <= 0)
		limit = json_number_value(memory);
	if (used >= 0)
		json_object_set_new(job, "gpu_hours", json_real(used));
	if (limit > 0 && member_integer(job, "peak_gpu_memory_mb") > 0)
		json_object_set_new(job, "memory_used",
		                    json_real(member_number(job, "peak_gpu_memory_mb") / limit));
}

/* Adds those of the newest `limit` jobs of that state that ran and ended in the period. */
static bool add_finished(struct session *session, const struct period *period, const char *state,
                         int64_t limit, json_t *jobs, struct error *error)
{
	struct buffer query = { 0 };
	size_t place;
	json_t *job;
	buffer_print(&query, "state=%s", state);
	if (session->only) {
		buffer_text(&query, "&tenant_id=");
		client_escape(&query, session->only);
	}
	json_t *all =
	    session_list(session, "/api/v1/jobs", query.data, "jobs", (size_t)limit, error);
	buffer_free(&query);
	if (!all)
		return false;
	json_array_foreach(all, place, job)
	{
		int64_t end = member_moment(job, "completed_at");
		if (end < period->from_ms || end > period->to_ms ||
		    member_moment(job, "started_at") < 0)
			continue;
		add_figures(job);
		json_array_append(jobs, job);
	}
	json_decref(all);
	return true;
}

static int by_end(const void *left, const void *right)
{
	int64_t a = member_moment(*(json_t *const *)left, "completed_at"),
		b = member_moment(*(json_t *const *)right, "completed_at");
	return (a < b) - (a > b);
}

/* The first `limit` jobs by their end, the latest first. */
static json_t *latest(const json_t *jobs, size_t limit)
{
	size_t count = json_array_size(jobs);
	json_t **order = memory_zero(count + 1, sizeof(json_t *)), *first = json_array();
	for (size_t i = 0; i < count; i++)
		order[i] = json_array_get(jobs, i);
	qsort(order, count, sizeof(json_t *), by_end);
	for (size_t i = 0; i < count && i < limit; i++)
		json_array_append(first, order[i]);
	free(order);
	return first;
}

/* Jobs that ran and ended in the period, the latest first. */
static json_t *finished_jobs(struct session *session, const struct period *period, int64_t limit,
                             struct error *error)
{
	static const char *const states[] = { "completed", "failed", "cancelled" };
	json_t *jobs = json_array(), *first = NULL;
	bool ok = true;
	for (size_t i = 0; ok && i < sizeof(states) / sizeof(states[0]); i++)
		ok = add_finished(session, period, states[i], limit, jobs, error);
	if (ok)
		first = latest(jobs, (size_t)limit);
	json_decref(jobs);
	return first;
}

/* The rows of the table: each tenant, followed by a row that includes its children if they used
 * anything. */
static json_t *tenant_rows(const json_t *tenants)
{
	json_t *rows = json_array(), *tenant;
	size_t place;
	json_array_foreach(tenants, place, tenant)
	{
		json_t *row = json_copy(tenant),
		       *all = json_object_get(tenant, "including_children");
		json_array_append(rows, tenant);
		if (all && json_object_update(row, all) == 0 && !json_equal(row, tenant)) {
			json_object_set_new(
			    row, "tenant",
			    json_sprintf("%s with children", member_text(tenant, "tenant")));
			json_array_append(rows, row);
		}
		json_decref(row);
	}
	return rows;
}

/* The billing export of the service, as it stands. */
static int print_csv(struct session *session, const struct period *period)
{
	struct buffer path = { 0 };
	if (session->only)
		buffer_text(&path, session_path(session, "/api/v1/tenants/%s/usage?format=csv",
		                                session->only));
	else
		buffer_text(&path, "/api/v1/reports/billing?format=csv");
	add_moment(&path, "from", period->from_ms);
	/* What ended within this second counts. */
	add_moment(&path, "to", period->to_ms + 999);
	int status = logs_show(session, path.data, 0);
	buffer_free(&path);
	return status;
}

static int by_tenant(struct session *session, const struct period *period)
{
	struct error error = { 0 };
	struct buffer path = { 0 };
	if (session->only)
		buffer_text(&path,
		            session_path(session, "/api/v1/tenants/%s/usage", session->only));
	else
		buffer_text(&path, "/api/v1/reports/billing");
	add_moment(&path, "from", period->from_ms);
	/* What ended within this second counts. */
	add_moment(&path, "to", period->to_ms + 999);
	json_t *answer = session_get(session, path.data, &error);
	buffer_free(&path);
	if (!answer)
		return session_fail(session, &error);
	json_t *tenants = session->only ? json_pack("[O]", json_object_get(answer, "usage"))
	                                : json_incref(json_object_get(answer, "tenants"));
	bool is_table = session->form == FORM_TABLE || session->form == FORM_WIDE;
	json_t *rows = is_table ? tenant_rows(tenants) : json_incref(tenants);
	if (json_array_size(tenants) == 0 && session->form == FORM_TABLE)
		fputs("nobody used anything in this time\n", stderr);
	else
		listing_print(session, rows, COLUMNS(tenant_columns), "tenant_id");
	json_decref(rows);
	json_decref(tenants);
	json_decref(answer);
	return CLI_FINE;
}

static int64_t job_number(const json_t *job, const char *key)
{
	const char *id = member_text(job, key);
	return strncmp(id, "job-", 4) == 0 ? strtoll(id + 4, NULL, 10) : 0;
}

/* Collects hours and costs by the id of their job, page after page, the newest job first, down to
 * the job `oldest`. */
static bool collect_costs(struct session *session, const char *path, int64_t oldest, json_t *costs,
                          struct error *error)
{
	struct buffer page = { 0 };
	bool more = true, ok = true;
	buffer_text(&page, path);
	while (ok && more) {
		json_t *answer = session_get(session, page.data, error), *job;
		const char *next = member_text(answer, "next_after");
		size_t place;
		json_array_foreach(json_object_get(answer, "jobs"), place, job)
		    json_object_set(costs, member_text(job, "job_id"), job);
		buffer_clear(&page);
		buffer_print(&page, "%s&after=%s", path, next);
		more = *next && job_number(answer, "next_after") > oldest;
		ok = answer != NULL;
		json_decref(answer);
	}
	buffer_free(&page);
	return ok;
}

/* The path of a report with its period and tenant. */
static void report_path(struct session *session, struct buffer *path, const char *base,
                        const struct period *period)
{
	buffer_text(path, base);
	add_moment(path, "from", period->from_ms);
	add_moment(path, "to", period->to_ms + 999);
	if (session->only) {
		buffer_text(path, "&tenant_id=");
		client_escape(path, session->only);
	}
}

/* Adds the GPU-hours of each job in the period and what they cost: only the service knows the
 * prices of that time. */
static bool add_costs(struct session *session, const struct period *period, json_t *jobs,
                      struct error *error)
{
	static const char *const figures[] = { "gpu_hours", "useful_gpu_hours", "idle_gpu_hours",
		                               "lost_gpu_hours", "cost" };
	json_t *costs = json_object(), *job;
	struct buffer path = { 0 };
	int64_t oldest = INT64_MAX;
	size_t place;
	json_array_foreach(jobs, place, job) oldest = min64(oldest, job_number(job, "id"));
	report_path(session, &path, "/api/v1/reports/jobs?limit=1000", period);
	bool done = collect_costs(session, path.data, oldest, costs, error);
	json_array_foreach(jobs, place, job)
	{
		const json_t *billed = json_object_get(costs, member_text(job, "id"));
		if (!billed)
			continue;
		for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
			json_object_set(job, figures[i], json_object_get(billed, figures[i]));
	}
	json_decref(costs);
	buffer_free(&path);
	return done;
}

static int by_job(struct session *session, const struct period *period, int64_t limit)
{
	struct error error = { 0 };
	json_t *jobs = finished_jobs(session, period, limit, &error);
	if (!jobs || !add_costs(session, period, jobs, &error)) {
		json_decref(jobs);
		return session_fail(session, &error);
	}
	if (json_array_size(jobs) == 0 && session->form == FORM_TABLE)
		fputs("no job ended in this time\n", stderr);
	else
		listing_print(session, jobs, COLUMNS(job_table), "id");
	json_decref(jobs);
	return CLI_FINE;
}

static int by_owner(struct session *session, const struct period *period, int64_t limit)
{
	struct error error = { 0 };
	struct buffer path = { 0 };
	report_path(session, &path, "/api/v1/reports/owners", period);
	buffer_print(&path, "&limit=%lld", (long long)min64(limit, 1000));
	json_t *answer = session_get(session, path.data, &error);
	json_t *owners = json_object_get(answer, "owners");
	buffer_free(&path);
	if (!answer)
		return session_fail(session, &error);
	if (json_array_size(owners) == 0 && session->form == FORM_TABLE)
		fputs("nobody used anything in this time\n", stderr);
	else
		listing_print(session, owners, COLUMNS(owner_columns), "user");
	json_decref(answer);
	return CLI_FINE;
}

static int by_quota(struct session *session)
{
	struct buffer path = { 0 };
	buffer_text(&path, "/api/v1/reports/quotas");
	if (session->only) {
		buffer_text(&path, "?tenant_id=");
		client_escape(&path, session->only);
	}
	int status = report_quotas(session, path.data);
	buffer_free(&path);
	return status;
}

static int by_prediction(struct session *session, const struct period *period)
{
	struct buffer path = { 0 };
	report_path(session, &path, "/api/v1/reports/predictions", period);
	int status = report_predictions(session, path.data);
	buffer_free(&path);
	return status;
}

static int report_run(const struct arguments *arguments)
{
	const char *by = arguments_value(arguments, "--by"),
		   *limit_text = arguments_value(arguments, "--limit");
	struct session session;
	struct period period = { 0 };
	struct error error = { 0 };
	int64_t limit = 1000;
	int status;
	bool jobs = by && strcmp(by, "job") == 0, owners = by && strcmp(by, "owner") == 0;
	if (by && !jobs && !owners && strcmp(by, "tenant") != 0)
		return cli_misused(arguments->command,
		                   "invalid --by '%.20s': expected tenant, owner or job", by);
	if (!read_period(arguments, &period, &error) ||
	    (limit_text &&
	     !quantity_integer("--limit", limit_text, 1, LISTING_MAX, &limit, &error)))
		return cli_misused(arguments->command, "%s", error.text);
	bool csv = arguments_has(arguments, "--csv");
	if (csv && (jobs || owners))
		return cli_misused(arguments->command, "--csv is by tenant: leave out --by");
	bool predictions = arguments_has(arguments, "--predictions");
	bool quotas = arguments_has(arguments, "--quotas");
	if ((predictions || quotas) && (csv || by || predictions == quotas))
		return cli_misused(
		    arguments->command, "%s has its own table: leave out --by, --csv and %s",
		    quotas ? "--quotas" : "--predictions", quotas ? "--predictions" : "--quotas");
	if (arguments->operand_count > 0)
		return cli_misused(arguments->command,
		                   "unexpected argument '%.80s' (use --tenant-id)",
		                   arguments->operands[0]);
	if (!session_open(&session, arguments, &status))
		return status;
	status = csv           ? print_csv(&session, &period)
	         : predictions ? by_prediction(&session, &period)
	         : quotas      ? by_quota(&session)
	         : jobs        ? by_job(&session, &period, limit)
	         : owners      ? by_owner(&session, &period, limit)
	                       : by_tenant(&session, &period);
	session_close(&session);
	return status;
}

const struct cli_command report_command = {
	.name = "report",
	.arguments = "[OPTION...]",
	.summary = "GPU-hours, cost and efficiency, by tenant, owner or job",
	.details =
	    "The GPU-hours are USEFUL, IDLE (reserved, before the task had started) or LOST:\n"
	    "after the last checkpoint of runs that failed, were stopped or were lost with\n"
	    "their node. What still runs counts as useful. By job, MEMORY is the most GPU\n"
	    "memory that it used, of what it reserved, if it was measured, and COST is that\n"
	    "of its GPU-HOURS in this time, at the price of then. JOBS are those that had\n"
	    "GPUs or CPUs in this time; those that ended without are only in the columns\n"
	    "after it.\n"
	    "A tenant's line has its own use: these lines add up to the total. A second line,\n"
	    "NAME with children, includes the tenants below it, if they used anything.\n"
	    "--predictions: of the jobs that ended, how many took no longer than predicted\n"
	    "for nine of ten (WITHIN 90%) and half to twice the predicted median (WITHIN X2),\n"
	    "and the factor within which half of the predictions were; of those that started,\n"
	    "how many had a promised start, and kept it. Over all, by tenant, and by what\n"
	    "they were compared by. Run times count for the last finished jobs, which teach\n"
	    "predictions.\n"
	    "--quotas: the GPUs that each tenant used on average, where what is longer ago\n"
	    "counts less, and what it could be guaranteed instead of its quota.\n",
	.examples = "report --since 7d\n"
		    "report --by job --tenant-id physics --since 24h\n"
		    "report --predictions --since 4w\n"
		    "report --from 2030-01-01 --to 2030-02-01 --csv >january.csv\n",
	.options = options,
	.asks = true,
	.lists = true,
	.run = report_run,
};
