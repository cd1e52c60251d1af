/* own.c - what the gateway answers by itself: lists of models, health, metrics */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/calendar.h"
#include "base/clock.h"
#include "gateway/program.h"
#include "gateway/reply.h"
#include "wire/text/json_writer.h"
#include "json/json_reader.h"

enum { NAME_BYTES = 512 };

static void answer(struct exchange *exchange, int status, struct buffer *body)
{
	exchange_respond(exchange, &(struct response){ .status = status,
	                                               .content_type = "application/json",
	                                               .body = { body->data, body->size } });
	buffer_free(body);
}

static void refuse(struct exchange *exchange, const struct endpoint *endpoint, const char *name)
{
	struct refusal refusal;
	struct buffer body = { 0 };

	refusal_set(&refusal, 404, "invalid_request_error", "model_not_found",
	            "there is no model '%.200s', or it is not for you: GET /v1/models lists those "
	            "that are",
	            name);
	reply_error(&body, endpoint->dialect, &refusal, NULL);
	answer(exchange, 404, &body);
}

/* The best of what its slots are. */
static const char *status_of(const struct gateway_model *model)
{
	static const char *const words[] = { "unloaded", "sleeping", "loading", "loaded" };
	int best = 0;

	for (size_t i = 0; i < model->slot_count; i++) {
		enum slot_state state = model->slots[i]->state;
		int rank = state == SLOT_IS_READY     ? 3
		           : state == SLOT_IS_LOADING ? 2
		           : state == SLOT_IS_ASLEEP  ? 1
		                                      : 0;
		best = rank > best ? rank : best;
	}
	return words[best];
}

static void put_model(struct json_writer *json, const struct gateway_model *model, const char *name)
{
	json_open_object(json, NULL);
	json_put_string(json, "id", name);
	json_put_string(json, "object", "model");
	json_put_integer(json, "created", model->said->created_ms / 1000);
	json_put_string(json, "owned_by", "gpu-scheduler");
	json_put_string(json, "status", status_of(model));
	json_put_integer(json, "waiting", model->queue.waiting);
	json_close(json);
}

/* A model by its name, its aliases and its adapters. */
static void put_names(struct json_writer *json, const struct gateway_model *model)
{
	char name[NAME_BYTES * 2];

	put_model(json, model, model->said->name);
	for (size_t i = 0; i < model->said->n_aliases; i++)
		put_model(json, model, model->said->aliases[i]);
	for (size_t i = 0; i < model->said->n_adapters; i++) {
		snprintf(name, sizeof(name), "%s:%s", model->said->name, model->said->adapters[i]);
		put_model(json, model, name);
	}
}

static void own_models(const struct program *program, struct exchange *exchange, int64_t tenant_id)
{
	const struct names *names = &program->gateway->names;
	struct buffer body = { 0 };
	struct json_writer json = json_writer_to(&body);

	json_open_object(&json, NULL);
	json_put_string(&json, "object", "list");
	json_open_array(&json, "data");
	for (size_t i = 0; i < names->model_count; i++)
		if (names_may_use(names, names->all_models[i], tenant_id))
			put_names(&json, names->all_models[i]);
	json_close(&json);
	json_close(&json);
	answer(exchange, 200, &body);
}

static void own_model(struct program *program, struct exchange *exchange,
                      const struct endpoint *endpoint, struct text rest, int64_t tenant_id)
{
	struct buffer body = { 0 };
	char name[NAME_BYTES + 1];
	const char *adapter;
	bool several;
	size_t size = 0;

	/* Ids may have slashes in them, and may be escaped or not. */
	for (size_t i = 0; i < rest.size && size < NAME_BYTES; i++) {
		unsigned byte = (unsigned char)rest.data[i];
		if (byte == '%' && i + 2 < rest.size &&
		    sscanf(rest.data + i + 1, "%2x", &byte) == 1)
			i += 2;
		name[size++] = (char)byte;
	}
	name[size] = '\0';
	const struct gateway_model *model =
	    names_find(&program->gateway->names, name, tenant_id, &adapter, &several);
	if (!model) {
		refuse(exchange, endpoint, name);
		return;
	}
	struct json_writer json = json_writer_to(&body);
	put_model(&json, model, name);
	answer(exchange, 200, &body);
}

