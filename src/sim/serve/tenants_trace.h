/* tenants_trace.h - a day of many tenants' requests to one model, drawn from its statistics */
#ifndef SIM_SERVE_TENANTS_TRACE_H
#define SIM_SERVE_TENANTS_TRACE_H

#include "sim/world/csv.h"

enum { TENANTS_MOST = 4096, QUANTILES = 15, WINDOW_S = 600, LENGTHS_WINDOW_S = 21600 };

/* Requests of a tenant for WINDOW_S: how many a second, and the distribution of the gaps. */
struct tenant_rate {
	int64_t begins_s;
	int client;
	double per_s, shape, scale;
	bool is_weibull; /* otherwise gamma */
};

/* Lengths of a client's prompts or answers for LENGTHS_WINDOW_S; client -1: all together. */
struct tenant_lengths {
	int64_t begins_s;
	int client;
	bool is_output;
	double quantiles[QUANTILES];
};

struct tenant_request {
	int64_t at_us, input, output; /* tokens; at least 1 */
	int tenant;                   /* from 0 on, in the order of their client numbers */
};

struct tenants_trace {
	struct tenant_rate *rates;
	size_t rate_count, rate_capacity;
	struct tenant_lengths *lengths;
	size_t length_count, length_capacity;
	struct tenant_request *requests; /* by time */
	size_t count, capacity;
	int *clients; /* by tenant */
	int tenants;
	double mean_output;
};

/* What is drawn: `hours` from `from_hour` on, at `scale` of the rates; no request is longer than
 * `longest`. */
struct tenants_choice {
	int64_t from_hour, hours, longest;
	double scale;
	uint64_t seed;
};

/* Reads ServeGen's rates and lengths and draws the requests: gaps from each window's distribution,
 * stretched to fill it, and lengths by interpolation between quantiles. False with a reason. To be
 * freed in any case. */
bool tenants_trace_read(struct tenants_trace *trace, const char *rates_path,
                        const char *lengths_path, const struct tenants_choice *choice,
                        struct error *error);
bool tenants_read_rates(struct tenants_trace *trace, struct csv *csv, struct error *error);
bool tenants_read_lengths(struct tenants_trace *trace, struct csv *csv, struct error *error);
void tenants_trace_free(struct tenants_trace *trace);

#endif
