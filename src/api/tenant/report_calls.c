/* report_calls.c - what tenants used and what it cost, over a period */
#include "api/tenant/report_calls.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/service/page.h"
#include "api/service/service_state.h"
#include "api/service/token_use.h"
#include "api/tenant/tenant_calls.h"
#include "api/text/ids.h"
#include "api/text/resource_json.h"
#include "api/text/times.h"
#include "store/usage.h"

#define HOUR_S INT64_C(3600)
#define MONTH_MS (30 * DAY_MS)
#define LINE_ID_MAX 128

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

bool report_read_period(struct request *request, int64_t *from_ms, int64_t *until_ms)
{
	if (!report_read_time(request, "to", service_time_ms(request->service), until_ms) ||
	    !report_read_time(request, "from", max64(*until_ms - MONTH_MS, 0), from_ms))
		return false;
	if (*from_ms < *until_ms)
		return true;
	/* They may be in what the request owns, which is gone with its answer. */
	request_refuse(request, 400, "invalid", "from must be before to");
	return false;
}

static struct report *read_report(struct request *request)
{
	struct report *report = arena_alloc(&request->engine.arena, sizeof(*report));
	*report = (struct report){ .now_ms = service_time_ms(request->service) };
	request->state = report;
	if (!report_read_period(request, &report->from_ms, &report->until_ms) ||
	    !read_format(request, report))
		return NULL;
	return report;
}

static bool read_usage(struct engine_request *engine, struct store *store, struct error *error)
{
	struct report *report = request_of(engine)->state;
	return usage_read(store, report->read_tenant_id, report->from_ms, report->until_ms,
	                  report->now_ms, &engine->arena, &report->usage, &report->count, error);
}

