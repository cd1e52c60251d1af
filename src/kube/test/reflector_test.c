/* reflector_test.c - nothing that is there is missed, and nothing that is gone is kept */
#include "kube/reflector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "kube/outcome.h"
#include "json/member.h"

/* What was said, as "+a -b ." */
struct heard {
	struct reflector reflector;
	struct buffer text;
	struct error error;
};

static void hear(void *context, enum reflector_event event, const json_t *object)
{
	struct heard *heard = context;
	const char *name = member_text(json_object_get(object, "metadata"), "name");

	buffer_print(&heard->text, "%c%s ",
	             event == REFLECTOR_PUT    ? '+'
	             : event == REFLECTOR_GONE ? '-'
	                                       : '.',
	             name);
}

static int setup(void **state)
{
	struct heard *heard = NEW(struct heard);

	heard->reflector = (struct reflector){
		.path = "/api/v1/pods", .query = "", .sink = hear, .context = heard
	};
	*state = heard;
	return 0;
}

static int teardown(void **state)
{
	struct heard *heard = *state;

	reflector_free(&heard->reflector);
	buffer_free(&heard->text);
	free(heard);
	return 0;
}

static void request_is(struct heard *heard, const char *path)
{
	struct buffer text = { 0 };

	reflector_request(&heard->reflector, &text);
	assert_string_equal(text.data, path);
	buffer_free(&text);
}

static bool feed(struct heard *heard, const char *text)
{
	return reflector_feed(&heard->reflector, text, strlen(text), &heard->error);
}

static void heard_is(struct heard *heard, const char *text)
{
	assert_string_equal(heard->text.data ? heard->text.data : "", text);
	buffer_clear(&heard->text);
	buffer_text(&heard->text, "");
}

#define POD(type, name, version)                                                                   \
	"{\"type\":\"" type "\",\"object\":{\"metadata\":{\"name\":\"" name "\",\"uid\":\"u-" name \
	"\",\"resourceVersion\":\"" version "\"}}}\n"
#define OTHER(type, name, uid)                                                                     \
	"{\"type\":\"" type "\",\"object\":{\"metadata\":{\"name\":\"" name "\",\"uid\":\"" uid    \
	"\"}}}\n"
#define END_OF_LIST(version)                                                                       \
	"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"" version          \
	"\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n"
#define ALL                                                                                        \
	"/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=290&sendInitialEvents=true&" \
	"resourceVersionMatch=NotOlderThan"
#define FROM(version)                                                                              \
	"/api/v1/"                                                                                 \
	"pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=290&resourceVersion=" version

static void a_watch_begins_with_all_and_goes_on_from_its_last_version(void **state)
{
	struct heard *heard = *state;

	request_is(heard, ALL);
	assert_true(feed(heard, POD("ADDED", "a", "1") POD("ADDED", "b", "2")));
	assert_false(heard->reflector.synced);
	assert_true(feed(heard, END_OF_LIST("9") POD("DELETED", "a", "10")));
	heard_is(heard, "+a +b . -a ");
	assert_true(heard->reflector.synced);
	assert_true(reflector_end(&heard->reflector, &heard->error));
	request_is(heard, FROM("10"));
}

static void a_watch_that_ends_before_all_is_said_begins_again(void **state)
{
	struct heard *heard = *state;

	request_is(heard, ALL);
	assert_true(feed(heard, POD("ADDED", "a", "1")));
	assert_true(reflector_end(&heard->reflector, &heard->error));
	request_is(heard, ALL);
}

static void what_went_while_nobody_looked_is_said_to_be_gone(void **state)
{
	struct heard *heard = *state;

	request_is(heard, ALL);
	assert_true(feed(heard, POD("ADDED", "a", "1") POD("ADDED", "b", "2") END_OF_LIST("3")));
	heard_is(heard, "+a +b . ");
	assert_false(feed(heard, "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n"));
	request_is(heard, ALL);
	assert_true(feed(heard, POD("ADDED", "b", "7") END_OF_LIST("8")));
	heard_is(heard, "+b -a . ");
}

static void one_that_was_made_again_under_its_name_is_gone_first(void **state)
{
	struct heard *heard = *state;

	request_is(heard, ALL);
	assert_true(feed(heard, OTHER("ADDED", "a", "u1") END_OF_LIST("5")));
	heard_is(heard, "+a . ");
	reflector_lost(&heard->reflector);
	request_is(heard, ALL);
	assert_true(feed(heard, OTHER("ADDED", "a", "u2") END_OF_LIST("9")));
	heard_is(heard, "-a +a . ");
	/* What is said of the old one is not about the new one. */
	assert_true(feed(heard, OTHER("DELETED", "a", "u1")));
	heard_is(heard, "");
	assert_true(feed(heard, OTHER("DELETED", "a", "u2")));
	heard_is(heard, "-a ");
}

