/* report_calls.c - what tenants used and what it cost, over a period */
#include "api/tenant/report_calls.h"

#include <inttypes.h>

#include "api/service/page.h"
#include "api/service/service_state.h"
#include "api/tenant/tenant_calls.h"
#include "api/text/ids.h"
#include "api/text/times.h"
#include "store/usage.h"

#define HOUR_S INT64_C(3600)
#define MONTH_MS (30 * DAY_MS)

struct report {
	int64_t from_ms, until_ms, now_ms;
	int64_t tenant_id;      /* 0: all that the caller may see */
	int64_t read_tenant_id; /* 0: all, as those below `tenant_id` count too */
	bool is_csv;
	struct usage *usage;
	int64_t count;
};

static bool report_read_time(struct request *request, const char *name, int64_t otherwise,
                             int64_t *value)
{
	struct text text = query_get(&request->exchange->query, name);
	*value = otherwise;
	if (!text.data || text.size == 0 || calendar_read_day(text, value))
		return true;
	request_refuse(request, 400, "invalid",
	               "%s must be a day such as 2026-01-31 or a time such as 2026-01-31T12:00:00Z",
	               name);
	return false;
}

static bool read_format(struct request *request, struct report *report)
{
	struct text format = query_get(&request->exchange->query, "format");
	struct text accept = headers_get(&request->exchange->headers, "accept");
	report->is_csv =
	    format.data ? text_is(format, "csv") : accept.data && text_starts(accept, "text/csv");
	if (!format.data || report->is_csv || text_is(format, "json"))
		return true;
	request_refuse(request, 400, "invalid", "format must be json or csv");
	return false;
}

static struct report *read_report(struct request *request)
{
	struct report *report = arena_alloc(&request->engine.arena, sizeof(*report));
	*report = (struct report){ .now_ms = service_time_ms(request->service) };
	request->state = report;
	if (!report_read_time(request, "to", report->now_ms, &report->until_ms) ||
	    !report_read_time(request, "from", max64(report->until_ms - MONTH_MS, 0),
	                      &report->from_ms) ||
	    !read_format(request, report))
		return NULL;
	if (report->from_ms < report->until_ms)
		return report;
	request_refuse(request, 400, "invalid", "from must be before to");
	return NULL;
}

static bool read_usage(struct engine_request *engine, struct store *store, struct error *error)
{
	struct report *report = request_of(engine)->state;
	return usage_read(store, report->read_tenant_id, report->from_ms, report->until_ms,
	                  report->now_ms, &engine->arena, &report->usage, &report->count, error);
}

/* A tenant's line. A tenant without any use has one if a tenant below it has some. */
struct line {
	struct usage own, all;              /* of the tenant itself; and with those below it */
	const struct tenant_record *tenant; /* NULL: deleted since */
};

/* The lines that the caller wants, in the order of the ids of their tenants. */
struct lines {
	struct line **at;
	size_t count;
};

static bool line_is_wanted(const struct request *request, int64_t tenant_id)
{
	const struct report *report = request->state;
	return roster_may_see(&request->service->roster, &request->identity, tenant_id) &&
	       (report->tenant_id == 0 || report->tenant_id == tenant_id);
}

static void usage_add(struct usage *to, const struct usage *more)
{
	to->jobs += more->jobs;
	to->completed += more->completed;
	to->failed += more->failed;
	to->cancelled += more->cancelled;
	to->runs += more->runs;
	to->gpu_ms += more->gpu_ms;
	to->cost += more->cost;
	to->gpu_memory_s += more->gpu_memory_s;
	to->cpu_s += more->cpu_s;
}

static struct line *line_get(struct request *request, struct map *lines, int64_t tenant_id)
{
	struct line *line = map_get(lines, tenant_id);
	if (line)
		return line;
	line = arena_alloc(&request->engine.arena, sizeof(*line));
	*line = (struct line){
		.own.tenant_id = tenant_id,
		.all.tenant_id = tenant_id,
		.tenant =
		    catalogue_get(service_catalogue(request->service), RECORD_TENANT, tenant_id, 0),
	};
	map_put(lines, tenant_id, line);
	return line;
}