static bool is_listed(const struct names *names, const struct gateway_model *model,
                      int64_t tenant_id, bool only_loaded)
{
	return names_may_use(names, model, tenant_id) &&
	       strcmp(model->said->runtime, "ollama") == 0 &&
	       (!only_loaded || strcmp(status_of(model), "loaded") == 0);
}

/* As Ollama lists them: those that its clients can use. */
static void own_tags(const struct program *program, struct exchange *exchange, int64_t tenant_id,
                     bool only_loaded)
{
	const struct names *names = &program->gateway->names;
	struct buffer body = { 0 };
	struct json_writer json = json_writer_to(&body);

	json_open_object(&json, NULL);
	json_open_array(&json, "models");
	for (size_t i = 0; i < names->model_count; i++) {
		const struct gateway_model *model = names->all_models[i];
		if (!is_listed(names, model, tenant_id, only_loaded))
			continue;
		json_open_object(&json, NULL);
		json_put_string(&json, "name", model->said->name);
		json_put_string(&json, "model", model->said->name);
		json_put_time(&json, "modified_at", model->said->created_ms * 1000);
		json_put_integer(&json, "size", 0);
		json_put_string(&json, "digest", "");
		json_close(&json);
	}
	json_close(&json);
	json_close(&json);
	answer(exchange, 200, &body);
}

static void own_show(struct program *program, struct exchange *exchange,
                     const struct endpoint *endpoint, int64_t tenant_id)
{
	struct error error = { 0 };
	json_t *asked = json_read(exchange->body, NULL, &error);
	const char *name = json_string_value(json_object_get(asked, "model"));
	const char *adapter;
	bool several;
	struct buffer body = { 0 };

	if (!name)
		name = json_string_value(json_object_get(asked, "name"));
	const struct gateway_model *model =
	    name ? names_find(&program->gateway->names, name, tenant_id, &adapter, &several) : NULL;
	if (!model) {
		refuse(exchange, endpoint, name ? name : "");
	} else {
		struct json_writer json = json_writer_to(&body);
		json_open_object(&json, NULL);
		json_open_object(&json, "details");
		json_put_string(&json, "family", model->said->runtime);
		json_close(&json);
		json_open_object(&json, "model_info");
		json_put_string(&json, "general.name", model->said->name);
		json_close(&json);
		json_open_array(&json, "capabilities");
		json_put_string(&json, NULL, "completion");
		json_close(&json);
		json_put_string(&json, "status", status_of(model));
		json_close(&json);
		answer(exchange, 200, &body);
	}
	json_decref(asked);
}

static void own_health(const struct program *program, struct exchange *exchange)
{
	struct buffer body = { 0 };
	struct json_writer json = json_writer_to(&body);
	bool known = program->gateway->signin.known;

	json_open_object(&json, NULL);
	json_put_string(&json, "status", known ? "healthy" : "starting");
	json_close(&json);
	answer(exchange, known ? 200 : 503, &body);
}

const int64_t times_bounds_ms[TIMES_BUCKETS] = {
	1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 120000, 600000
};

void times_add(struct times *times, int64_t ms)
{
	int at = 0;

	while (at < TIMES_BUCKETS && ms > times_bounds_ms[at])
		at++;
	times->buckets[at]++;
	times->count++;
	times->sum_ms += ms;
}

static void put_times(struct buffer *out, const char *name, const char *help,
                      const struct times *times)
{
	int64_t below = 0;

	buffer_print(out, "# HELP gpu_gateway_%s %s\n# TYPE gpu_gateway_%s histogram\n", name, help,
	             name);
	for (int at = 0; at < TIMES_BUCKETS; at++) {
		below += times->buckets[at];
		buffer_print(out, "gpu_gateway_%s_bucket{le=\"%g\"} %" PRId64 "\n", name,
		             (double)times_bounds_ms[at] / 1000, below);
	}
	buffer_print(out,
	             "gpu_gateway_%s_bucket{le=\"+Inf\"} %" PRId64 "\ngpu_gateway_%s_sum %.3f\n"
	             "gpu_gateway_%s_count %" PRId64 "\n",
	             name, times->count, name, (double)times->sum_ms / 1000, name, times->count);
}

static void put_value(struct buffer *out, const char *name, const char *type, const char *help,
                      int64_t value)
{
	buffer_print(
	    out, "# HELP gpu_gateway_%s %s\n# TYPE gpu_gateway_%s %s\ngpu_gateway_%s %" PRId64 "\n",
	    name, help, name, type, name, value);
}

