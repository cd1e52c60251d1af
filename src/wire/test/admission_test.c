/* admission_test.c - tests of who may connect when connections are scarce */
#include "wire/net/admission.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After those. */
#include <cmocka.h>

/* Takes places of a kind until there are none; how many those were. */
static size_t admission_fill(struct admission *admission, enum peer_kind kind)
{
	size_t count = 0;
	for (; admission_has_place(admission, kind); count++)
		admission->counts[kind]++;
	return count;
}

static void strangers_leave_places_for_agents_and_this_machine(void **state)
{
	(void)state;
	struct admission admission = admission_new(1000, 100);
	assert_int_equal(admission_fill(&admission, PEER_OTHER), 800);
	assert_int_equal(admission_fill(&admission, PEER_AGENT), 100);
	assert_int_equal(admission_fill(&admission, PEER_LOCAL), 100);
	assert_int_equal(admission_fill(&admission, PEER_OTHER), 0);
}

static void agents_leave_places_for_the_others(void **state)
{
	(void)state;
	struct admission admission = admission_new(1000, 100);
	assert_int_equal(admission_fill(&admission, PEER_AGENT), 800);
	assert_int_equal(admission_fill(&admission, PEER_OTHER), 100);
	assert_int_equal(admission_fill(&admission, PEER_LOCAL), 100);
}

static void the_reserve_is_never_most_of_the_places(void **state)
{
	(void)state;
	struct admission admission = admission_new(8, 100);
	assert_int_equal(admission_fill(&admission, PEER_OTHER), 4);
	admission = admission_new(3, 100);
	assert_int_equal(admission_fill(&admission, PEER_OTHER), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strangers_leave_places_for_agents_and_this_machine),
		cmocka_unit_test(agents_leave_places_for_the_others),
		cmocka_unit_test(the_reserve_is_never_most_of_the_places),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