/* Adds a tenant's use to its own line and to those of the tenants above it. */
static void line_add_usage(struct request *request, struct map *lines, const struct usage *usage)
{
	const struct roster *roster = &request->service->roster;
	int64_t id = usage->tenant_id;
	if (line_is_wanted(request, id))
		line_get(request, lines, id)->own = *usage;
	/* Parents form a tree, but while tenants change one by one they may not seem to. */
	for (size_t level = 0; id != 0 && level <= roster->by_id.count; level++) {
		const struct roster_tenant *tenant = roster_find(roster, id);
		if (line_is_wanted(request, id))
			usage_add(&line_get(request, lines, id)->all, usage);
		id = tenant ? tenant->parent_id : 0;
	}
}

static int line_compare(const void *left, const void *right)
{
	int64_t a = (*(struct line *const *)left)->own.tenant_id,
		b = (*(struct line *const *)right)->own.tenant_id;
	return (a > b) - (a < b);
}

/* Needs the catalogue's lock, for as long as the lines are used. */
static struct lines report_lines(struct request *request)
{
	const struct report *report = request->state;
	struct map map = { 0 };
	for (int64_t i = 0; i < report->count; i++)
		line_add_usage(request, &map, &report->usage[i]);
	struct lines lines = {
		arena_alloc(&request->engine.arena, (map.count + 1) * sizeof(struct line *)), 0
	};
	for (size_t i = 0; i < map.capacity; i++)
		if (map.entries[i].value)
			lines.at[lines.count++] = map.entries[i].value;
	map_free(&map);
	if (lines.count > 1)
		qsort(lines.at, lines.count, sizeof(*lines.at), line_compare);
	return lines;
}

static void put_figures(struct json_writer *json, const struct usage *usage)
{
	json_put_integer(json, "jobs", usage->jobs);
	json_put_integer(json, "completed_jobs", usage->completed);
	json_put_integer(json, "failed_jobs", usage->failed);
	json_put_integer(json, "cancelled_jobs", usage->cancelled);
	json_put_integer(json, "runs", usage->runs);
	json_put_decimal(json, "gpu_hours", usage->gpu_ms / HOUR_MS, 3);
	json_put_decimal(json, "gpu_memory_mb_hours", usage->gpu_memory_s / HOUR_S, 0);
	json_put_decimal(json, "cpu_core_hours", usage->cpu_s / HOUR_S, 3);
}

static void put_line(struct json_writer *json, const char *key, const struct line *line)
{
	json_open_object(json, key);
	json_put_id(json, "tenant_id", ID_TENANT, line->own.tenant_id);
	json_put_string(json, "tenant", line->tenant ? line->tenant->name : NULL);
	put_figures(json, &line->own);
	json_put_decimal(json, "cost_per_gpu_hour",
	                 line->tenant ? line->tenant->cost_per_gpu_hour : 0, 6);
	json_put_decimal(json, "cost", line->own.cost, 6);
	json_open_object(json, "including_children");
	put_figures(json, &line->all);
	json_put_decimal(json, "cost", line->all.cost, 6);
	json_close(json);
	json_close(json);
}

/* A field in quotes, where those inside are doubled. A text that a spreadsheet would take
 * for a formula gets an apostrophe in front. */
static void put_csv_text(struct buffer *text, const char *value)
{
	buffer_bytes(text, "\"", 1);
	if (*value && strchr("=+-@\t\r", *value))
		buffer_bytes(text, "'", 1);
	for (; *value; value++) {
		if (*value == '"')
			buffer_bytes(text, "\"", 1);
		buffer_bytes(text, value, 1);
	}
	buffer_bytes(text, "\"", 1);
}

static void put_csv_decimal(struct buffer *text, int64_t value, int64_t scale, int digits)
{
	buffer_print(text, ",%" PRId64 ".%0*" PRId64, value / scale, digits, value % scale);
}

