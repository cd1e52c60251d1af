/* csv_fuzz.c - whatever the bytes, a table is refused with a reason or read as a trace */
#include "sim/serve/prefix_trace.h"
#include "sim/serve/tenants_trace.h"
#include "sim/trace/history.h"
#include "sim/trace/openb.h"
#include "sim/trace/philly.h"

static void read_as_jobs(const uint8_t *data, size_t size)
{
	const struct philly_choice all = { 0 };
	struct csv csv;
	struct philly philly = { 0 };
	struct error error = { 0 };
	bool fine = csv_begin(&csv, "fuzz", data, size, &error) &&
	            philly_read_rows(&philly, &csv, &all, &error);
	INVARIANT(fine == (error.code == ERROR_NONE));
	for (size_t i = 0; i < philly.count; i++)
		INVARIANT(philly.jobs[i].duration_ms >= 0 && philly.jobs[i].gpus > 0);
	csv_free(&csv);
	philly_free(&philly);
}

static void read_as_history(const uint8_t *data, size_t size)
{
	struct csv csv;
	struct history history = { 0 };
	struct error error = { 0 };
	bool fine = csv_begin(&csv, "fuzz", data, size, &error) &&
	            history_read_rows(&history, &csv, &error);
	INVARIANT(fine == (error.code == ERROR_NONE));
	for (size_t i = 1; fine && i < history.count; i++)
		INVARIANT(history.jobs[i].duration_s > 0 &&
		          history.jobs[i].submit_s >= history.jobs[i - 1].submit_s);
	csv_free(&csv);
	history_free(&history);
}

static void read_as_prompts(const uint8_t *data, size_t size)
{
	struct csv csv;
	struct prefix_trace trace = { 0 };
	struct error error = { 0 };
	bool fine = csv_begin(&csv, "fuzz", data, size, &error) &&
	            prefix_trace_read_rows(&trace, &csv, &error);
	INVARIANT(fine == (error.code == ERROR_NONE));
	for (size_t i = 0; fine && i < trace.count; i++) {
		const struct prefix_request *request = &trace.requests[i];
		INVARIANT(request->blocks > 0 && request->blocks <= request->input &&
		          request->first + (size_t)request->blocks <= trace.block_count);
		INVARIANT(i == 0 || request->at_us >= trace.requests[i - 1].at_us);
	}
	csv_free(&csv);
	prefix_trace_free(&trace);
}

static void read_as_tenants(const uint8_t *data, size_t size,
                            bool (*read)(struct tenants_trace *, struct csv *, struct error *))
{
	struct csv csv;
	struct tenants_trace trace = { 0 };
	struct error error = { 0 };
	bool fine = csv_begin(&csv, "fuzz", data, size, &error) && read(&trace, &csv, &error);
	INVARIANT(fine == (error.code == ERROR_NONE));
	for (size_t i = 0; i < trace.rate_count; i++)
		INVARIANT(trace.rates[i].per_s >= 0 && trace.rates[i].shape > 0);
	for (size_t i = 0; i < trace.length_count; i++)
		INVARIANT(trace.lengths[i].quantiles[0] <=
		          trace.lengths[i].quantiles[QUANTILES - 1]);
	csv_free(&csv);
	tenants_trace_free(&trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_as(const uint8_t *data, size_t size,
                    bool (*read)(struct openb *, struct csv *, struct error *))
{
	struct csv csv;
	struct openb openb = { 0 };
	struct error error = { 0 };
	bool fine = csv_begin(&csv, "fuzz", data, size, &error) && read(&openb, &csv, &error);
	INVARIANT(fine == (error.code == ERROR_NONE));
	for (size_t i = 0; i < openb.pod_count; i++)
		INVARIANT(openb.pods[i] >= 0 && (size_t)openb.pods[i] < openb.kind_count);
	csv_free(&csv);
	openb_free(&openb);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_as(data, size, openb_read_nodes);
	read_as(data, size, openb_read_pods);
	read_as_jobs(data, size);
	read_as_history(data, size);
	read_as_prompts(data, size);
	read_as_tenants(data, size, tenants_read_rates);
	read_as_tenants(data, size, tenants_read_lengths);
	return 0;
}