static void all_is_asked_for_again_after_a_lost_connection(void **state)
{
	struct heard *heard = *state;

	request_is(heard, ALL);
	assert_true(feed(heard, OTHER("ADDED", "a", "u1") END_OF_LIST("5")));
	assert_true(reflector_end(&heard->reflector, &heard->error));
	request_is(heard, FROM("5"));
	reflector_lost(&heard->reflector);
	request_is(heard, ALL);
}

static void events_come_in_pieces_of_any_size(void **state)
{
	struct heard *heard = *state;
	static const char text[] =
	    POD("ADDED", "a", "1") END_OF_LIST("2") POD("MODIFIED", "a", "3");

	request_is(heard, ALL);
	for (size_t i = 0; i + 1 < sizeof(text); i++)
		assert_true(reflector_feed(&heard->reflector, text + i, 1, &heard->error));
	heard_is(heard, "+a . +a ");
}

static void an_older_server_is_asked_for_pages(void **state)
{
	struct heard *heard = *state;

	request_is(heard, ALL);
	assert_false(reflector_status(&heard->reflector, 422, &heard->error));
	request_is(heard, "/api/v1/pods?limit=500");
	assert_true(feed(heard, "{\"metadata\":{\"continue\":\"p2\"},\"items\":[{\"metadata\":"
	                        "{\"name\":\"a\",\"uid\":\"1\"}}]}"));
	assert_true(reflector_end(&heard->reflector, &heard->error));
	request_is(heard, "/api/v1/pods?limit=500&continue=p2");
	assert_true(feed(heard, "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":["
	                        "{\"metadata\":{\"name\":\"b\",\"uid\":\"2\"}}]}"));
	assert_true(reflector_end(&heard->reflector, &heard->error));
	heard_is(heard, "+a +b . ");
	request_is(heard, FROM("5"));
}

static void a_version_that_cannot_stand_in_a_path_is_not_used(void **state)
{
	struct heard *heard = *state;

	request_is(heard, ALL);
	assert_true(feed(heard, END_OF_LIST("5&x=1") ""));
	request_is(heard, ALL);
}

static void a_binding_is_so_only_if_the_server_said_it_was_made(void **state)
{
	(void)state;
	assert_int_equal(outcome_of(WRITE_BIND, 201), OUTCOME_WRITTEN);
	assert_int_equal(outcome_of(WRITE_BIND, 200), OUTCOME_LOOK);
	assert_int_equal(outcome_of(WRITE_BIND, 0), OUTCOME_LOOK);
	assert_int_equal(outcome_of(WRITE_BIND, 504), OUTCOME_LOOK);
	assert_int_equal(outcome_of(WRITE_BIND, 409), OUTCOME_LOOK);
	assert_int_equal(outcome_of(WRITE_EVICT, 409), OUTCOME_CHANGED);
	assert_int_equal(outcome_of(WRITE_BIND, 404), OUTCOME_GONE);
	assert_int_equal(outcome_of(WRITE_BIND, 422), OUTCOME_REFUSED);
	assert_int_equal(outcome_of(WRITE_EVICT, 429), OUTCOME_LATER);
	assert_int_equal(outcome_of(WRITE_STATUS, 200), OUTCOME_WRITTEN);
}

static void pauses_grow_to_a_minute_and_heed_the_server(void **state)
{
	(void)state;
	assert_int_equal(outcome_pause_ms(0, 0), 250);
	assert_int_equal(outcome_pause_ms(2, 0), 1000);
	assert_int_equal(outcome_pause_ms(100, 0), 60000);
	assert_int_equal(outcome_pause_ms(0, 7), 7000);
	assert_int_equal(outcome_pause_ms(0, 86400), 60000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(a_watch_begins_with_all_and_goes_on_from_its_last_version),
		TEST(a_watch_that_ends_before_all_is_said_begins_again),
		TEST(what_went_while_nobody_looked_is_said_to_be_gone),
		TEST(one_that_was_made_again_under_its_name_is_gone_first),
		TEST(all_is_asked_for_again_after_a_lost_connection),
		TEST(events_come_in_pieces_of_any_size),
		TEST(an_older_server_is_asked_for_pages),
		TEST(a_version_that_cannot_stand_in_a_path_is_not_used),
		cmocka_unit_test(a_binding_is_so_only_if_the_server_said_it_was_made),
		cmocka_unit_test(pauses_grow_to_a_minute_and_heed_the_server),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
