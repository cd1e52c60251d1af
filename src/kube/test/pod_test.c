/* pod_test.c - what a pod asks for, in the words of the core */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/pod.h"
#include "kube/quantity.h"
#include "kube/selector.h"

static json_t *json_of(const char *text)
{
	json_t *value = json_loads(text, 0, NULL);

	assert_non_null(value);
	return value;
}

static void quantities_round_up(void **state)
{
	static const struct {
		const char *text;
		int64_t milli, units;
	} cases[] = {
		{ "0", 0, 0 },
		{ "1", 1000, 1 },
		{ "100m", 100, 1 },
		{ "1.5", 1500, 2 },
		{ "0.0001", 1, 1 },
		{ "2Ki", 2048000, 2048 },
		{ "1.5Gi", 1610612736000, 1610612736 },
		{ "1e3", 1000000, 1000 },
		{ "12E-1", 1200, 2 },
		{ "5n", 1, 1 },
		{ "9999999999999999999999Ei", INT64_C(1) << 53, INT64_C(1) << 53 },
		{ "1E", INT64_C(1) << 53, INT64_C(1) << 53 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t milli, units;
		assert_true(quantity_milli(cases[i].text, &milli));
		assert_true(quantity_units(cases[i].text, &units));
		assert_int_equal(milli, cases[i].milli);
		assert_int_equal(units, cases[i].units);
	}
}

static void what_is_no_quantity_is_refused(void **state)
{
	static const char *const texts[] = { "",   "-1",  "1x",   "m",  "1 Gi", ".",
		                             "1e", "1e-", "0x10", "++", "1.2.3" };
	int64_t amount;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(quantity_units(texts[i], &amount));
}

static void a_pod_takes_the_larger_of_its_init_containers_and_the_rest(void **state)
{
	json_t *pod =
	    json_of("{\"spec\": {\"initContainers\": ["
	            "{\"name\": \"s\", \"restartPolicy\": \"Always\","
	            " \"resources\": {\"requests\": {\"cpu\": \"100m\"}}},"
	            "{\"name\": \"i\", \"resources\": {\"requests\": {\"cpu\": \"2\", \"x.io/y\": "
	            "\"3\"}}}],"
	            "\"containers\": [{\"name\": \"c\","
	            " \"resources\": {\"requests\": {\"cpu\": \"1\", \"memory\": \"1Mi\"}}}],"
	            "\"overhead\": {\"memory\": \"1Ki\"}}}");
	struct pod_request request;
	struct error error;

	(void)state;
	assert_true(pod_request_read(pod, NULL, &request, &error));
	assert_int_equal(request.cpu_milli, 2100);
	assert_int_equal(request.memory_bytes, (1 << 20) + 1024);
	assert_string_equal(request.counts.data, "pods=1\nx.io/y=3");
	buffer_free(&request.counts);
	json_decref(pod);
}

static void affinity_and_spread_become_rules(void **state)
{
	json_t *pod = json_of(
	    "{\"metadata\": {\"namespace\": \"n\", \"labels\": {\"app\": \"a\"}},"
	    "\"spec\": {\"affinity\": {\"podAntiAffinity\": {"
	    "\"requiredDuringSchedulingIgnoredDuringExecution\": [{\"topologyKey\": \"zone\","
	    "\"labelSelector\": {\"matchLabels\": {\"app\": \"a\"}}}]}},"
	    "\"topologySpreadConstraints\": [{\"maxSkew\": 1, \"topologyKey\": \"node\","
	    "\"whenUnsatisfiable\": \"DoNotSchedule\", \"labelSelector\": {\"matchExpressions\": ["
	    "{\"key\": \"app\", \"operator\": \"Exists\"}]}}],"
	    "\"containers\": [{\"ports\": [{\"hostPort\": 80}]}]}}");
	struct buffer rules = { 0 }, marks = { 0 };
	struct error error;

	(void)state;
	assert_true(pod_rules(pod, NULL, &rules, &error));
	assert_string_equal(rules.data, "port TCP 80 0.0.0.0\n"
	                                "apart label:zone app=a&@namespace=n\n"
	                                "spread label:node 1 1 w app&@namespace=n");
	pod_marks(pod, &marks);
	assert_string_equal(marks.data, "@namespace=n\napp=a");
	buffer_free(&rules);
	buffer_free(&marks);
	json_decref(pod);
}

static void a_malformed_selector_is_refused_and_matches_nothing(void **state)
{
	static const char *const selectors[] = {
		"{\"matchExpressions\": [{\"key\": \"a\", \"operator\": \"Near\"}]}",
		"{\"matchExpressions\": [{\"key\": \"a\", \"operator\": \"In\"}]}",
		"{\"matchExpressions\": [{\"key\": \"a\", \"operator\": \"In\", \"values\": [1]}]}",
		"{\"matchLabels\": {\"a\": \"b|c\"}}",
		"{\"matchLabels\": {\"\": \"b\"}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(selectors) / sizeof(selectors[0]); i++) {
		json_t *selector = json_of(selectors[i]), *labels = json_of("{\"a\": \"b\"}");
		struct buffer text = { 0 };
		struct error error;
		bool none;
		assert_false(selector_print(&text, selector, &none, &error));
		assert_false(selector_matches(selector, labels));
		buffer_free(&text);
		json_decref(selector);
		json_decref(labels);
	}
}

static void a_node_says_all_that_keeps_a_pod_off(void **state)
{
	json_t *pod = json_of("{\"spec\": {\"nodeSelector\": {\"disk\": \"ssd\"}}}");
	json_t *node =
	    json_of("{\"metadata\": {\"name\": \"n\"}, \"spec\": {\"unschedulable\": true,"
	            "\"taints\": [{\"key\": \"k\", \"effect\": \"NoSchedule\"},"
	            "{\"key\": \"soft\", \"effect\": \"PreferNoSchedule\"}]}}");
	struct buffer reasons = { 0 };

	(void)state;
	assert_int_equal(pod_judge_node(pod, node, NULL, &reasons), 0);
	assert_string_equal(reasons.data, POD_JUDGE_UNSCHEDULABLE "; " POD_JUDGE_SELECTOR
	                                                          "; " POD_JUDGE_TAINT "k");
	buffer_free(&reasons);
	json_decref(pod);
	json_decref(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantities_round_up),
		cmocka_unit_test(what_is_no_quantity_is_refused),
		cmocka_unit_test(a_pod_takes_the_larger_of_its_init_containers_and_the_rest),
		cmocka_unit_test(affinity_and_spread_become_rules),
		cmocka_unit_test(a_malformed_selector_is_refused_and_matches_nothing),
		cmocka_unit_test(a_node_says_all_that_keeps_a_pod_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
