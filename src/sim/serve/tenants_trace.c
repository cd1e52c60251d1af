/* tenants_trace.c - a day of many tenants' requests to one model, drawn from its statistics */
#include "sim/serve/tenants_trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"

enum { TIME_MOST_S = 1000000000, CLIENT_MOST = 1000000, ALL_CLIENTS = -1, ROWS_MOST = 10000000 };
#define TOKENS_MOST 10000000.0
#define RATE_MOST 1e6
#define SHAPE_LEAST 0.01
#define REQUESTS_MOST 20000000

static const double points[QUANTILES] = { 0,   .01, .05, .10, .20, .30, .40, .50,
	                                  .60, .70, .80, .90, .95, .99, 1 };

static bool read_figure(const struct csv *csv, const char *column, double least, double most,
                        double *number, struct error *error)
{
	const char *text;
	char *end;
	int at;

	if (!csv_need(csv, column, &at, error) || !csv_text(csv, at, &text, error))
		return false;
	*number = strtod(text, &end);
	if (*end || !(*number >= least && *number <= most))
		return error_set(error, ERROR_INVALID,
		                 "%s, line %lld: %s is '%.40s': it must be a number from %g to %g",
		                 csv->name, (long long)csv->line, column, text, least, most);
	return true;
}

static bool read_whole(const struct csv *csv, const char *column, int64_t most, int64_t *number,
                       struct error *error)
{
	int at;

	return csv_need(csv, column, &at, error) && csv_number(csv, at, 0, most, number, error);
}

static bool read_word(const struct csv *csv, const char *column, const char *one, const char *other,
                      bool *is_one, struct error *error)
{
	const char *text;
	int at;

	if (!csv_need(csv, column, &at, error) || !csv_text(csv, at, &text, error))
		return false;
	*is_one = strcmp(text, one) == 0;
	if (!*is_one && strcmp(text, other) != 0)
		return error_set(error, ERROR_INVALID,
		                 "%s, line %lld: %s is '%.40s': it must be %s or %s", csv->name,
		                 (long long)csv->line, column, text, one, other);
	return true;
}

static bool read_rate(const struct csv *csv, struct tenant_rate *rate, struct error *error)
{
	int64_t client;

	if (!read_whole(csv, "time_s", TIME_MOST_S, &rate->begins_s, error) ||
	    !read_whole(csv, "client", CLIENT_MOST, &client, error) ||
	    !read_figure(csv, "req_per_s", 0, RATE_MOST, &rate->per_s, error) ||
	    !read_word(csv, "pattern", "w", "g", &rate->is_weibull, error) ||
	    !read_figure(csv, "shape", SHAPE_LEAST, RATE_MOST, &rate->shape, error) ||
	    !read_figure(csv, "scale", 1e-9, 1e9, &rate->scale, error))
		return false;
	rate->client = (int)client;
	return true;
}

bool tenants_read_rates(struct tenants_trace *trace, struct csv *csv, struct error *error)
{
	int next;

	while ((next = csv_next(csv, error)) > 0) {
		struct tenant_rate rate = { 0 };
		if (!read_rate(csv, &rate, error))
			return false;
		array_reserve(trace->rates, trace->rate_capacity, trace->rate_count + 1);
		trace->rates[trace->rate_count++] = rate;
	}
	if (next == 0 && trace->rate_count == 0)
		return error_set(error, ERROR_INVALID, "%s has no row", csv->name);
	return next == 0;
}

static bool read_quantiles(const struct csv *csv, struct tenant_lengths *lengths,
                           struct error *error)
{
	for (int i = 0; i < QUANTILES; i++) {
		char name[8];
		snprintf(name, sizeof(name), "q%d", (int)lround(points[i] * 100));
		if (!read_figure(csv, name, i == 0 ? 0 : lengths->quantiles[i - 1], TOKENS_MOST,
		                 &lengths->quantiles[i], error))
			return false;
	}
	return true;
}

static bool read_lengths(const struct csv *csv, struct tenant_lengths *lengths, struct error *error)
{
	const char *client;
	int64_t number = ALL_CLIENTS;
	int at;

	if (!read_whole(csv, "time_s", TIME_MOST_S, &lengths->begins_s, error) ||
	    !csv_need(csv, "client", &at, error) || !csv_text(csv, at, &client, error) ||
	    (strcmp(client, "-1") != 0 && !csv_number(csv, at, 0, CLIENT_MOST, &number, error)) ||
	    !read_word(csv, "what", "output", "input", &lengths->is_output, error))
		return false;
	lengths->client = (int)number;
	return read_quantiles(csv, lengths, error);
}

