/* job_forecast.c - whether, when and where a job would start, before it is submitted */
#include "api/job/job_forecast.h"

#include "api/job/job_json.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "api/text/times.h"

enum { NAMED_NODES_MAX = 4 };

struct foretold {
	struct submit_forecast forecast;
	int64_t now_ms;
};

static bool look_ahead(struct engine_request *engine, struct sched *sched, struct error *error)
{
	struct request *request = request_of(engine);
	struct foretold *foretold = request->state;

	buffer_clear(&engine->text);
	return sched_forecast(sched, &engine->command.submit, foretold->now_ms,
	                      request_viewer(request), &foretold->forecast, &engine->text, error);
}

static const char *forecast_node_name(const struct catalogue *catalogue, int64_t node_id)
{
	const struct node_record *node = catalogue_get(catalogue, RECORD_NODE, node_id, 0);
	return node ? node->name : NULL;
}

/* ' on node alpha, GPUs 0, 1 and node beta, GPU 3'. GPUs of a node follow each other. */
static void print_places(struct buffer *text, const struct catalogue *catalogue,
                         const struct submit_forecast *forecast)
{
	int nodes = 0;

	for (int i = 0; i < forecast->place_count; i++) {
		bool again = i > 0 && forecast->node_ids[i] == forecast->node_ids[i - 1];
		const char *node = forecast_node_name(catalogue, forecast->node_ids[i]);
		const struct gpu_record *gpu =
		    catalogue_get(catalogue, RECORD_GPU, forecast->gpu_ids[i], 0);
		if (!node)
			continue;
		if (!again && ++nodes > NAMED_NODES_MAX) {
			buffer_text(text, " and others");
			return;
		}
		bool more = i + 1 < forecast->place_count &&
		            forecast->node_ids[i + 1] == forecast->node_ids[i];
		if (!again)
			buffer_print(text, "%s%s", nodes == 1 ? " on node " : " and node ", node);
		if (gpu)
			buffer_print(text, "%s%lld",
			             again  ? ", "
			             : more ? ", GPUs "
			                    : ", GPU ",
			             (long long)gpu->place);
	}
}

static void print_first_line(struct buffer *text, const struct buffer *reasons)
{
	const char *line = reasons->data ? reasons->data : "";
	buffer_bytes(text, line, strcspn(line, "\n"));
}

/* One sentence that says it all. */
static void print_message(struct buffer *text, const struct catalogue *catalogue,
                          const struct foretold *foretold, const struct buffer *reasons)
{
	const struct submit_forecast *forecast = &foretold->forecast;

	buffer_clear(text);
	buffer_text(text, "");
	switch (forecast->kind) {
	case FORECAST_REPEATS:
		buffer_print(text,
		             "It was submitted before under this idempotency key, as job-%lld",
		             (long long)forecast->job_id);
		return;
	case FORECAST_NEVER:
	case FORECAST_WAITS:
		buffer_text(text, forecast->kind == FORECAST_NEVER ? "It would never start: "
		                                                   : "It would wait: ");
		print_first_line(text, reasons);
		break;
	case FORECAST_NOW:
		buffer_text(text, "It would start now");
		break;
	case FORECAST_LATER:
		if (forecast->start_ms > foretold->now_ms) {
			buffer_text(text, "It could start at ");
			calendar_print(text, forecast->start_ms);
		} else {
			buffer_text(text, "It would start when memory is freed");
		}
		break;
	}
	print_places(text, catalogue, forecast);
	if (forecast->kind == FORECAST_LATER && forecast->start_ms > foretold->now_ms)
		buffer_text(text, ", if running jobs end as expected");
	if (forecast->kind != FORECAST_NOW && forecast->position > 0)
		buffer_print(text, "; %lld %s ahead of it", (long long)forecast->position,
		             forecast->position == 1 ? "job is" : "jobs are");
	if (forecast->may_preempt)
		buffer_text(text, "; it may start sooner by preempting others");
	if (forecast->at_risk)
		buffer_print(text, "; it would miss its deadline with a probability of %lld%%",
		             (long long)(forecast->deadline_risk / 10));
}

static void put_places(struct json_writer *json, const struct catalogue *catalogue,
                       const struct submit_forecast *forecast)
{
	json_put_string(json, "node",
	                forecast->place_count > 0
	                    ? forecast_node_name(catalogue, forecast->node_ids[0])
	                    : NULL);
	json_open_array(json, "gpus");
	for (int i = 0; i < forecast->place_count; i++) {
		const struct gpu_record *gpu =
		    catalogue_get(catalogue, RECORD_GPU, forecast->gpu_ids[i], 0);
		if (!gpu)
			continue;
		json_open_object(json, NULL);
		json_put_string(json, "node", forecast_node_name(catalogue, forecast->node_ids[i]));
		json_put_integer(json, "index", gpu->place);
		json_put_string(json, "uuid", gpu->uuid);
		json_close(json);
	}
	json_close(json);
}

static void put_why(struct json_writer *json, struct text sentences)
{
	struct text line;

	json_open_array(json, "why");
	while (text_next(&sentences, '\n', &line))
		if (line.size > 0)
			json_put_text(json, NULL, line);
	json_close(json);
}

static void answer_forecast(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct foretold *foretold = request->state;
	const struct submit_forecast *forecast = &foretold->forecast;
	struct catalogue *catalogue = service_catalogue(request->service);
	struct buffer message = { 0 };

	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	struct json_writer *json = request_object(request);
	catalogue_lock(catalogue);
	print_message(&message, catalogue, foretold, &engine->text);
	json_put_string(json, "forecast", word_of(&forecast_kind_words, forecast->kind));
	json_put_string(json, "message", message.data);
	json_put_flag(json, "fits", forecast->kind == FORECAST_NOW);
	json_put_moment(json, "estimated_start", forecast->start_ms);
	put_places(json, catalogue, forecast);
	catalogue_unlock(catalogue);
	json_put_integer(json, "jobs", forecast->count);
	if (forecast->queued) {
		json_put_integer(json, "jobs_ahead", forecast->position);
		json_put_integer(json, "tenant_jobs_ahead", forecast->tenant_position);
	}
	json_put_flag(json, "may_preempt", forecast->may_preempt);
	if (forecast->deadline_risk > 0)
		json_put_decimal(json, "deadline_risk", forecast->deadline_risk, 3);
	if (forecast->job_id > 0)
		json_put_id(json, "job_id", ID_JOB, forecast->job_id);
	put_why(json, (struct text){ engine->text.data, engine->text.size });
	json_close(json);
	request_answer_json(request, 200);
	buffer_free(&message);
}

void job_forecast(struct request *request)
{
	struct foretold *foretold = arena_alloc(&request->engine.arena, sizeof(*foretold));

	*foretold = (struct foretold){ .now_ms = service_time_ms(request->service) };
	request->state = foretold;
	request_look(request, look_ahead, answer_forecast);
}
