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
	int64_t tenant_id; /* 0: all that the caller may see */
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
	return usage_read(store, report->tenant_id, report->from_ms, report->until_ms,
	                  report->now_ms, &engine->arena, &report->usage, &report->count, error);
}

/* A tenant's line. */
struct line {
	const struct usage *usage;
	const struct tenant_record *tenant; /* NULL: deleted since */
};

static struct line line_of(const struct catalogue *catalogue, const struct usage *usage)
{
	return (struct line){
		.usage = usage,
		.tenant = catalogue_get(catalogue, RECORD_TENANT, usage->tenant_id, 0),
	};
}

static void put_line(struct json_writer *json, const char *key, const struct line *line)
{
	const struct usage *usage = line->usage;
	json_open_object(json, key);
	json_put_id(json, "tenant_id", ID_TENANT, usage->tenant_id);
	json_put_string(json, "tenant", line->tenant ? line->tenant->name : NULL);
	json_put_integer(json, "jobs", usage->jobs);
	json_put_integer(json, "completed_jobs", usage->completed);
	json_put_integer(json, "failed_jobs", usage->failed);
	json_put_integer(json, "cancelled_jobs", usage->cancelled);
	json_put_integer(json, "runs", usage->runs);
	json_put_decimal(json, "gpu_hours", usage->gpu_ms / HOUR_MS, 3);
	json_put_decimal(json, "gpu_memory_mb_hours", usage->gpu_memory_s / HOUR_S, 0);
	json_put_decimal(json, "cpu_core_hours", usage->cpu_s / HOUR_S, 3);
	json_put_decimal(json, "cost_per_gpu_hour",
	                 line->tenant ? line->tenant->cost_per_gpu_hour : 0, 6);
	json_put_decimal(json, "cost", usage->cost, 6);
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

static void put_csv_line(struct buffer *text, const struct line *line)
{
	const struct usage *usage = line->usage;
	buffer_print(text, "tenant-%" PRId64 ",", usage->tenant_id);
	put_csv_text(text, line->tenant ? line->tenant->name : "");
	buffer_print(text, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, usage->jobs,
	             usage->completed, usage->failed, usage->cancelled);
	put_csv_decimal(text, usage->gpu_ms / HOUR_MS, 1000, 3);
	buffer_print(text, ",%" PRId64, usage->gpu_memory_s / HOUR_S);
	put_csv_decimal(text, usage->cpu_s / HOUR_S, 1000, 3);
	put_csv_decimal(text, line->tenant ? line->tenant->cost_per_gpu_hour : 0, 1000000, 6);
	put_csv_decimal(text, usage->cost, 1000000, 6);
	buffer_print(text, ",%" PRId64 "\r\n", usage->runs);
}

static bool is_wanted(const struct request *request, const struct report *report, int64_t tenant_id)
{
	return roster_may_see(&request->service->roster, &request->identity, tenant_id) &&
	       (report->tenant_id == 0 || report->tenant_id == tenant_id);
}

static void answer_csv(struct request *request, const struct report *report)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	buffer_clear(&request->body);
	buffer_text(&request->body,
	            "tenant_id,tenant,jobs,completed_jobs,failed_jobs,cancelled_jobs,gpu_hours,"
	            "gpu_memory_mb_hours,cpu_core_hours,cost_per_gpu_hour,cost,runs\r\n");
	catalogue_lock(catalogue);
	for (int64_t i = 0; i < report->count; i++) {
		if (!is_wanted(request, report, report->usage[i].tenant_id))
			continue;
		struct line line = line_of(catalogue, &report->usage[i]);
		put_csv_line(&request->body, &line);
	}
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
		answer_csv(request, report);
		return;
	}
	struct json_writer *json = request_object(request);
	put_period(json, report);
	json_open_array(json, "tenants");
	catalogue_lock(catalogue);
	for (int64_t i = 0; i < report->count; i++) {
		if (!is_wanted(request, report, report->usage[i].tenant_id))
			continue;
		struct line line = line_of(catalogue, &report->usage[i]);
		cost += report->usage[i].cost;
		put_line(json, NULL, &line);
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
	struct usage none = { .tenant_id = report->tenant_id };
	const struct usage *usage = &none;
	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	if (report->is_csv) {
		answer_csv(request, report);
		return;
	}
	for (int64_t i = 0; i < report->count; i++)
		if (report->usage[i].tenant_id == report->tenant_id)
			usage = &report->usage[i];
	struct json_writer *json = request_object(request);
	put_period(json, report);
	catalogue_lock(catalogue);
	struct line line = line_of(catalogue, usage);
	put_line(json, "usage", &line);
	catalogue_unlock(catalogue);
	json_close(json);
	request_answer_json(request, 200);
}

void report_calls_billing(struct request *request)
{
	if (read_report(request))
		request_read(request, read_usage, answer_billing);
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
