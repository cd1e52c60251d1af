/* yaml_read_test.c - what documents of YAML mean, and which are refused */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/text/yaml_read.h"

static void assert_means(const char *text, const char *expected)
{
	struct error error = { 0 };
	json_t *documents = yaml_read("job.yaml", text, strlen(text), &error);
	assert_non_null(documents);
	char *json = json_dumps(documents, JSON_COMPACT);
	assert_string_equal(json, expected);
	free(json);
	json_decref(documents);
}

static void documents_become_values(void **state)
{
	(void)state;
	assert_means(
	    "name: a\ncommand: [sleep, '10']\n---\nname: b\ngpu_count: 2\n",
	    "[{\"name\":\"a\",\"command\":[\"sleep\",\"10\"]},{\"name\":\"b\",\"gpu_count\":2}]");
	assert_means("---\n---\nhold: true\ngpu_fraction: 0.5\nimage: ~\narray: 1-3\n",
	             "[{\"hold\":true,\"gpu_fraction\":0.5,\"image\":null,\"array\":\"1-3\"}]");
	assert_means("script: |\n  #!/bin/sh\n  echo hi\n",
	             "[{\"script\":\"#!/bin/sh\\necho hi\\n\"}]");
	assert_means("{\"labels\": {\"a\": \"1\"}}", "[{\"labels\":{\"a\":\"1\"}}]");
	assert_means("", "[]");
}

static void what_is_not_plain_yaml_is_refused_with_its_line(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"name: a\nname: b\n",    "name: a\ncopy: *x\n", "name: a\nb: &x 1\n",
		"name: a\nb: !!int 1\n", "name: a\n[1]: 2\n",   "name: a\nb: [1\n",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct error error = { 0 };
		assert_null(yaml_read("job.yaml", texts[i], strlen(texts[i]), &error));
		assert_memory_equal(error.text, "job.yaml:", 9);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents_become_values),
		cmocka_unit_test(what_is_not_plain_yaml_is_refused_with_its_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