bool tenants_read_lengths(struct tenants_trace *trace, struct csv *csv, struct error *error)
{
	int next;

	while ((next = csv_next(csv, error)) > 0) {
		struct tenant_lengths lengths = { 0 };
		if (!read_lengths(csv, &lengths, error))
			return false;
		array_reserve(trace->lengths, trace->length_capacity, trace->length_count + 1);
		trace->lengths[trace->length_count++] = lengths;
	}
	if (next == 0 && trace->length_count == 0)
		return error_set(error, ERROR_INVALID, "%s has no row", csv->name);
	return next == 0;
}

/* From 0 to below 1; never 0. */
static double uniform(uint64_t *seed)
{
	return ((double)(random_next(seed) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *seed)
{
	double radius = sqrt(-2 * log(uniform(seed)));

	return radius * cos(6.283185307179586 * uniform(seed));
}

/* Marsaglia and Tsang's method; a shape below one is lifted by one and taken back. */
static double gamma_gap(double shape, uint64_t *seed)
{
	double lifted = shape < 1 ? shape + 1 : shape, d = lifted - 1.0 / 3, c = 1 / sqrt(9 * d);

	for (;;) {
		double x = normal(seed), v = 1 + c * x;
		if (v <= 0)
			continue;
		v = v * v * v;
		if (log(uniform(seed)) >= 0.5 * x * x + d - d * v + d * log(v))
			continue;
		return shape < 1 ? d * v * pow(uniform(seed), 1 / shape) : d * v;
	}
}

/* The scale does not matter: gaps are stretched. */
static double gap_of(const struct tenant_rate *rate, uint64_t *seed)
{
	return rate->is_weibull ? pow(-log(uniform(seed)), 1 / rate->shape)
	                        : gamma_gap(rate->shape, seed);
}

/* The client's own lengths at that time; else those of all clients, then or at the beginning. */
static const struct tenant_lengths *lengths_of(const struct tenants_trace *trace, int client,
                                               int64_t at_s, bool is_output)
{
	const struct tenant_lengths *best = NULL;
	int64_t window_s = at_s / LENGTHS_WINDOW_S * LENGTHS_WINDOW_S;
	int best_rank = 0;

	for (size_t i = 0; i < trace->length_count; i++) {
		const struct tenant_lengths *at = &trace->lengths[i];
		if (at->is_output != is_output ||
		    (at->client != client && at->client != ALL_CLIENTS))
			continue;
		int rank = (at->begins_s == window_s ? 2 : 1) + (at->client == client ? 2 : 0);
		if (rank > best_rank) {
			best = at;
			best_rank = rank;
		}
	}
	return best;
}

static int64_t length_drawn(const struct tenant_lengths *lengths, int64_t longest, uint64_t *seed)
{
	double u = uniform(seed);
	int at = 1;

	while (at < QUANTILES - 1 && points[at] < u)
		at++;
	double part = (u - points[at - 1]) / (points[at] - points[at - 1]);
	double from = lengths->quantiles[at - 1], to = lengths->quantiles[at];
	return min64(max64((int64_t)(from + part * (to - from)), 1), longest);
}

static int tenant_of(struct tenants_trace *trace, int client)
{
	int at = 0;

	while (at < trace->tenants && trace->clients[at] != client)
		at++;
	return at;
}

static bool draw_window(struct tenants_trace *trace, const struct tenant_rate *rate,
                        const struct tenants_choice *choice, uint64_t *seed, struct error *error)
{
	const struct tenant_lengths *input = lengths_of(trace, rate->client, rate->begins_s, false);
	const struct tenant_lengths *output = lengths_of(trace, rate->client, rate->begins_s, true);
	double count = ceil(WINDOW_S * rate->per_s * choice->scale), sum = 0, at = 0;

	if (!input || !output)
		return error_set(error, ERROR_INVALID,
		                 "there are no lengths for client %d, nor for client -1",
		                 rate->client);
	if ((double)trace->count + count > REQUESTS_MOST)
		return error_set(error, ERROR_INVALID,
		                 "these are more than %d requests: give a smaller --scale or fewer "
		                 "--hours",
		                 REQUESTS_MOST);
	size_t first = trace->count;
	array_reserve(trace->requests, trace->capacity, first + (size_t)count);
	double *gaps = memory_zero((size_t)count + 1, sizeof(*gaps));
	for (size_t i = 0; i < (size_t)count; i++)
		sum += gaps[i] = gap_of(rate, seed);
	int64_t begins_us = (rate->begins_s - choice->from_hour * 3600) * 1000000;
	int tenant = tenant_of(trace, rate->client);
	for (size_t i = 0; i < (size_t)count; i++) {
		at += sum > 0 ? gaps[i] / sum : 0;
		trace->requests[trace->count++] = (struct tenant_request){
			.at_us = begins_us + (int64_t)(at * (WINDOW_S * 1e6 - 1)),
			.input = length_drawn(input, choice->longest, seed),
			.output = length_drawn(output, choice->longest, seed),
			.tenant = tenant,
		};
	}
	free(gaps);
	return true;
}

static int tenants_by_time(const void *a, const void *b)
{
	const struct tenant_request *x = a, *y = b;

	if (x->at_us != y->at_us)
		return x->at_us < y->at_us ? -1 : 1;
	if (x->tenant != y->tenant)
		return x->tenant - y->tenant;
	return x->input != y->input ? (x->input < y->input ? -1 : 1) : 0;
}

static bool is_chosen(const struct tenant_rate *rate, const struct tenants_choice *choice)
{
	int64_t from_s = choice->from_hour * 3600;

	return rate->begins_s >= from_s && rate->begins_s < from_s + choice->hours * 3600 &&
	       rate->per_s > 0;
}

/* Tenants are numbered by client, whatever the order of rows. */
static bool number_tenants(struct tenants_trace *trace, const struct tenants_choice *choice,
                           struct error *error)
{
	trace->clients = memory_zero(TENANTS_MOST, sizeof(*trace->clients));
	for (size_t i = 0; i < trace->rate_count; i++) {
		int client = trace->rates[i].client, at = trace->tenants;
		if (!is_chosen(&trace->rates[i], choice) ||
		    tenant_of(trace, client) < trace->tenants)
			continue;
		if (trace->tenants == TENANTS_MOST)
			return error_set(error, ERROR_INVALID, "there are more than %d clients",
			                 TENANTS_MOST);
		for (; at > 0 && trace->clients[at - 1] > client; at--)
			trace->clients[at] = trace->clients[at - 1];
		trace->clients[at] = client;
		trace->tenants++;
	}
	return true;
}

static bool draw(struct tenants_trace *trace, const struct tenants_choice *choice,
                 struct error *error)
{
	uint64_t seed = choice->seed;
	double sum = 0;

	if (!number_tenants(trace, choice, error))
		return false;
	for (size_t i = 0; i < trace->rate_count; i++)
		if (is_chosen(&trace->rates[i], choice) &&
		    !draw_window(trace, &trace->rates[i], choice, &seed, error))
			return false;
	if (trace->count == 0)
		return error_set(error, ERROR_INVALID, "there is no request in these hours");
	qsort(trace->requests, trace->count, sizeof(*trace->requests), tenants_by_time);
	for (size_t i = 0; i < trace->count; i++)
		sum += (double)trace->requests[i].output;
	trace->mean_output = sum / (double)trace->count;
	return true;
}

bool tenants_trace_read(struct tenants_trace *trace, const char *rates_path,
                        const char *lengths_path, const struct tenants_choice *choice,
                        struct error *error)
{
	struct csv rates, lengths;

	bool fine = csv_open(&rates, rates_path, error) && tenants_read_rates(trace, &rates, error);
	csv_free(&rates);
	if (!fine)
		return false;
	fine =
	    csv_open(&lengths, lengths_path, error) && tenants_read_lengths(trace, &lengths, error);
	csv_free(&lengths);
	return fine && draw(trace, choice, error);
}

void tenants_trace_free(struct tenants_trace *trace)
{
	free(trace->rates);
	free(trace->lengths);
	free(trace->requests);
	free(trace->clients);
}