/* A tenant's line. A tenant without any use has one if a tenant below it has some. */
struct line {
	struct usage own, all; /* of the tenant itself; and with those below it */
	struct tokens {
		struct token_use use;
		int64_t credit;
	} own_tokens, all_tokens;
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
	to->waste.idle_gpu_ms += more->waste.idle_gpu_ms;
	to->waste.lost_gpu_ms += more->waste.lost_gpu_ms;
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

static void tokens_add(struct tokens *to, const struct tokens *more)
{
	token_use_add(&to->use, &more->use);
	to->credit += more->credit;
}

struct token_reading {
	struct request *request;
	struct map *lines;
};

static void line_add_tokens(const struct token_reading *reading, int64_t tenant_id,
                            const struct tokens *tokens)
{
	struct request *request = reading->request;
	const struct roster *roster = &request->service->roster;
	int64_t id = tenant_id;

	if (id > 0 && line_is_wanted(request, id))
		tokens_add(&line_get(request, reading->lines, id)->own_tokens, tokens);
	for (size_t level = 0; id != 0 && level <= roster->by_id.count; level++) {
		const struct roster_tenant *tenant = roster_find(roster, id);
		if (line_is_wanted(request, id))
			tokens_add(&line_get(request, reading->lines, id)->all_tokens, tokens);
		id = tenant ? tenant->parent_id : 0;
	}
}

static void take_tokens(void *context, const struct token_line *line)
{
	line_add_tokens(context, line->tenant_id, &(struct tokens){ .use = *line->use });
	if (line->use->cost > 0)
		line_add_tokens(context, line->owner_id,
		                &(struct tokens){ .credit = line->use->cost });
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
	token_uses_each(request->service->token_uses, report->from_ms, report->until_ms,
	                take_tokens, &(struct token_reading){ request, &map });
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

static int64_t useful_gpu_ms(int64_t gpu_ms, const struct waste *waste)
{
	return max64(gpu_ms - waste->idle_gpu_ms - waste->lost_gpu_ms, 0);
}

/* The rows that a report and its part with children have in common. */
#define GIVE_USAGE(TABLE, usage, tokens)                                                           \
	[TABLE##_FIELD_jobs] = FIELD_NUMBER((usage)->jobs),                                        \
	[TABLE##_FIELD_completed_jobs] = FIELD_NUMBER((usage)->completed),                         \
	[TABLE##_FIELD_failed_jobs] = FIELD_NUMBER((usage)->failed),                               \
	[TABLE##_FIELD_cancelled_jobs] = FIELD_NUMBER((usage)->cancelled),                         \
	[TABLE##_FIELD_runs] = FIELD_NUMBER((usage)->runs),                                        \
	[TABLE##_FIELD_gpu_hours] = FIELD_NUMBER((usage)->gpu_ms / HOUR_MS),                       \
	[TABLE##_FIELD_useful_gpu_hours] =                                                         \
	    FIELD_NUMBER(useful_gpu_ms((usage)->gpu_ms, &(usage)->waste) / HOUR_MS),               \
	[TABLE##_FIELD_idle_gpu_hours] = FIELD_NUMBER((usage)->waste.idle_gpu_ms / HOUR_MS),       \
	[TABLE##_FIELD_lost_gpu_hours] = FIELD_NUMBER((usage)->waste.lost_gpu_ms / HOUR_MS),       \
	[TABLE##_FIELD_gpu_memory_mb_hours] = FIELD_NUMBER((usage)->gpu_memory_s / HOUR_S),        \
	[TABLE##_FIELD_cpu_core_hours] = FIELD_NUMBER((usage)->cpu_s / HOUR_S),                    \
	[TABLE##_FIELD_cost] = FIELD_NUMBER((usage)->cost),                                        \
	[TABLE##_FIELD_requests] = FIELD_NUMBER((tokens)->use.requests),                           \
	[TABLE##_FIELD_prompt_tokens] = FIELD_NUMBER((tokens)->use.prompt),                        \
	[TABLE##_FIELD_cached_tokens] = FIELD_NUMBER((tokens)->use.cached),                        \
	[TABLE##_FIELD_completion_tokens] = FIELD_NUMBER((tokens)->use.completion),                \
	[TABLE##_FIELD_tokens_cost] = FIELD_NUMBER((tokens)->use.cost),                            \
	[TABLE##_FIELD_tokens_credit] = FIELD_NUMBER((tokens)->credit)

static void write_children(struct resource_writer *writer)
{
	const struct line *line = writer->context;
	const struct field_value values[USAGE_FIELDS_COUNT] = { GIVE_USAGE(USAGE, &line->all,
		                                                           &line->all_tokens) };

	json_open_object(writer->json, writer->field->name);
	resource_write(&(struct resource_writer){
	    .resource = writer->field->nested, .json = writer->json, .values = values });
	json_close(writer->json);
}

static void (*const writers[REPORT_FIELDS_COUNT])(struct resource_writer *) = {
	[REPORT_FIELD_including_children] = write_children,
};

/* A line keeps its id whenever the same period of a tenant is exported. */
static void line_id(char *id, size_t size, const struct report *report, int64_t tenant_id)
{
	char from[CALENDAR_TEXT_MAX], until[CALENDAR_TEXT_MAX];

	calendar_write(report->from_ms * 1000, 0, from);
	calendar_write(report->until_ms * 1000, 0, until);
	if (tenant_id > 0)
		snprintf(id, size, "%s/%s/tenant-%lld", from, until, (long long)tenant_id);
	else
		snprintf(id, size, "%s/%s", from, until);
}

static void put_line(struct json_writer *json, const char *key, const struct report *report,
                     const struct line *line)
{
	char id[LINE_ID_MAX];

	line_id(id, sizeof(id), report, line->own.tenant_id);
	const struct field_value values[REPORT_FIELDS_COUNT] = {
		[REPORT_FIELD_id] = FIELD_STRING(id),
		[REPORT_FIELD_tenant_id] = FIELD_ID(line->own.tenant_id),
		[REPORT_FIELD_tenant] = FIELD_STRING(line->tenant ? line->tenant->name : NULL),
		[REPORT_FIELD_cost_per_gpu_hour] =
		    FIELD_NUMBER(line->tenant ? line->tenant->cost_per_gpu_hour : 0),
		GIVE_USAGE(REPORT, &line->own, &line->own_tokens),
	};
	json_open_object(json, key);
	resource_write(&(struct resource_writer){ .resource = &report_resource,
	                                          .json = json,
	                                          .special = writers,
	                                          .values = values,
	                                          .context = line });
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

static void put_csv_tokens(struct buffer *text, const struct tokens *tokens)
{
	buffer_print(text, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, tokens->use.requests,
	             tokens->use.prompt, tokens->use.cached, tokens->use.completion);
	put_csv_decimal(text, tokens->use.cost, 1000000, 6);
	put_csv_decimal(text, tokens->credit, 1000000, 6);
}

static void put_csv_waste(struct buffer *text, const struct usage *usage)
{
	put_csv_decimal(text, useful_gpu_ms(usage->gpu_ms, &usage->waste) / HOUR_MS, 1000, 3);
	put_csv_decimal(text, usage->waste.idle_gpu_ms / HOUR_MS, 1000, 3);
	put_csv_decimal(text, usage->waste.lost_gpu_ms / HOUR_MS, 1000, 3);
}

static void put_csv_line(struct buffer *text, const struct report *report, const struct line *line)
{
	char id[LINE_ID_MAX];

	line_id(id, sizeof(id), report, line->own.tenant_id);
	buffer_print(text, "tenant-%" PRId64 ",", line->own.tenant_id);
	put_csv_text(text, line->tenant ? line->tenant->name : "");
	put_csv_figures(text, &line->own);
	put_csv_decimal(text, line->tenant ? line->tenant->cost_per_gpu_hour : 0, 1000000, 6);
	put_csv_decimal(text, line->own.cost, 1000000, 6);
	buffer_print(text, ",%" PRId64, line->own.runs);
	put_csv_figures(text, &line->all);
	put_csv_decimal(text, line->all.cost, 1000000, 6);
	buffer_print(text, ",%" PRId64, line->all.runs);
	put_csv_waste(text, &line->own);
	put_csv_waste(text, &line->all);
	put_csv_tokens(text, &line->own_tokens);
	put_csv_tokens(text, &line->all_tokens);
	buffer_print(text, ",%s\r\n", id);
}

static void answer_csv(struct request *request)
{
	static const char *const figures[] = {
		"jobs",           "completed_jobs", "failed_jobs",
		"cancelled_jobs", "gpu_hours",      "gpu_memory_mb_hours",
		"cpu_core_hours", "cost",           "runs",
	};
	static const char *const wastes[] = { "useful", "idle", "lost" };
	static const char *const tokens[] = {
		"requests",          "prompt_tokens", "cached_tokens",
		"completion_tokens", "tokens_cost",   "tokens_credit"
	};
	struct catalogue *catalogue = service_catalogue(request->service);
	buffer_clear(&request->body);
	buffer_text(&request->body,
	            "tenant_id,tenant,jobs,completed_jobs,failed_jobs,cancelled_jobs,gpu_hours,"
	            "gpu_memory_mb_hours,cpu_core_hours,cost_per_gpu_hour,cost,runs");
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		buffer_print(&request->body, ",including_children_%s", figures[i]);
	for (int i = 0; i < 2; i++)
		for (size_t j = 0; j < 3; j++)
			buffer_print(&request->body, ",%s%s_gpu_hours",
			             i == 1 ? "including_children_" : "", wastes[j]);
	for (int i = 0; i < 2; i++)
		for (size_t t = 0; t < sizeof(tokens) / sizeof(tokens[0]); t++)
			buffer_print(&request->body, ",%s%s", i > 0 ? "including_children_" : "",
			             tokens[t]);
	buffer_text(&request->body, ",id\r\n");
	catalogue_lock(catalogue);
	struct lines lines = report_lines(request);
	for (size_t i = 0; i < lines.count; i++)
		put_csv_line(&request->body, request->state, lines.at[i]);
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

/* The export: the period, its lines, and their sums. */
static void put_billing(struct request *request, struct json_writer *json)
{
	const struct report *report = request->state;
	struct catalogue *catalogue = service_catalogue(request->service);
	int64_t cost = 0, token_cost = 0;
	char id[LINE_ID_MAX];

	line_id(id, sizeof(id), report, 0);
	json_put_string(json, "id", id);
	put_period(json, report);
	json_open_array(json, "tenants");
	catalogue_lock(catalogue);
	struct lines lines = report_lines(request);
	for (size_t i = 0; i < lines.count; i++) {
		/* What a tenant used is in the lines of those above it too: counted once. */
		cost += lines.at[i]->own.cost;
		token_cost += lines.at[i]->own_tokens.use.cost;
		put_line(json, NULL, report, lines.at[i]);
	}
	catalogue_unlock(catalogue);
	json_close(json);
	json_put_decimal(json, "total_cost", cost, 6);
	json_put_decimal(json, "total_tokens_cost", token_cost, 6);
}

static void answer_billing(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct report *report = request->state;

	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	if (report->is_csv) {
		answer_csv(request);
		return;
	}
	struct json_writer *json = request_object(request);
	put_billing(request, json);
	json_close(json);
	request_answer_json(request, 200);
}

void report_read_billing(struct request *request, int64_t from_ms, int64_t until_ms,
                         void (*done)(struct engine_request *engine))
{
	struct report *report = arena_alloc(&request->engine.arena, sizeof(*report));

	*report = (struct report){ .from_ms = from_ms,
		                   .until_ms = until_ms,
		                   .now_ms = service_time_ms(request->service) };
	request->identity = (struct identity){ .role = ROLE_ADMIN };
	request->state = report;
	request_read(request, read_usage, done);
}

void report_write_billing(struct request *request, struct buffer *body)
{
	struct json_writer json = json_writer_to(body);

	json_open_object(&json, NULL);
	json_put_string(&json, "event", "billing.day");
	put_billing(request, &json);
	json_close(&json);
	buffer_text(body, "");
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
	put_line(json, "usage", report,
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
	struct owner_usage *owners;
	int64_t count;
};

static bool read_job_usage(struct engine_request *engine, struct store *store, struct error *error)
{
	struct job_report *jobs = request_of(engine)->state;
	return usage_read_jobs(store, &jobs->filter, &engine->arena, &jobs->usage, &jobs->count,
	                       error);
}

static void put_hours(struct json_writer *json, const char *key, int64_t gpu_ms)
{
	json_put_decimal(json, key, muldiv_down(gpu_ms, 1000, HOUR_MS), 6);
}

static void put_waste(struct json_writer *json, int64_t gpu_ms, const struct waste *waste)
{
	put_hours(json, "gpu_hours", gpu_ms);
	put_hours(json, "useful_gpu_hours", useful_gpu_ms(gpu_ms, waste));
	put_hours(json, "idle_gpu_hours", waste->idle_gpu_ms);
	put_hours(json, "lost_gpu_hours", waste->lost_gpu_ms);
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
		put_waste(json, usage->gpu_ms, &usage->waste);
		json_put_decimal(json, "cost", usage->cost, 6);
		json_close(json);
	}
	json_close(json);
	if (jobs->count == jobs->filter.limit)
		json_put_id(json, "next_after", ID_JOB, jobs->usage[jobs->count - 1].job_id);
	json_close(json);
	request_answer_json(request, 200);
}

bool report_find_tenant(struct request *request, struct text name, int64_t *id)
{
	const struct roster *roster = &request->service->roster;
	const struct roster_tenant *tenant = roster_named(roster, name);

	if (!tenant || !roster_may_see(roster, &request->identity, tenant->id)) {
		request_unknown(request, "tenant", name);
		return false;
	}
	*id = tenant->id;
	return true;
}

bool report_read_tenants(struct request *request, const int64_t **tenant_ids, size_t *count)
{
	const struct roster *roster = &request->service->roster;
	struct text name = query_get(&request->exchange->query, "tenant_id");
	int64_t *ids =
	    arena_alloc(&request->engine.arena, (roster->by_id.count + 1) * sizeof(*ids));

	*tenant_ids = ids;
	*count = 0;
	if (name.size > 0)
		return report_find_tenant(request, name, &ids[(*count)++]);
	if (roster_sees_all(&request->identity))
		return true;
	ids[(*count)++] = -1; /* Without it, no tenant would mean all. */
	for (size_t i = 0; i < roster->by_id.capacity; i++) {
		const struct roster_tenant *tenant = roster->by_id.entries[i].value;
		if (tenant && roster_may_see(roster, &request->identity, tenant->id))
			ids[(*count)++] = tenant->id;
	}
	return true;
}

/* What the caller asks for, or NULL: then the request is answered. */
static struct job_report *read_job_report(struct request *request)
{
	struct job_report *jobs = arena_alloc(&request->engine.arena, sizeof(*jobs));
	const struct report *report = read_report(request);
	struct page page;

	if (!report || !page_read(request, ID_JOB, &page))
		return NULL;
	*jobs = (struct job_report){ .filter = { .from_ms = report->from_ms,
		                                 .until_ms = report->until_ms,
		                                 .now_ms = report->now_ms,
		                                 .before_id = page.after,
		                                 .limit = page.limit } };
	request->state = jobs;
	return report_read_tenants(request, &jobs->filter.tenant_ids, &jobs->filter.tenant_count)
	           ? jobs
	           : NULL;
}

void report_calls_jobs(struct request *request)
{
	if (read_job_report(request))
		request_read(request, read_job_usage, answer_jobs);
}

/* By owner. */

static bool read_owner_usage(struct engine_request *engine, struct store *store,
                             struct error *error)
{
	struct job_report *jobs = request_of(engine)->state;
	return usage_read_owners(store, &jobs->filter, &engine->arena, &jobs->owners, &jobs->count,
	                         error);
}

static void answer_owners(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct job_report *jobs = request->state;
	const struct roster *roster = &request->service->roster;
	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	struct json_writer *json = request_object(request);
	json_put_moment(json, "from", jobs->filter.from_ms);
	json_put_moment(json, "to", jobs->filter.until_ms);
	json_open_array(json, "owners");
	for (int64_t i = 0; i < jobs->count; i++) {
		const struct owner_usage *usage = &jobs->owners[i];
		const struct roster_tenant *tenant = roster_find(roster, usage->tenant_id);
		json_open_object(json, NULL);
		json_put_string(json, "user", *usage->user ? usage->user : NULL);
		json_put_id(json, "tenant_id", ID_TENANT, usage->tenant_id);
		json_put_string(json, "tenant", tenant ? tenant->name : NULL);
		json_put_integer(json, "jobs", usage->jobs);
		put_waste(json, usage->gpu_ms, &usage->waste);
		json_put_decimal(json, "cost", usage->cost, 6);
		json_close(json);
	}
	json_close(json);
	json_close(json);
	request_answer_json(request, 200);
}

void report_calls_owners(struct request *request)
{
	if (read_job_report(request))
		request_read(request, read_owner_usage, answer_owners);
}
