/* pack_test.c - the packing protocol on small clusters, and what is drawn of it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/trace/pack.h"
#include "sim/world/chart.h"

enum { KINDS_MAX = 8 };

/* Two nodes of four GPUs, one of another model. */
static struct openb cluster_with(struct openb_kind *kinds, size_t kind_count, int32_t *pods,
                                 size_t pod_count)
{
	static struct openb_node nodes[] = { { "a", "T4", 64000, 65536, 4 },
		                             { "b", "G2", 64000, 65536, 4 } };
	return (struct openb){ .nodes = nodes,
		               .node_count = 2,
		               .kinds = kinds,
		               .kind_count = kind_count,
		               .pods = pods,
		               .pod_count = pod_count,
		               .gpu_milli = 8000 };
}

static struct pack_result pack_execute(const struct openb *openb, const char *policy, uint64_t seed)
{
	static int64_t arrived[KINDS_MAX], rejected[KINDS_MAX];
	struct pack_result result = { .arrived = arrived, .rejected = rejected };
	struct error error = { 0 };
	memset(arrived, 0, sizeof(arrived));
	memset(rejected, 0, sizeof(rejected));
	if (!pack_run(openb, pack_policy(policy), seed, &result, NULL, NULL, &error))
		fail_msg("refused: %s", error.text);
	return result;
}

static void what_fits_is_given_out_and_the_rest_dropped(void **state)
{
	struct openb_kind kinds[] = { { 1000, 1024, 1, 1000, "" } };
	int32_t pods[] = { 0 };
	struct openb openb = cluster_with(kinds, 1, pods, 1);
	(void)state;
	for (int i = 0; i < pack_policy_count; i++) {
		struct pack_result result = pack_execute(&openb, pack_policies[i].name, 1);
		assert_int_equal(result.allocated[50], 4000);
		assert_int_equal(result.allocated[100], 8000);
		assert_int_equal(result.allocated[130], 8000);
		assert_int_equal(result.arrived[0], 11);
		assert_int_equal(result.rejected[0], 3);
	}
}

static void pods_keep_to_their_models_and_to_the_cpu_there_is(void **state)
{
	struct openb_kind kinds[] = { { 1000, 1024, 1, 1000, "G2|P100" },
		                      { 40000, 1024, 1, 1000, "T4" } };
	int32_t pods[] = { 0, 1 };
	struct openb openb = cluster_with(kinds, 2, pods, 2);
	(void)state;
	for (int i = 0; i < pack_policy_count; i++) {
		struct pack_result result = pack_execute(&openb, pack_policies[i].name, 3);
		assert_true(result.arrived[0] - result.rejected[0] <= 4);
		assert_int_equal(result.arrived[1] - result.rejected[1], 1);
	}
}

static void a_seed_gives_the_same_every_time_and_another_one_does_not(void **state)
{
	struct openb_kind kinds[] = { { 9000, 1024, 1, 470, "" },
		                      { 1000, 1024, 1, 320, "" },
		                      { 12000, 1024, 1, 810, "" },
		                      { 8000, 1024, 2, 1000, "" },
		                      { 9000, 4096, 0, 0, "" } };
	int32_t pods[] = { 0, 1, 2, 3, 4, 0, 0, 1 };
	struct openb openb = cluster_with(kinds, 5, pods, 8);
	(void)state;
	for (int i = 0; i < pack_policy_count; i++) {
		struct pack_result one = pack_execute(&openb, pack_policies[i].name, 5);
		struct pack_result other = pack_execute(&openb, pack_policies[i].name, 5);
		int differ = 0;
		assert_memory_equal(one.allocated, other.allocated, sizeof(one.allocated));
		for (uint64_t seed = 6; seed < 16; seed++) {
			other = pack_execute(&openb, pack_policies[i].name, seed);
			differ +=
			    memcmp(one.allocated, other.allocated, sizeof(one.allocated)) != 0;
		}
		assert_true(differ > 0);
	}
}

static void an_unknown_policy_is_not_found(void **state)
{
	(void)state;
	assert_null(pack_policy("best"));
	assert_string_equal(pack_policy("worth")->name, "worth");
}

static void a_plot_has_its_lines_its_names_and_nothing_that_breaks_it(void **state)
{
	const double x[] = { 0, 50, 100, 200 }, y[] = { 0, 40, 90, 10 };
	struct chart chart = { "a < b & c", "x",  "y", 0, 100, 0, 100, { { "<one>", x, y, 4 } },
		               1,           false };
	struct buffer buffer = { 0 };
	(void)state;
	charts_print(&chart, 1, &buffer);
	assert_non_null(strstr(buffer.data, "a &lt; b &amp; c"));
	assert_non_null(strstr(buffer.data, "&lt;one>"));
	assert_non_null(strstr(buffer.data, "points=\"70.0,404.0 390.0,260.8 710.0,81.8 \""));
	assert_non_null(strstr(buffer.data, "</svg>"));
	buffer_free(&buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_is_given_out_and_the_rest_dropped),
		cmocka_unit_test(pods_keep_to_their_models_and_to_the_cpu_there_is),
		cmocka_unit_test(a_seed_gives_the_same_every_time_and_another_one_does_not),
		cmocka_unit_test(an_unknown_policy_is_not_found),
		cmocka_unit_test(a_plot_has_its_lines_its_names_and_nothing_that_breaks_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
