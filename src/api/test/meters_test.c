/* meters_test.c - counters of what happened to jobs */
#include "api/read/meters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After those. */
#include <cmocka.h>

enum { COMPANY = 1, TEAM, OTHER };

struct fixture {
	struct meters meters;
	struct roster roster;
};

static void meters_tell(struct fixture *fixture, enum event_kind kind, int64_t tenant_id,
                        int64_t value)
{
	struct event event = { .kind = kind, .tenant_id = tenant_id, .job_id = 7, .value = value };
	struct catalogue *catalogue = catalogue_new();
	meters_event(&fixture->meters, &event, catalogue, &fixture->roster);
	catalogue_free(catalogue);
}

static int meters_set_up(void **state)
{
	static struct fixture fixture;
	fixture = (struct fixture){ 0 };
	roster_put(&fixture.roster, &(struct tenant_record){ .id = COMPANY, .name = "company" });
	roster_put(&fixture.roster,
	           &(struct tenant_record){ .id = TEAM, .name = "team", .parent_id = COMPANY });
	roster_put(&fixture.roster, &(struct tenant_record){ .id = OTHER, .name = "other" });
	*state = &fixture;
	return 0;
}

static int meters_tear_down(void **state)
{
	struct fixture *fixture = *state;
	meters_free(&fixture->meters);
	roster_free(&fixture->roster);
	return 0;
}

static void a_job_is_counted_in_every_state_that_it_enters(void **state)
{
	struct fixture *fixture = *state;
	meters_tell(fixture, EVENT_JOB_SUBMITTED, OTHER, 0);
	meters_tell(fixture, EVENT_JOB_SCHEDULED, OTHER, JOB_PENDING);
	meters_tell(fixture, EVENT_JOB_STARTED, OTHER, JOB_SCHEDULED);
	meters_tell(fixture, EVENT_JOB_PREEMPTED, OTHER, JOB_RUNNING);
	meters_tell(fixture, EVENT_JOB_REQUEUED, OTHER, JOB_PREEMPTED);
	meters_tell(fixture, EVENT_JOB_ENDED, OTHER, JOB_CANCELLED);
	static const int64_t expected[METER_STATES] = { [JOB_PENDING] = 2,
		                                        [JOB_SCHEDULED] = 1,
		                                        [JOB_RUNNING] = 1,
		                                        [JOB_PREEMPTED] = 1,
		                                        [JOB_CANCELLED] = 1 };
	for (int i = 0; i < METER_STATES; i++) {
		assert_int_equal(meters_entered(&fixture->meters, 0, (enum job_state)i),
		                 expected[i]);
		assert_int_equal(meters_entered(&fixture->meters, OTHER, (enum job_state)i),
		                 expected[i]);
		assert_int_equal(meters_entered(&fixture->meters, COMPANY, (enum job_state)i), 0);
	}
}

static void a_tenant_keeps_what_it_counted_of_one_below_it_that_is_removed(void **state)
{
	struct fixture *fixture = *state;
	meters_tell(fixture, EVENT_JOB_SUBMITTED, TEAM, 0);
	meters_tell(fixture, EVENT_JOB_SUBMITTED, COMPANY, 0);
	roster_remove(&fixture->roster, TEAM);
	assert_int_equal(meters_entered(&fixture->meters, COMPANY, JOB_PENDING), 2);
	assert_int_equal(meters_entered(&fixture->meters, OTHER, JOB_PENDING), 0);
	assert_int_equal(meters_entered(&fixture->meters, 0, JOB_PENDING), 2);
}

static void what_is_not_about_the_state_of_a_job_enters_none(void **state)
{
	struct fixture *fixture = *state;
	meters_tell(fixture, EVENT_JOB_HELD, TEAM, 0);
	meters_tell(fixture, EVENT_TASK_STARTED, TEAM, 0);
	for (int i = 0; i < METER_STATES; i++)
		assert_int_equal(meters_entered(&fixture->meters, 0, (enum job_state)i), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_job_is_counted_in_every_state_that_it_enters,
		                                meters_set_up, meters_tear_down),
		cmocka_unit_test_setup_teardown(
		    a_tenant_keeps_what_it_counted_of_one_below_it_that_is_removed, meters_set_up,
		    meters_tear_down),
		cmocka_unit_test_setup_teardown(what_is_not_about_the_state_of_a_job_enters_none,
		                                meters_set_up, meters_tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
