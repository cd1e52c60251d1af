/* token_report.c - what tokens of models were used and what they cost, over a period */
#include "api/gateway/token_report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "api/service/page.h"
#include "api/service/service_state.h"
#include "api/service/token_use.h"
#include "api/tenant/report_calls.h"
#include "api/text/ids.h"
#include "api/text/times.h"
#include "base/memory.h"

/* A line of the report: all days of the period together. */
struct line_sums {
	int64_t tenant_id, model_id;
	const char *key, *adapter;
	struct token_use use;
};

struct token_report {
	struct request *request;
	int64_t tenant_id; /* 0: all that the caller may see */
	struct text_map by_name;
	struct line_sums **lines;
	size_t count, capacity;
};

static struct line_sums *token_report_line(struct token_report *report,
                                           const struct token_line *line)
{
	struct buffer name = { 0 };

	buffer_print(&name, "%" PRId64 "/%s/%" PRId64 "/%s", line->tenant_id, line->key,
	             line->model_id, line->adapter);
	struct line_sums *sums = text_map_get(&report->by_name, name.data);
	if (!sums) {
		sums = arena_alloc(&report->request->engine.arena, sizeof(*sums));
		*sums = (struct line_sums){ .tenant_id = line->tenant_id,
			                    .model_id = line->model_id,
			                    .key = line->key,
			                    .adapter = line->adapter };
		text_map_put(&report->by_name, name.data, sums);
		array_reserve(report->lines, report->capacity, report->count + 1);
		report->lines[report->count++] = sums;
	}
	buffer_free(&name);
	return sums;
}

static void token_report_take(void *context, const struct token_line *line)
{
	struct token_report *report = context;
	const struct request *request = report->request;

	if (roster_may_see(&request->service->roster, &request->identity, line->tenant_id) &&
	    (report->tenant_id == 0 || report->tenant_id == line->tenant_id))
		token_use_add(&token_report_line(report, line)->use, line->use);
}

static int token_report_compare(const void *left, const void *right)
{
	const struct line_sums *a = *(struct line_sums *const *)left,
			       *b = *(struct line_sums *const *)right;

	if (a->tenant_id != b->tenant_id)
		return a->tenant_id < b->tenant_id ? -1 : 1;
	if (a->model_id != b->model_id)
		return a->model_id < b->model_id ? -1 : 1;
	int order = strcmp(a->key, b->key);
	return order != 0 ? order : strcmp(a->adapter, b->adapter);
}

static void token_report_write_line(struct json_writer *json, struct catalogue *catalogue,
                                    const struct line_sums *line)
{
	const struct tenant_record *tenant =
	    catalogue_get(catalogue, RECORD_TENANT, line->tenant_id, 0);
	const struct model_record *model =
	    catalogue_get(catalogue, RECORD_MODEL, line->model_id, 0);
	const struct token_use *use = &line->use;

	json_open_object(json, NULL);
	if (line->tenant_id > 0)
		json_put_id(json, "tenant_id", ID_TENANT, line->tenant_id);
	if (tenant)
		json_put_string(json, "tenant", tenant->name);
	json_put_string(json, "key", line->key);
	json_put_id(json, "model_id", ID_MODEL, line->model_id);
	if (model)
		json_put_string(json, "model", model->name);
	json_put_string(json, "adapter", line->adapter);
	json_put_integer(json, "requests", use->requests);
	json_put_integer(json, "prompt_tokens", use->prompt);
	json_put_integer(json, "cached_tokens", use->cached);
	json_put_integer(json, "completion_tokens", use->completion);
	json_put_integer(json, "errors", use->errors);
	json_put_integer(json, "cut", use->cut);
	json_put_decimal(json, "cost", use->cost, 6);
	json_close(json);
}

static void token_report_answer(struct token_report *report, int64_t from_ms, int64_t until_ms)
{
	struct request *request = report->request;
	struct catalogue *catalogue = service_catalogue(request->service);
	struct json_writer *json = request_object(request);
	int64_t cost = 0;

	json_put_moment(json, "from", from_ms);
	json_put_moment(json, "to", until_ms);
	json_open_array(json, "lines");
	catalogue_lock(catalogue);
	for (size_t i = 0; i < report->count; i++) {
		cost += report->lines[i]->use.cost;
		token_report_write_line(json, catalogue, report->lines[i]);
	}
	catalogue_unlock(catalogue);
	json_close(json);
	json_put_decimal(json, "total_cost", cost, 6);
	json_close(json);
	request_answer_json(request, 200);
}

void token_report_get(struct request *request)
{
	struct token_report report = { .request = request };
	struct text name = query_get(&request->exchange->query, "tenant_id");
	int64_t from_ms, until_ms;

	if (!report_read_period(request, &from_ms, &until_ms))
		return;
	if (name.size > 0 && !report_find_tenant(request, name, &report.tenant_id))
		return;
	token_uses_each(request->service->token_uses, from_ms, until_ms, token_report_take,
	                &report);
	if (report.count > 1)
		qsort(report.lines, report.count, sizeof(struct line_sums *), token_report_compare);
	token_report_answer(&report, from_ms, until_ms);
	text_map_free(&report.by_name);
	free(report.lines);
}
