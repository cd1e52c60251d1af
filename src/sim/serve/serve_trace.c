/* serve_trace.c - requests to many models, and what the models take */
#include "sim/serve/serve_trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "sim/world/csv.h"

enum { TIME_MOST_MS = 1000000000, TOKENS_MOST = 10000000, SHRINK_FROM = 16384, SPARE_TOKENS = 32 };

/* A number that need not be whole, from `least` up. */
static bool read_real(const struct csv *csv, const char *column, double least, double *number,
                      struct error *error)
{
	const char *text;
	char *end;
	int at;

	if (!csv_need(csv, column, &at, error) || !csv_text(csv, at, &text, error))
		return false;
	*number = strtod(text, &end);
	if (*end || !isfinite(*number) || *number < least || *number > 1e12)
		return error_set(error, ERROR_INVALID,
		                 "%s, line %lld: %s is '%.40s': it must be a number of at least %g",
		                 csv->name, (long long)csv->line, column, text, least);
	return true;
}

static bool read_kind(const struct csv *csv, struct serve_kind *kind, struct error *error)
{
	const char *name;
	int at;

	if (!csv_need(csv, "model", &at, error) || !csv_text(csv, at, &name, error) ||
	    !read_real(csv, "weights_gb", 0.001, &kind->weights_gb, error) ||
	    !read_real(csv, "overhead_gb", 0, &kind->overhead_gb, error) ||
	    !read_real(csv, "kv_gb", 0.001, &kind->kv_gb, error) ||
	    !read_real(csv, "kv_bytes_per_token", 1, &kind->kv_bytes, error) ||
	    !read_real(csv, "prefill_ms", 0, &kind->prefill_ms, error) ||
	    !read_real(csv, "prefill_ms_per_token", 0, &kind->prefill_token_ms, error) ||
	    !read_real(csv, "decode_ms", 0.001, &kind->decode_ms, error) ||
	    !read_real(csv, "decode_ms_per_context_token", 0, &kind->decode_context_ms, error) ||
	    !read_real(csv, "decode_ms_per_request", 0, &kind->decode_request_ms, error) ||
	    !csv_need(csv, "longest", &at, error) ||
	    !csv_number(csv, at, 64, TOKENS_MOST, &kind->longest, error))
		return false;
	snprintf(kind->name, sizeof(kind->name), "%s", name);
	return true;
}

static bool read_kinds(struct serve_trace *trace, struct csv *csv, struct error *error)
{
	int next;

	while ((next = csv_next(csv, error)) > 0) {
		if (trace->kind_count == SERVE_KINDS_MAX)
			return error_set(error, ERROR_INVALID, "%s has more than %d models",
			                 csv->name, SERVE_KINDS_MAX);
		if (!read_kind(csv, &trace->kinds[trace->kind_count++], error))
			return false;
	}
	if (next == 0 && trace->kind_count == 0)
		return error_set(error, ERROR_INVALID, "%s names no model", csv->name);
	return next == 0;
}

/* A sequence that the model cannot take is shrunk, as in the published simulator. */
static void shrink(struct serve_request *request, const struct serve_kind *kind)
{
	int64_t whole = request->input + request->output + SPARE_TOKENS;

	if (whole <= kind->longest)
		return;
	double factor = (double)kind->longest / (double)max64(whole, SHRINK_FROM);
	request->input = max64((int64_t)((double)request->input * factor), 1);
	request->output = max64((int64_t)((double)request->output * factor), 1);
}

static bool read_requests(struct serve_trace *trace, struct csv *csv, int64_t first_models,
                          struct error *error)
{
	int time, model, input, output, next;

	if (!csv_need(csv, "time_ms", &time, error) || !csv_need(csv, "model", &model, error) ||
	    !csv_need(csv, "input_tokens", &input, error) ||
	    !csv_need(csv, "output_tokens", &output, error))
		return false;
	while ((next = csv_next(csv, error)) > 0) {
		struct serve_request request = { 0 };
		int64_t at_ms, number;
		if (!csv_number(csv, time, 0, TIME_MOST_MS, &at_ms, error) ||
		    !csv_number(csv, model, 0, SERVE_MODELS_MAX - 1, &number, error) ||
		    !csv_number(csv, input, 1, TOKENS_MOST, &request.input, error) ||
		    !csv_number(csv, output, 1, TOKENS_MOST, &request.output, error))
			return false;
		if (first_models > 0 && number >= first_models)
			continue;
		request.at_us = at_ms * 1000;
		request.model = (int)number;
		trace->models = number >= trace->models ? (int)number + 1 : trace->models;
		shrink(&request, serve_kind_of(trace, request.model));
		array_reserve(trace->requests, trace->capacity, trace->count + 1);
		trace->requests[trace->count++] = request;
	}
	if (next == 0 && trace->count == 0)
		return error_set(error, ERROR_INVALID, "%s has no request for these models",
		                 csv->name);
	return next == 0;
}

static int by_time(const void *a, const void *b)
{
	const struct serve_request *x = a, *y = b;

	if (x->at_us != y->at_us)
		return x->at_us < y->at_us ? -1 : 1;
	return x->model - y->model;
}

bool serve_trace_read_kinds(struct serve_trace *trace, const char *models_path, struct error *error)
{
	struct csv models;

	bool fine = csv_open(&models, models_path, error) && read_kinds(trace, &models, error);
	csv_free(&models);
	return fine;
}

bool serve_trace_read(struct serve_trace *trace, const char *models_path, const char *trace_path,
                      int64_t first_models, struct error *error)
{
	struct csv requests;
	double sum = 0;

	if (!serve_trace_read_kinds(trace, models_path, error))
		return false;
	bool fine = csv_open(&requests, trace_path, error) &&
	            read_requests(trace, &requests, first_models, error);
	csv_free(&requests);
	if (!fine)
		return false;
	qsort(trace->requests, trace->count, sizeof(*trace->requests), by_time);
	if (first_models > 0)
		trace->models = (int)first_models;
	for (size_t i = 0; i < trace->count; i++)
		sum += (double)trace->requests[i].output;
	trace->mean_output = sum / (double)trace->count;
	return true;
}

void serve_trace_free(struct serve_trace *trace)
{
	free(trace->requests);
}

const struct serve_kind *serve_kind_of(const struct serve_trace *trace, int model)
{
	static const int of_ten[] = { 0, 0, 0, 0, 0, 0, 1, 1, 2, 2 };

	if (trace->kind_count == 3)
		return &trace->kinds[of_ten[model % 10]];
	return &trace->kinds[model % trace->kind_count];
}
