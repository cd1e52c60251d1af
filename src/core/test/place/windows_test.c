/* windows_test.c - windows keep nodes and GPUs for some jobs, or for none */
#include "core/test/harness.h"

#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)

struct lab {
	struct harness *h;
	int64_t tenant, other;
};

static struct lab windows_lab(void)
{
	struct lab lab = { .h = harness_new() };

	add_node(lab.h, "n1", 2, 80000);
	add_node(lab.h, "n2", 2, 80000);
	lab.tenant = put_tenant(lab.h, tenant_named("lab"));
	lab.other = put_tenant(lab.h, tenant_named("other"));
	return lab;
}

static struct window_record window_from_now(struct lab lab, const char *nodes, int64_t in_ms,
                                            int64_t length_ms)
{
	return (struct window_record){ .name = "w",
		                       .reason = "",
		                       .user = "",
		                       .start_ms = lab.h->now_ms + in_ms,
		                       .length_ms = length_ms,
		                       .nodes = nodes,
		                       .gpus = "",
		                       .lead_ms = HOUR };
}

static bool try_window(struct lab lab, struct window_record window)
{
	return harness_apply(
	    lab.h, (struct command){ .kind = COMMAND_PUT_WINDOW, .window = { .window = window } });
}

static int64_t put_window(struct lab lab, struct window_record window)
{
	must(lab.h, try_window(lab, window));
	return lab.h->effects.reply_id;
}

static int64_t submit_for(struct lab lab, int64_t tenant, int64_t limit_ms, const char *window)
{
	struct job_record job = whole(tenant, 1);

	job.max_runtime_ms = limit_ms;
	job.window = window;
	return submit(lab.h, job);
}

static void a_job_that_would_run_into_a_window_does_not_start_there(void **unused)
{
	struct lab lab = windows_lab();
	struct window_record window = window_from_now(lab, "n1\nn2", 2 * HOUR, HOUR);

	(void)unused;
	window.maintenance = true;
	put_window(lab, window);
	int64_t longer = submit_for(lab, lab.tenant, 3 * HOUR, "");
	int64_t shorter = submit_for(lab, lab.tenant, HOUR, "");
	pass(lab.h);
	assert_int_equal(state(lab.h, longer), JOB_PENDING);
	assert_int_equal(state(lab.h, shorter), JOB_RUNNING);
	assert_non_null(strstr(why(lab.h, longer), "window w (maintenance) begins in 2h"));
	assert_non_null(strstr(why(lab.h, longer), "needs 3h"));
	time_passes(lab.h, 3 * HOUR + MINUTE);
	pass(lab.h);
	assert_int_equal(state(lab.h, longer), JOB_RUNNING);
	assert_int_equal(lab.h->sched->cluster.windows.count, 0); /* it has ended */
	harness_free(lab.h);
}

static void where_no_window_is_a_job_starts(void **unused)
{
	struct lab lab = windows_lab();

	(void)unused;
	put_window(lab, window_from_now(lab, "n1", 2 * HOUR, HOUR));
	int64_t longer = submit_for(lab, lab.tenant, 3 * HOUR, "");
	pass(lab.h);
	assert_string_equal(node_of(lab.h, longer), "n2");
	harness_free(lab.h);
}

static void a_job_of_unknown_length_keeps_away_for_the_lead(void **unused)
{
	struct lab lab = windows_lab();

	(void)unused;
	put_window(lab, window_from_now(lab, "n1\nn2", 2 * HOUR, HOUR));
	int64_t early = submit_for(lab, lab.tenant, 0, "");
	pass(lab.h);
	assert_int_equal(state(lab.h, early), JOB_RUNNING);
	time_passes(lab.h, HOUR + MINUTE);
	int64_t late = submit_for(lab, lab.tenant, 0, "");
	pass(lab.h);
	assert_int_equal(state(lab.h, late), JOB_PENDING);
	assert_non_null(strstr(why(lab.h, late), "has no time limit"));
	harness_free(lab.h);
}

