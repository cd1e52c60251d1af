/* tenant_users_test.c - users of tenants from a range, and their homes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/host/file.h"
#include "agent/test/place.h"
#include "agent/workload/tenant_users.h"

static const struct uid_range three = { .first = 64990, .last = 64992 };

static void a_range_is_two_ids_that_no_account_of_the_system_has(void **state)
{
	static const char *const wrong[] = { "",         "64000",        "64000-",
		                             "-64000",   "64001-64000",  "0-10",
		                             "999-2000", "64000-65534",  "64000-64999x",
		                             "a-b",      " 64000-64999", "64000,64999" };
	struct uid_range range;
	struct error error = { 0 };

	(void)state;
	assert_true(uid_range_parse("64000-64999", &range, &error));
	assert_int_equal(range.first, 64000);
	assert_int_equal(range.last, 64999);
	assert_true(uid_range_parse("none", &range, &error));
	assert_int_equal(range.first, 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_false(uid_range_parse(wrong[i], &range, &error));
}

static int64_t uid_of(const char *homes, const char *tenant)
{
	struct error error = { 0 };
	struct stat status;
	int64_t uid = 0;
	char *home = NULL;

	if (!tenant_users_find(homes, &three, tenant, &uid, &home, &error))
		return -1;
	assert_int_equal(stat(home, &status), 0);
	assert_int_equal(status.st_uid, uid);
	assert_int_equal(status.st_gid, uid);
	assert_int_equal(status.st_mode & 0777, 0700);
	free(home);
	return uid;
}

static void each_tenant_has_an_id_and_a_home_of_its_own_and_keeps_them(void **state)
{
	if (geteuid() != 0)
		skip();
	const char *place = place_make();
	char *homes = file_path("%s/homes", place);

	(void)state;
	int64_t first = uid_of(homes, "vision"), second = uid_of(homes, "speech");
	assert_in_range(first, 64990, 64992);
	assert_in_range(second, 64990, 64992);
	assert_int_not_equal(first, second);
	assert_int_equal(uid_of(homes, "vision"), first);
	int64_t third = uid_of(homes, "north/vision");
	assert_true(third > 0 && third != first && third != second);
	assert_int_equal(uid_of(homes, "../vision"), -1);
	assert_int_equal(uid_of(homes, "speech"), second);
	free(homes);
	place_remove(place);
}

static void an_id_with_an_account_is_not_given_out(void **state)
{
	/* Debian's nobody, and the one below it. */
	static const struct uid_range range = { .first = 65533, .last = 65534 };
	struct error error = { 0 };
	int64_t uid;
	char *home;

	(void)state;
	if (geteuid() != 0)
		skip();
	const char *place = place_make();
	char *homes = file_path("%s/homes", place);
	assert_true(tenant_users_find(homes, &range, "one", &uid, &home, &error));
	assert_int_equal(uid, 65533);
	free(home);
	assert_false(tenant_users_find(homes, &range, "two", &uid, &home, &error));
	assert_non_null(strstr(error.text, "--uid-range"));
	free(homes);
	place_remove(place);
}

static void a_home_that_is_no_directory_is_refused(void **state)
{
	struct error error = { 0 };
	int64_t uid;
	char *home;

	(void)state;
	if (geteuid() != 0)
		skip();
	const char *place = place_make();
	char *homes = file_path("%s/homes", place), *path = file_path("%s/homes/trap", place);
	assert_int_equal(mkdir(homes, 0711), 0);
	assert_int_equal(symlink("/etc", path), 0);
	assert_false(tenant_users_find(homes, &three, "trap", &uid, &home, &error));
	assert_int_equal(unlink(path), 0);
	free(path);
	free(homes);
	place_remove(place);
}

static void a_tenants_user_is_found_in_the_list(void **state)
{
	struct error error = { 0 };

	(void)state;
	char *lab = tenant_users_named("vision=bob,lab=alice", "lab");
	assert_string_equal(lab, "alice");
	free(lab);
	assert_null(tenant_users_named("vision=bob,lab=alice", "la"));
	assert_null(tenant_users_named("vision=bob,lab=alice", "labs"));
	assert_true(tenant_users_check("vision=bob,lab=alice", &error));
	assert_true(tenant_users_check("lab=alice", &error));
	assert_false(tenant_users_check("", &error));
	assert_false(tenant_users_check("lab", &error));
	assert_false(tenant_users_check("lab=", &error));
	assert_false(tenant_users_check("=alice", &error));
	assert_false(tenant_users_check("lab=alice,,vision=bob", &error));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_is_two_ids_that_no_account_of_the_system_has),
		cmocka_unit_test(each_tenant_has_an_id_and_a_home_of_its_own_and_keeps_them),
		cmocka_unit_test(an_id_with_an_account_is_not_given_out),
		cmocka_unit_test(a_home_that_is_no_directory_is_refused),
		cmocka_unit_test(a_tenants_user_is_found_in_the_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