/* Jobs and how they ended, and what was used. */
static void put_csv_figures(struct buffer *text, const struct usage *usage)
{
	buffer_print(text, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, usage->jobs,
	             usage->completed, usage->failed, usage->cancelled);
	put_csv_decimal(text, usage->gpu_ms / HOUR_MS, 1000, 3);
	buffer_print(text, ",%" PRId64, usage->gpu_memory_s / HOUR_S);
	put_csv_decimal(text, usage->cpu_s / HOUR_S, 1000, 3);
}

static void put_csv_line(struct buffer *text, const struct line *line)
{
	buffer_print(text, "tenant-%" PRId64 ",", line->own.tenant_id);
	put_csv_text(text, line->tenant ? line->tenant->name : "");
	put_csv_figures(text, &line->own);
	put_csv_decimal(text, line->tenant ? line->tenant->cost_per_gpu_hour : 0, 1000000, 6);
	put_csv_decimal(text, line->own.cost, 1000000, 6);
	buffer_print(text, ",%" PRId64, line->own.runs);
	put_csv_figures(text, &line->all);
	put_csv_decimal(text, line->all.cost, 1000000, 6);
	buffer_print(text, ",%" PRId64 "\r\n", line->all.runs);
}

static void answer_csv(struct request *request)
{
	static const char *const figures[] = {
		"jobs",           "completed_jobs", "failed_jobs",
		"cancelled_jobs", "gpu_hours",      "gpu_memory_mb_hours",
		"cpu_core_hours", "cost",           "runs",
	};
	struct catalogue *catalogue = service_catalogue(request->service);
	buffer_clear(&request->body);
	buffer_text(&request->body,
	            "tenant_id,tenant,jobs,completed_jobs,failed_jobs,cancelled_jobs,gpu_hours,"
	            "gpu_memory_mb_hours,cpu_core_hours,cost_per_gpu_hour,cost,runs");
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		buffer_print(&request->body, ",including_children_%s", figures[i]);
	buffer_text(&request->body, "\r\n");
	catalogue_lock(catalogue);
	struct lines lines = report_lines(request);
	for (size_t i = 0; i < lines.count; i++)
		put_csv_line(&request->body, lines.at[i]);
	catalogue_unlock(catalogue);
	request_header(request, "content-disposition",
	               TEXT("attachment; filename=\"billing.csv\""));
	request_answer(request, 200, "text/csv; charset=utf-8");
}

static void put_period(struct json_writer *json, const struct report *report)
{
	json_put_moment(json, "from", report->from_ms);
	json_put_moment(json, "to", report->until_ms);
}

static void answer_billing(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct report *report = request->state;
	struct catalogue *catalogue = service_catalogue(request->service);
	int64_t cost = 0;
	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	if (report->is_csv) {
		answer_csv(request);
		return;
	}
	struct json_writer *json = request_object(request);
	put_period(json, report);
	json_open_array(json, "tenants");
	catalogue_lock(catalogue);
	struct lines lines = report_lines(request);
	for (size_t i = 0; i < lines.count; i++) {
		/* What a tenant used is in the lines of those above it too: counted once. */
		cost += lines.at[i]->own.cost;
		put_line(json, NULL, lines.at[i]);
	}
	catalogue_unlock(catalogue);
	json_close(json);
	json_put_decimal(json, "total_cost", cost, 6);
	json_close(json);
	request_answer_json(request, 200);
}

static void answer_usage(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct report *report = request->state;
	struct catalogue *catalogue = service_catalogue(request->service);
	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	if (report->is_csv) {
		answer_csv(request);
		return;
	}
	struct json_writer *json = request_object(request);
	put_period(json, report);
	catalogue_lock(catalogue);
	struct lines lines = report_lines(request);
	struct map none = { 0 };
	put_line(json, "usage",
	         lines.count > 0 ? lines.at[0] : line_get(request, &none, report->tenant_id));
	map_free(&none);
	catalogue_unlock(catalogue);
	json_close(json);
	request_answer_json(request, 200);
}

void report_calls_billing(struct request *request)
{
	if (read_report(request))
		request_read(request, read_usage, answer_billing);
}

