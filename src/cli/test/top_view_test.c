/* top_view_test.c - the screen of top says who holds what, and fits whatever the size */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/job/top_view.h"
#include "cli/text/text_width.h"

/* Two GPUs of 100 MiB. On the first: 40 in use by job-1, 20 of job-2 that starts, 20 of slot-3
 * being freed, 10 foreign, of which no process explains 4. The second is another tenant's. */
static const char cluster[] =
    "{'status':{'total_nodes':1,'online_nodes':1,'total_gpus':2},"
    "'nodes':[{'id':'n','online':true,'draining':true}],"
    "'gpus':[{'uuid':'a','node':'n','index':0,'total_memory':100,'used_memory':90,"
    "  "
    "'reserved_memory':60,'releasing_memory':20,'foreign_memory':10,'unexplained_memory':4,'"
    "healthy':true,"
    "  'utilization':0.5,'temperature_c':60},"
    " {'uuid':'b','node':'n','index':1,'total_memory':100,'used_memory':100,"
    "  'reserved_memory':100,'healthy':true}],"
    "'jobs':[{'id':'job-1','name':'one','state':'running','tenant_id':'t','gpu_count':1,"
    "  'allocations':[{'phase':'live','gpus':[{'uuid':'a','memory_mb':40}]}]},"
    " {'id':'job-2','name':'two','state':'scheduled','tenant_id':'t','gpu_count':1,"
    "  'allocations':[{'phase':'held','gpus':[{'uuid':'a','memory_mb':20}]}]}],"
    "'slots':[{'id':'slot-3','model':'m','status':'stopping',"
    "  'gpu_allocation':[{'uuid':'a','memory_mb':20}]}],"
    "'queue':[{'id':'job-9','name':'waits','state':'pending','tenant_id':'t','gpu_count':4,"
    "  'queue_position':1}]}";

struct fixture {
	struct session session;
	struct top_data data;
	struct top_view view;
};

static int top_view_begin(void **state)
{
	struct fixture *fixture = NEW(struct fixture);
	char *text = memory_text(cluster);
	for (char *at = text; *at; at++)
		if (*at == '\'')
			*at = '"';
	json_t *documents = json_loads(text, 0, NULL);
	assert_non_null(documents);
	fixture->session.tenants = json_object();
	top_data_read(&fixture->data, &fixture->session, documents);
	fixture->view = (struct top_view){ .data = &fixture->data, .server = "http://x" };
	top_view_arrange(&fixture->view);
	json_decref(documents);
	free(text);
	*state = fixture;
	return 0;
}

static int top_view_end(void **state)
{
	struct fixture *fixture = *state;
	top_view_free(&fixture->view);
	top_data_free(&fixture->data);
	json_decref(fixture->session.tenants);
	free(fixture);
	return 0;
}

/* The screen, to be freed. */
static char *drawn(struct fixture *fixture, int columns, int rows, bool pictures)
{
	struct canvas canvas = { .terminal = {
				     .columns = columns, .rows = rows, .pictures = pictures } };
	top_view_draw(&fixture->view, &canvas);
	return canvas.text.data;
}

static void every_kind_of_memory_looks_different_and_is_in_proportion(void **state)
{
	char *screen = drawn(*state, 80, 24, true);
	const char *bar = strstr(screen, "[");
	assert_non_null(bar);
	assert_non_null(strstr(bar, "█"));
	assert_non_null(strstr(bar, "▓"));
	assert_non_null(strstr(bar, "▒"));
	assert_non_null(strstr(bar, "░"));
	assert_non_null(strstr(bar, "·"));
	assert_non_null(strstr(screen, "draining job-1 one, jo"));
	free(screen);
	screen = drawn(*state, 80, 24, false);
	assert_non_null(strstr(screen, "[########|+++|---|%?..]"));
	free(screen);
}

static void columns_have_titles_and_the_bar_leaves_room_for_names(void **state)
{
	char *screen = drawn(*state, 200, 24, false);
	const char *bar = strstr(screen, "[");
	assert_non_null(bar);
	assert_int_equal(strcspn(bar, "]"), 41);
	assert_non_null(strstr(screen, "NODE  GPU MEMORY"));
	assert_non_null(strstr(screen, "  USED/TOTAL BUSY TEMP  JOBS AND MODELS"));
	assert_non_null(strstr(screen, "JOB       STATE      NAME"));
	assert_non_null(strstr(screen, "NODE/START"));
	free(screen);
}

static void what_others_hold_is_shown_without_their_names(void **state)
{
	char *screen = drawn(*state, 100, 24, true);
	assert_non_null(strstr(screen, "others"));
	free(screen);
}

static void no_line_is_wider_and_no_more_lines_than_there_are(void **state)
{
	static const int sizes[][2] = {
		{ 200, 50 }, { 80, 24 }, { 80, 12 }, { 60, 10 }, { 40, 8 }
	};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *screen = drawn(*state, sizes[i][0], sizes[i][1], true), *rest = screen, *line;
		int lines = 0;
		while ((line = strsep(&rest, "\n")) != NULL) {
			assert_true(text_width(line) <= sizes[i][0]);
			lines++;
		}
		assert_true(lines <= sizes[i][1]);
		free(screen);
	}
}

static void a_filter_leaves_what_it_names(void **state)
{
	struct fixture *fixture = *state;
	strcpy(fixture->view.filter, "JOB-2");
	top_view_arrange(&fixture->view);
	assert_int_equal(fixture->view.gpu_count, 1);
	assert_int_equal(fixture->view.job_count, 1);
	assert_string_equal(top_view_job(&fixture->view)->id, "job-2");
	strcpy(fixture->view.filter, "nothing");
	top_view_arrange(&fixture->view);
	assert_null(top_view_job(&fixture->view));
	assert_null(top_view_gpu(&fixture->view));
	free(drawn(fixture, 80, 24, true));
}

static void the_fullest_comes_first_when_sorted_by_memory(void **state)
{
	struct fixture *fixture = *state;
	assert_int_equal(top_view_gpu(&fixture->view)->index, 0);
	fixture->view.sort = TOP_BY_MEMORY;
	top_view_arrange(&fixture->view);
	assert_int_equal(top_view_gpu(&fixture->view)->index, 1);
}

static void what_waits_comes_before_what_runs(void **state)
{
	struct fixture *fixture = *state;
	assert_string_equal(top_view_job(&fixture->view)->id, "job-9");
	assert_int_equal(fixture->view.job_count, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    every_kind_of_memory_looks_different_and_is_in_proportion, top_view_begin,
		    top_view_end),
		cmocka_unit_test_setup_teardown(
		    columns_have_titles_and_the_bar_leaves_room_for_names, top_view_begin,
		    top_view_end),
		cmocka_unit_test_setup_teardown(what_others_hold_is_shown_without_their_names,
		                                top_view_begin, top_view_end),
		cmocka_unit_test_setup_teardown(no_line_is_wider_and_no_more_lines_than_there_are,
		                                top_view_begin, top_view_end),
		cmocka_unit_test_setup_teardown(a_filter_leaves_what_it_names, top_view_begin,
		                                top_view_end),
		cmocka_unit_test_setup_teardown(the_fullest_comes_first_when_sorted_by_memory,
		                                top_view_begin, top_view_end),
		cmocka_unit_test_setup_teardown(what_waits_comes_before_what_runs, top_view_begin,
		                                top_view_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
