/* serve_test.c - servers that work in steps, and many models on few GPUs */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sim/serve/serve.h"
#include "sim/serve/serve_server.h"

static const struct serve_kind kind = { .name = "kind",
	                                .weights_gb = 14,
	                                .overhead_gb = 1.5,
	                                .kv_gb = 6,
	                                .kv_bytes = 400000,
	                                .longest = 8192,
	                                .prefill_ms = 7,
	                                .prefill_token_ms = 0.02,
	                                .decode_ms = 9,
	                                .decode_request_ms = 0.1 };

static void prompts_go_first_and_then_each_gets_a_token_a_step(void **unused)
{
	struct server server;
	struct served all[2] = { { .input = 1000, .output = 3 }, { .input = 500, .output = 2 } };
	size_t ended[SERVER_BATCH_MAX];

	(void)unused;
	server_begin(&server, &kind, kind.kv_gb, 100);
	assert_false(server_has_work(&server));
	server_add(&server, all, 0);
	server_add(&server, all, 1);
	assert_int_equal(server_step(&server, all), 37000); /* 7 + 0.02 x 1500 ms */
	assert_int_equal(server_end_step(&server, all, 37000, ended), 0);
	assert_true(all[0].tokens == 1 && all[1].tokens == 1 && all[0].first_us == 37000);
	assert_int_equal(server_step(&server, all), 9200);
	assert_int_equal(server_end_step(&server, all, 46200, ended), 1);
	assert_int_equal(ended[0], 1);
	assert_int_equal(server_step(&server, all), 9100);
	assert_int_equal(server_end_step(&server, all, 55300, ended), 1);
	assert_int_equal(ended[0], 0);
	assert_true(all[0].first_us == 37000 && all[0].last_us == 55300);
	assert_false(server_has_work(&server));
	assert_int_equal(server.kv_used, 0);
}

static void a_request_waits_until_the_cache_has_room(void **unused)
{
	struct server server;
	struct served all[3] = { { .input = 7000, .output = 2 },
		                 { .input = 7000, .output = 1 },
		                 { .input = 7000, .output = 1 } };
	size_t ended[SERVER_BATCH_MAX];

	(void)unused;
	server_begin(&server, &kind, kind.kv_gb, 100); /* 15,000 tokens */
	for (size_t i = 0; i < 3; i++)
		server_add(&server, all, i);
	server_step(&server, all); /* two prompts are more than 8,192 tokens */
	assert_int_equal(server.count, 1);
	server_end_step(&server, all, 1, ended);
	server_step(&server, all);
	assert_int_equal(server.count, 2);
	assert_int_equal(server_end_step(&server, all, 2, ended), 1);
	server_step(&server, all);
	assert_int_equal(server.count, 2);
	server_end_step(&server, all, 3, ended);
	assert_true(all[2].tokens == 1 && all[0].tokens == 1);
}

/* Models that are each asked again and again, in turn. */
static struct serve_trace trace_of(int models, int64_t requests, int64_t gap_ms)
{
	struct serve_trace trace = { .kind_count = 1, .models = models, .mean_output = 100 };

	trace.kinds[0] = kind;
	trace.count = (size_t)requests;
	trace.requests = memory_zero(trace.count, sizeof(*trace.requests));
	for (int64_t i = 0; i < requests; i++)
		trace.requests[i] = (struct serve_request){ .at_us = i * gap_ms * 1000,
			                                    .model = (int)(i % models),
			                                    .input = 200,
			                                    .output = 100 };
	return trace;
}

static void no_tick(void *context)
{
	(void)context;
}

static struct serve_result serve_with(const struct serve_trace *trace, int gpus,
                                      enum serve_policy policy)
{
	const struct serve_setup setup = { .gpus = gpus, .gpu_gb = 80, .load_gbps = 16 };
	struct serve_result result;
	struct error error = { 0 };

	assert_true(serve_run(trace, &setup, policy, &result, no_tick, NULL, &error));
	return result;
}

static void models_that_fit_are_never_loaded_again(void **unused)
{
	struct serve_trace trace = trace_of(6, 60, 500);

	(void)unused;
	for (int policy = 0; policy < SERVE_POLICIES; policy++) {
		struct serve_result result = serve_with(&trace, 2, (enum serve_policy)policy);
		assert_true(result.attainment > 0.999 && result.worst_tenth > 0.999);
		assert_int_equal(result.loads, 0);
		assert_int_equal(result.refused + result.cut, 0);
	}
	serve_trace_free(&trace);
}

static void more_models_than_fit_are_all_served_but_by_the_static_placement(void **unused)
{
	struct serve_trace trace = trace_of(12, 120, 1000);

	(void)unused;
	struct serve_result result = serve_with(&trace, 2, SERVE_OURS);
	assert_true(result.attainment > 0.99 && result.loads > 12);
	assert_true(result.load_time_share > 0 && result.load_time_share < 0.5);
	result = serve_with(&trace, 2, SERVE_STATIC);
	assert_true(result.attainment > 0.49 && result.attainment < 0.51);
	assert_int_equal(result.loads, 0);
	result = serve_with(&trace, 2, SERVE_ORACLE);
	assert_true(result.attainment > 0.999);
	serve_trace_free(&trace);
}

static void the_same_run_gives_the_same_figures(void **unused)
{
	struct serve_trace trace = trace_of(9, 90, 300);

	(void)unused;
	struct serve_result one = serve_with(&trace, 2, SERVE_OURS),
			    other = serve_with(&trace, 2, SERVE_OURS);
	assert_memory_equal(&one, &other, sizeof(one));
	serve_trace_free(&trace);
}

static void a_model_that_fits_no_gpu_is_refused(void **unused)
{
	struct serve_trace trace = trace_of(1, 1, 1);
	const struct serve_setup setup = { .gpus = 1, .gpu_gb = 20, .load_gbps = 16 };
	struct serve_result result;
	struct error error = { 0 };

	(void)unused;
	assert_false(serve_run(&trace, &setup, SERVE_OURS, &result, no_tick, NULL, &error));
	assert_non_null(strstr(error.text, "model kind does not fit on a GPU of 20 GB"));
	serve_trace_free(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prompts_go_first_and_then_each_gets_a_token_a_step),
		cmocka_unit_test(a_request_waits_until_the_cache_has_room),
		cmocka_unit_test(models_that_fit_are_never_loaded_again),
		cmocka_unit_test(more_models_than_fit_are_all_served_but_by_the_static_placement),
		cmocka_unit_test(the_same_run_gives_the_same_figures),
		cmocka_unit_test(a_model_that_fits_no_gpu_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