static bool tenant_has_children(const struct roster *roster, int64_t id)
{
	for (size_t i = 0; i < roster->by_id.capacity; i++) {
		const struct roster_tenant *tenant = roster->by_id.entries[i].value;
		if (tenant && tenant->parent_id == id)
			return true;
	}
	return false;
}

void report_calls_usage(struct request *request)
{
	int64_t id;
	if (!tenant_calls_of_path(request, &id))
		return;
	struct report *report = read_report(request);
	if (!report)
		return;
	report->tenant_id = id;
	report->read_tenant_id = tenant_has_children(&request->service->roster, id) ? 0 : id;
	request_read(request, read_usage, answer_usage);
}

/* By job. */

struct job_report {
	struct job_usage_filter filter;
	struct job_usage *usage;
	int64_t count;
};

static bool read_job_usage(struct engine_request *engine, struct store *store, struct error *error)
{
	struct job_report *jobs = request_of(engine)->state;
	return usage_read_jobs(store, &jobs->filter, &engine->arena, &jobs->usage, &jobs->count,
	                       error);
}

static void answer_jobs(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct job_report *jobs = request->state;
	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	struct json_writer *json = request_object(request);
	json_put_moment(json, "from", jobs->filter.from_ms);
	json_put_moment(json, "to", jobs->filter.until_ms);
	json_open_array(json, "jobs");
	for (int64_t i = 0; i < jobs->count; i++) {
		const struct job_usage *usage = &jobs->usage[i];
		json_open_object(json, NULL);
		json_put_id(json, "job_id", ID_JOB, usage->job_id);
		json_put_id(json, "tenant_id", ID_TENANT, usage->tenant_id);
		json_put_decimal(json, "gpu_hours", muldiv_down(usage->gpu_ms, 1000, HOUR_MS), 6);
		json_put_decimal(json, "cost", usage->cost, 6);
		json_close(json);
	}
	json_close(json);
	if (jobs->count == jobs->filter.limit)
		json_put_id(json, "next_after", ID_JOB, jobs->usage[jobs->count - 1].job_id);
	json_close(json);
	request_answer_json(request, 200);
}

/* The tenants that the caller may see, or the one that it names. */
static bool read_tenants(struct request *request, struct job_usage_filter *filter)
{
	const struct roster *roster = &request->service->roster;
	struct text name = query_get(&request->exchange->query, "tenant_id");
	int64_t *ids =
	    arena_alloc(&request->engine.arena, (roster->by_id.count + 1) * sizeof(*ids));

	filter->tenant_ids = ids;
	if (name.size > 0) {
		const struct roster_tenant *tenant = roster_named(roster, name);
		if (!tenant || !roster_may_see(roster, &request->identity, tenant->id)) {
			request_unknown(request, "tenant", name);
			return false;
		}
		ids[filter->tenant_count++] = tenant->id;
		return true;
	}
	if (roster_sees_all(&request->identity))
		return true;
	ids[filter->tenant_count++] = -1; /* Without it, no tenant would mean all. */
	for (size_t i = 0; i < roster->by_id.capacity; i++) {
		const struct roster_tenant *tenant = roster->by_id.entries[i].value;
		if (tenant && roster_may_see(roster, &request->identity, tenant->id))
			ids[filter->tenant_count++] = tenant->id;
	}
	return true;
}

void report_calls_jobs(struct request *request)
{
	struct job_report *jobs = arena_alloc(&request->engine.arena, sizeof(*jobs));
	const struct report *report = read_report(request);
	struct page page;

	if (!report || !page_read(request, ID_JOB, &page))
		return;
	*jobs = (struct job_report){ .filter = { .from_ms = report->from_ms,
		                                 .until_ms = report->until_ms,
		                                 .now_ms = report->now_ms,
		                                 .before_id = page.after,
		                                 .limit = page.limit } };
	request->state = jobs;
	if (read_tenants(request, &jobs->filter))
		request_read(request, read_job_usage, answer_jobs);
}