static void a_window_is_for_the_jobs_that_name_it(void **unused)
{
	struct lab lab = windows_lab();

	(void)unused;
	put_window(lab, window_from_now(lab, "n1", HOUR, HOUR));
	int64_t mine = submit_for(lab, lab.tenant, 10 * HOUR, "w");
	pass(lab.h);
	assert_int_equal(state(lab.h, mine), JOB_PENDING);
	assert_non_null(strstr(why(lab.h, mine), "begins in 1h"));
	time_passes(lab.h, HOUR);
	int64_t theirs = submit_for(lab, lab.other, MINUTE, "");
	pass(lab.h);
	assert_string_equal(node_of(lab.h, mine), "n1");
	assert_string_equal(node_of(lab.h, theirs), "n2");
	int64_t more = submit_for(lab, lab.tenant, HOUR, "w");
	int64_t full = submit_for(lab, lab.tenant, HOUR, "w");
	pass(lab.h);
	assert_string_equal(node_of(lab.h, more), "n1");
	assert_int_equal(state(lab.h, full), JOB_PENDING); /* n2 is not in it */
	harness_free(lab.h);
}

static void a_window_of_a_tenant_is_for_all_its_jobs(void **unused)
{
	struct lab lab = windows_lab();
	struct window_record window = window_from_now(lab, "n1\nn2", 0, HOUR);

	(void)unused;
	window.tenant_id = lab.tenant;
	put_window(lab, window);
	int64_t mine = submit_for(lab, lab.tenant, 10 * HOUR, "");
	int64_t theirs = submit_for(lab, lab.other, MINUTE, "");
	pass(lab.h);
	assert_int_equal(state(lab.h, mine), JOB_RUNNING);
	assert_int_equal(state(lab.h, theirs), JOB_PENDING);
	struct job_record named = whole(lab.other, 1);
	named.window = "w";
	must_not(lab.h, try_submit(lab.h, named), ERROR_FORBIDDEN, "is for another tenant");
	named.window = "x";
	must_not(lab.h, try_submit(lab.h, named), ERROR_NOT_FOUND, "there is no window x");
	must_not(lab.h, apply_to(lab.h, COMMAND_DELETE_TENANT, lab.tenant), ERROR_CONFLICT, "has");
	harness_free(lab.h);
}

static void what_still_runs_is_stopped_if_the_window_says_so(void **unused)
{
	struct lab lab = windows_lab();
	struct window_record window = window_from_now(lab, "n1\nn2", 2 * HOUR, HOUR);
	int64_t started[16];

	(void)unused;
	int64_t runs = submit_for(lab, lab.tenant, 0, "");
	pass(lab.h);
	window.evict = true;
	window.grace_ms = 10 * MINUTE;
	window.maintenance = true;
	put_window(lab, window);
	time_passes(lab.h, 2 * HOUR + 9 * MINUTE);
	assert_int_equal(state(lab.h, runs), JOB_RUNNING);
	time_passes(lab.h, 2 * MINUTE);
	read_orders(lab.h, started);
	assert_int_equal(lab.h->stop_count, 1);
	confirm_stops(lab.h);
	pass(lab.h);
	assert_int_equal(state(lab.h, runs), JOB_PENDING);
	time_passes(lab.h, HOUR);
	pass(lab.h);
	assert_int_equal(state(lab.h, runs), JOB_RUNNING);
	harness_free(lab.h);
}

static void a_window_repeats(void **unused)
{
	struct lab lab = windows_lab();
	struct window_record window = window_from_now(lab, "n1\nn2", HOUR, HOUR);

	(void)unused;
	window.repeat = WINDOW_DAILY;
	window.maintenance = true;
	int64_t id = put_window(lab, window);
	for (int day = 0; day < 3; day++) {
		time_passes(lab.h, HOUR + MINUTE);
		int64_t waits = submit_for(lab, lab.tenant, MINUTE, "");
		pass(lab.h);
		assert_int_equal(state(lab.h, waits), JOB_PENDING);
		time_passes(lab.h, HOUR);
		pass(lab.h);
		assert_int_equal(state(lab.h, waits), JOB_RUNNING);
		end_job(lab.h, waits, 0);
		time_passes(lab.h, 22 * HOUR - MINUTE);
	}
	must(lab.h, apply_to(lab.h, COMMAND_REMOVE_WINDOW, id));
	must_not(lab.h, apply_to(lab.h, COMMAND_REMOVE_WINDOW, id), ERROR_NOT_FOUND, "not known");
	harness_free(lab.h);
}