static void put_counters(const struct program *program, struct buffer *out)
{
	const struct gateway_counters *counters = &program->gateway->counters;
	const struct figures *figures = &program->figures;

	put_value(out, "requests_total", "counter", "Requests for models", counters->requests);
	put_value(out, "refused_total", "counter", "Requests that were refused before a queue",
	          counters->refused);
	put_value(out, "retries_total", "counter", "Requests sent to another replica",
	          counters->retried);
	put_value(out, "failed_total", "counter", "Requests that no server answered",
	          counters->failed);
	put_value(out, "cancelled_total", "counter", "Requests whose clients hung up",
	          counters->cancelled);
	put_value(out, "cut_total", "counter", "Answers that were cut", figures->cut);
	put_value(out, "prompt_tokens_total", "counter", "Tokens of prompts",
	          figures->prompt_tokens);
	put_value(out, "cached_tokens_total", "counter", "Tokens of prompts that were cached",
	          figures->cached_tokens);
	put_value(out, "completion_tokens_total", "counter", "Tokens of answers",
	          figures->completion_tokens);
	put_value(out, "prefix_blocks_total", "counter",
	          "Blocks of 256 bytes of prompts for models with several replicas",
	          counters->prefix_blocks);
	put_value(out, "prefix_hits_total", "counter", "Those that the chosen replica had seen",
	          counters->prefix_hits);
	put_value(out, "waiting", "gauge", "Requests in queues", program->gateway->waiting);
	put_value(out, "in_flight", "gauge", "Requests at servers", program->gateway->in_flight);
	put_value(out, "upstream_connections", "gauge", "Connections to servers",
	          (int64_t)upstream_connections(program->upstream));
	put_value(out, "spool_rows", "gauge", "Requests in the spool of usage",
	          (int64_t)spool_used(program->spool));
}

static void own_metrics(const struct program *program, struct exchange *exchange)
{
	const struct figures *figures = &program->figures;
	struct buffer out = { 0 };

	put_counters(program, &out);
	buffer_text(&out, "# HELP gpu_gateway_answers_total Answers by status\n"
	                  "# TYPE gpu_gateway_answers_total counter\n");
	for (int i = 2; i < 6; i++)
		buffer_print(&out, "gpu_gateway_answers_total{status=\"%dxx\"} %" PRId64 "\n", i,
		             figures->answers[i]);
	put_times(&out, "queue_seconds", "Time in queues", &figures->queue);
	put_times(&out, "first_token_seconds", "From the request to the first part of the answer",
	          &figures->first_token);
	put_times(&out, "between_tokens_seconds", "Between tokens of streams, on average of each",
	          &figures->between_tokens);
	put_times(&out, "request_seconds", "From the request to the end of the answer",
	          &figures->whole);
	exchange_respond(exchange, &(struct response){ .content_type = "text/plain; version=0.0.4",
	                                               .body = { out.data, out.size } });
	buffer_free(&out);
}

static void own_version(struct exchange *exchange)
{
	struct buffer body = { 0 };
	struct json_writer json = json_writer_to(&body);

	json_open_object(&json, NULL);
	json_put_string(&json, "version", GPU_SCHEDULER_VERSION);
	json_close(&json);
	answer(exchange, 200, &body);
}

void own_answer(struct program *program, struct exchange *exchange, const struct endpoint *endpoint,
                struct text rest, const struct gateway_asker *asker)
{
	int64_t tenant_id = asker ? asker->tenant_id : -1;

	switch (endpoint->kind) {
	case ENDPOINT_MODELS:
		own_models(program, exchange, tenant_id);
		break;
	case ENDPOINT_MODEL:
		own_model(program, exchange, endpoint, rest, tenant_id);
		break;
	case ENDPOINT_TAGS:
	case ENDPOINT_PS:
		own_tags(program, exchange, tenant_id, endpoint->kind == ENDPOINT_PS);
		break;
	case ENDPOINT_SHOW:
		own_show(program, exchange, endpoint, tenant_id);
		break;
	case ENDPOINT_VERSION:
		own_version(exchange);
		break;
	case ENDPOINT_METRICS:
		own_metrics(program, exchange);
		break;
	default:
		own_health(program, exchange);
		break;
	}
}
