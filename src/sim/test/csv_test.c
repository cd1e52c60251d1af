/* csv_test.c - tables are read strictly, and errors say where */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/trace/openb.h"

static bool csv_start(struct csv *csv, const char *text, struct error *error)
{
	return csv_begin(csv, "t", text, strlen(text), error);
}

static void rows_are_read_cell_by_cell(void **state)
{
	struct csv csv;
	struct error error = { 0 };
	int64_t number;
	(void)state;
	assert_true(csv_start(&csv, "a,b\r\n1,x\n,2", &error));
	assert_int_equal(csv_column(&csv, "b"), 1);
	assert_int_equal(csv_column(&csv, "c"), -1);
	assert_int_equal(csv_next(&csv, &error), 1);
	assert_true(csv_number(&csv, 0, 0, 9, &number, &error));
	assert_int_equal(number, 1);
	assert_string_equal(csv.cells[1], "x");
	assert_int_equal(csv_next(&csv, &error), 1);
	assert_string_equal(csv.cells[0], "");
	assert_int_equal(csv_next(&csv, &error), 0);
	assert_int_equal(csv_next(&csv, &error), 0);
	csv_free(&csv);
}

static void tables_that_are_not_are_refused_with_their_line(void **state)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{ "", "t: is empty; its first line names columns" },
		{ "a,\n", "t:1: column 2 has no name" },
		{ "a,a\n", "t:1: two columns are named 'a'" },
		{ "a,b\n1\n", "t:2: has 1 cells, the first line names 2 columns" },
		{ "a\n1\n\n2\n", "t:3: is an empty line" },
		{ "a\n\"1\"\n", "t:2: has a quote; cells are plain text here" },
		{ "a\n\x01\n", "t:2: has a byte 1, which is not text" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct csv csv;
		struct error error = { 0 };
		int found = csv_start(&csv, wrong[i].text, &error) ? 1 : -1;
		while (found > 0)
			found = csv_next(&csv, &error);
		assert_int_equal(found, -1);
		assert_string_equal(error.text, wrong[i].why);
		csv_free(&csv);
	}
}

static void only_whole_numbers_in_range_are_numbers(void **state)
{
	static const char *const wrong[] = { "",    " 1", "1 ",
		                             "-1",  "+1", "1.5",
		                             "0x1", "11", "99999999999999999999" };
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char text[64];
		struct csv csv;
		struct error error = { 0 };
		int64_t number = 7;
		snprintf(text, sizeof(text), "a,b\n%s,\n", wrong[i]);
		assert_true(csv_start(&csv, text, &error));
		assert_int_equal(csv_next(&csv, &error), 1);
		assert_false(csv_number(&csv, 0, 0, 10, &number, &error));
		assert_int_equal(number, 7);
		assert_non_null(strstr(error.text, "t:2: a is '"));
		csv_free(&csv);
	}
}

#define NODES "sn,cpu_milli,memory_mib,gpu,model\n"
#define PODS "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"

static void traces_are_read_with_pods_by_kind(void **state)
{
	struct openb openb = { 0 };
	struct csv csv;
	struct error error = { 0 };
	(void)state;
	assert_true(csv_start(&csv, NODES "n1,64000,1024,2,P100\nn2,8000,512,0,\n", &error));
	assert_true(openb_read_nodes(&openb, &csv, &error));
	csv_free(&csv);
	assert_true(csv_start(
	    &csv, PODS "p1,1,2,1,470,A|B\np2,1,2,8,1000,\np3,1,2,1,470,A|B\np4,1,2,0,0,A\n",
	    &error));
	assert_true(openb_read_pods(&openb, &csv, &error));
	csv_free(&csv);
	assert_int_equal(openb.node_count, 2);
	assert_int_equal(openb.gpu_milli, 2000);
	assert_string_equal(openb.nodes[0].model, "P100");
	assert_int_equal(openb.pod_count, 4);
	assert_int_equal(openb.kind_count, 3);
	assert_int_equal(openb.pods[2], openb.pods[0]);
	assert_string_equal(openb.kinds[0].models, "A|B");
	assert_int_equal(openb_asks(&openb.kinds[1]), 8000);
	openb_free(&openb);
}

static void nodes_and_pods_that_make_no_sense_are_refused(void **state)
{
	static const struct {
		bool pods;
		const char *text, *why;
	} wrong[] = {
		{ false, "sn,gpu\nn,1\n", "t:1: there is no column 'cpu_milli'" },
		{ false, NODES ",1,1,1,T4\n", "t:2: sn is empty" },
		{ false, NODES "n,1,1,1,\n", "t:2: model is empty" },
		{ false, NODES "n,1,1,65,T4\n",
		  "t:2: gpu is '65', not a whole number from 0 to 64" },
		{ false, NODES "n,1,1,1,T4\nn,1,1,1,T4\n", "t:3: there is a node 'n' already" },
		{ false, NODES "n=1,1,1,1,T4\n",
		  "t:2: names of nodes have no blank and no '=', models no '|'" },
		{ true, PODS "p,1,1,1,0,\n",
		  "t:2: gpu_milli is '0', not a whole number from 1 to 1000" },
		{ true, PODS "p,1,1,2,500,\n",
		  "t:2: asks for 500 thousandths of each of 2 GPUs; only one GPU can be asked for "
		  "in "
		  "part" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct openb openb = { 0 };
		struct csv csv;
		struct error error = { 0 };
		assert_true(csv_start(&csv, wrong[i].text, &error));
		assert_false(wrong[i].pods ? openb_read_pods(&openb, &csv, &error)
		                           : openb_read_nodes(&openb, &csv, &error));
		assert_string_equal(error.text, wrong[i].why);
		csv_free(&csv);
		openb_free(&openb);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_read_cell_by_cell),
		cmocka_unit_test(tables_that_are_not_are_refused_with_their_line),
		cmocka_unit_test(only_whole_numbers_in_range_are_numbers),
		cmocka_unit_test(traces_are_read_with_pods_by_kind),
		cmocka_unit_test(nodes_and_pods_that_make_no_sense_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