static void a_number_of_gpus_is_chosen_where_the_fewest_are_in_use(void **unused)
{
	struct lab lab = windows_lab();
	struct window_command command = { .window = window_from_now(lab, "", HOUR, HOUR),
		                          .gpu_count = 2 };

	(void)unused;
	int64_t runs = submit_for(lab, lab.tenant, 0, "");
	pass(lab.h);
	must(lab.h, harness_apply(
			lab.h, (struct command){ .kind = COMMAND_PUT_WINDOW, .window = command }));
	const struct window *window = windows_named(&lab.h->sched->cluster.windows, "w");
	const char *expected =
	    strcmp(node_of(lab.h, runs), "n1") == 0 ? "n2-gpu0\nn2-gpu1\n" : "n1-gpu0\nn1-gpu1\n";
	assert_string_equal(window->r.gpus, expected);
	command.window.name = "w2";
	command.gpu_count = 3;
	must_not(
	    lab.h,
	    harness_apply(lab.h, (struct command){ .kind = COMMAND_PUT_WINDOW, .window = command }),
	    ERROR_IMPOSSIBLE, "3 wanted, 2 there");
	harness_free(lab.h);
}

static void a_start_after_the_window_is_forecast(void **unused)
{
	struct lab lab = windows_lab();
	struct submit_forecast forecast;
	struct buffer reasons = { 0 };
	struct job_record job_record = whole(lab.tenant, 1);

	(void)unused;
	put_window(lab, window_from_now(lab, "n1\nn2", 2 * HOUR, HOUR));
	job_record.max_runtime_ms = 3 * HOUR;
	must(lab.h, sched_forecast(lab.h->sched, &(struct submit_command){ .job = job_record },
	                           lab.h->now_ms, 0, &forecast, &reasons, &lab.h->error));
	assert_int_equal(forecast.kind, FORECAST_LATER);
	int64_t end_ms = lab.h->now_ms + 3 * HOUR;
	assert_in_range(forecast.start_ms, end_ms, end_ms + MINUTE);
	assert_non_null(strstr(reasons.data, "begins in 2h"));
	buffer_free(&reasons);
	harness_free(lab.h);
}

static void what_makes_no_sense_is_refused(void **unused)
{
	struct lab lab = windows_lab();
	struct window_record window = window_from_now(lab, "n1", HOUR, HOUR);
	struct window_record bad = window;

	(void)unused;
	bad.name = "a b";
	must_not(lab.h, try_window(lab, bad), ERROR_INVALID, "name must be");
	bad = window;
	bad.length_ms = 0;
	must_not(lab.h, try_window(lab, bad), ERROR_INVALID, "length must be");
	bad = window;
	bad.repeat = WINDOW_DAILY;
	bad.length_ms = 24 * HOUR;
	must_not(lab.h, try_window(lab, bad), ERROR_INVALID, "shorter than");
	bad = window;
	bad.nodes = "";
	must_not(lab.h, try_window(lab, bad), ERROR_INVALID, "no node");
	bad = window;
	bad.nodes = "n9";
	must_not(lab.h, try_window(lab, bad), ERROR_NOT_FOUND, "n9");
	bad = window;
	bad.start_ms = 1;
	bad.length_ms = 2000;
	must_not(lab.h, try_window(lab, bad), ERROR_INVALID, "in the past");
	bad = window;
	bad.maintenance = true;
	bad.tenant_id = lab.tenant;
	must_not(lab.h, try_window(lab, bad), ERROR_INVALID, "for no tenant");
	put_window(lab, window);
	must_not(lab.h, try_window(lab, window), ERROR_CONFLICT, "already");
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_that_would_run_into_a_window_does_not_start_there),
		cmocka_unit_test(where_no_window_is_a_job_starts),
		cmocka_unit_test(a_job_of_unknown_length_keeps_away_for_the_lead),
		cmocka_unit_test(a_window_is_for_the_jobs_that_name_it),
		cmocka_unit_test(a_window_of_a_tenant_is_for_all_its_jobs),
		cmocka_unit_test(what_still_runs_is_stopped_if_the_window_says_so),
		cmocka_unit_test(a_window_repeats),
		cmocka_unit_test(a_number_of_gpus_is_chosen_where_the_fewest_are_in_use),
		cmocka_unit_test(a_start_after_the_window_is_forecast),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
