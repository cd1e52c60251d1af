/* effects_test.c - effects keep their order and what they hold, and are used again */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/record/effects.h"

static const int64_t two_parts[] = { 1, 8000, 100, 0, 0, 2, 4000, 50, 0, 0 };

/* One effect of each kind. */
static void add_all(struct effects *effects)
{
	struct tenant_record tenant = { .id = 3, .name = "lab" };
	struct task_order order = {
		.term = 2, .reservation_id = 5, .job_id = 9, .parts = { two_parts, 2 }
	};
	struct event event = { .kind = EVENT_JOB_STARTED, .number = 12, .job_id = 9 };
	effects_put(effects, RECORD_TENANT, &tenant);
	effects_delete(effects, RECORD_TASK, 9, 0);
	effects_archive(effects, RECORD_JOB, 9, 0);
	effects_order(effects, EFFECT_START, &order);
	order.parts.count = 0;
	order.grace_ms = 30000;
	effects_order(effects, EFFECT_STOP, &order);
	effects_event(effects, &event);
	effects_more(effects);
	effects->reply_id = 9;
	effects->reply_count = 2;
}

static void effects_come_out_in_the_order_in_which_they_went_in(void **state)
{
	(void)state;
	static const enum effect_kind expected[] = { EFFECT_PUT,   EFFECT_DELETE, EFFECT_ARCHIVE,
		                                     EFFECT_START, EFFECT_STOP,   EFFECT_EVENT,
		                                     EFFECT_MORE };
	struct effects effects = { 0 };
	add_all(&effects);
	assert_int_equal(effects.count, 7);
	for (size_t i = 0; i < effects.count; i++)
		assert_int_equal(effects.at[i].kind, expected[i]);
	assert_int_equal(effects.at[1].record_kind, RECORD_TASK);
	assert_int_equal(effects.at[1].key.first, 9);
	assert_int_equal(effects.at[2].record_kind, RECORD_JOB);
	assert_int_equal(effects.at[5].event.number, 12);
	effects_free(&effects);
}

static void a_record_that_was_put_is_a_copy(void **state)
{
	(void)state;
	struct effects effects = { 0 };
	char name[] = "lab";
	struct tenant_record tenant = { .id = 3, .name = name };
	effects_put(&effects, RECORD_TENANT, &tenant);
	tenant.id = 4;
	name[0] = 'x';
	const struct tenant_record *kept = effects.at[0].record;
	assert_int_equal(kept->id, 3);
	assert_string_equal(kept->name, "lab");
	effects_free(&effects);
}

static void the_parts_of_an_order_are_copies(void **state)
{
	(void)state;
	struct effects effects = { 0 };
	int64_t parts[PART_WIDTH] = { 1, 8000, 100, 0, 0 };
	struct task_order order = { .reservation_id = 5, .parts = { parts, 1 } };
	effects_order(&effects, EFFECT_START, &order);
	parts[PART_MIB] = 1;
	assert_int_equal(effects.at[0].order.reservation_id, 5);
	assert_int_equal(effects.at[0].order.parts.count, 1);
	assert_int_equal(effects.at[0].order.parts.at[PART_MIB], 8000);
	effects_free(&effects);
}

static void a_copied_effect_outlives_what_it_was_copied_from(void **state)
{
	struct effects effects = { 0 };
	struct arena arena = { 0 };
	const int64_t utilisation[] = { 900 };
	char command[] = "serve", reason[] = "no room";

	(void)state;
	effects_load(&effects, &(struct load_order){ .utilisation = { utilisation, 1 },
	                                             .kv_cache = "",
	                                             .command = command });
	effects_route(&effects,
	              &(struct route_effect){ .outcome = ROUTE_REFUSED, .reason = reason });
	struct effect load = effect_copy(&arena, &effects.at[0]);
	struct effect route = effect_copy(&arena, &effects.at[1]);
	effects_free(&effects);
	assert_int_equal(load.kind, EFFECT_LOAD);
	assert_int_equal(load.load.utilisation.at[0], 900);
	assert_string_equal(load.load.command, "serve");
	assert_string_equal(route.route.reason, "no room");
	arena_free(&arena);
}

static void clear_empties_everything(void **state)
{
	(void)state;
	struct effects effects = { 0 };
	add_all(&effects);
	effects.repeated = true;
	effects_clear(&effects);
	assert_int_equal(effects.count, 0);
	assert_int_equal(effects.reply_id, 0);
	assert_int_equal(effects.reply_count, 0);
	assert_false(effects.repeated);

	struct buffer cleared = { 0 }, fresh = { 0 };
	effects_encode(&cleared, &effects);
	effects_encode(&fresh, &(struct effects){ 0 });
	assert_int_equal(cleared.size, fresh.size);
	assert_memory_equal(cleared.data, fresh.data, fresh.size);
	buffer_free(&cleared);
	buffer_free(&fresh);
	effects_free(&effects);
}

static void used_again_it_does_not_grow(void **state)
{
	(void)state;
	struct effects effects = { 0 };
	for (int i = 0; i < 100; i++)
		add_all(&effects);
	effects_clear(&effects);
	const void *at = effects.at, *block = effects.arena.first;
	size_t capacity = effects.capacity, used = 0;
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 100; i++)
			add_all(&effects);
		if (round == 0)
			used = effects.arena.used;
		assert_int_equal(effects.arena.used, used);
		effects_clear(&effects);
	}
	assert_ptr_equal(effects.at, at);
	assert_ptr_equal(effects.arena.first, block);
	assert_int_equal(effects.capacity, capacity);
	effects_free(&effects);
}

static void it_can_be_used_after_free(void **state)
{
	(void)state;
	struct effects effects = { 0 };
	add_all(&effects);
	effects_free(&effects);
	assert_null(effects.at);
	add_all(&effects);
	assert_int_equal(effects.count, 7);
	effects_free(&effects);
}

static void equal_effects_have_equal_encodings(void **state)
{
	(void)state;
	struct effects one = { 0 }, other = { 0 };
	struct buffer a = { 0 }, b = { 0 };
	/* One has memory that was used before, the other has not. */
	for (int i = 0; i < 10; i++)
		effects_event(&one, &(struct event){ .kind = EVENT_GPU_OVER, .value = -1 });
	effects_clear(&one);
	add_all(&one);
	add_all(&other);
	effects_encode(&a, &one);
	effects_encode(&b, &other);
	assert_int_equal(a.size, b.size);
	assert_memory_equal(a.data, b.data, a.size);
	buffer_free(&a);
	buffer_free(&b);
	effects_free(&one);
	effects_free(&other);
}

static bool encodings_differ(const struct effects *one, const struct effects *other)
{
	struct buffer a = { 0 }, b = { 0 };
	effects_encode(&a, one);
	effects_encode(&b, other);
	bool differ = a.size != b.size || memcmp(a.data, b.data, a.size) != 0;
	buffer_free(&a);
	buffer_free(&b);
	return differ;
}

static void whatever_differs_changes_the_encoding(void **state)
{
	(void)state;
	struct effects one = { 0 }, other = { 0 };
	add_all(&one);
	add_all(&other);
	assert_false(encodings_differ(&one, &other));

	other.repeated = true;
	assert_true(encodings_differ(&one, &other));
	other.repeated = false;
	other.at[1].kind = EFFECT_ARCHIVE;
	assert_true(encodings_differ(&one, &other));
	other.at[1].kind = EFFECT_DELETE;
	other.at[3].order.host_bytes = 1;
	assert_true(encodings_differ(&one, &other));
	other.at[3].order.host_bytes = 0;
	other.at[5].event.kind = EVENT_JOB_ENDED;
	assert_true(encodings_differ(&one, &other));
	other.at[5].event.kind = EVENT_JOB_STARTED;
	effects_more(&other);
	assert_true(encodings_differ(&one, &other));
	effects_free(&one);
	effects_free(&other);
}

static void print_gives_a_line_for_each_and_one_for_the_reply(void **state)
{
	(void)state;
	struct effects effects = { 0 };
	struct buffer buffer = { 0 };
	add_all(&effects);
	effects_print(&buffer, &effects);
	assert_string_equal(buffer.data, "put tenant id=3 name=\"lab\"\n"
	                                 "delete task job_id=9 place=0\n"
	                                 "archive job id=9\n"
	                                 "start term=2 reservation_id=5 job_id=9 "
	                                 "parts=[1,8000,100,0,0; 2,4000,50,0,0] "
	                                 "lease_loss=keep\n"
	                                 "stop term=2 reservation_id=5 job_id=9 grace_ms=30000 "
	                                 "lease_loss=keep\n"
	                                 "event number=12 kind=job_started job_id=9\n"
	                                 "more\n"
	                                 "reply reply_id=9 reply_count=2\n");
	buffer_free(&buffer);
	effects_free(&effects);
}

static void every_kind_of_event_has_its_name(void **state)
{
	(void)state;
	struct effects effects = { 0 };
	struct buffer buffer = { 0 };
	effects_event(&effects, &(struct event){ .kind = EVENT_RELEASE_LATE, .number = 1 });
	effects_event(&effects, &(struct event){ .kind = EVENT_TASK_ENDED, .number = 2 });
	effects_print(&buffer, &effects);
	assert_string_equal(buffer.data, "event number=1 kind=release_late\n"
	                                 "event number=2 kind=task_ended\n");
	buffer_free(&buffer);
	effects_free(&effects);
}

static void a_load_and_a_route_are_copied_encoded_and_printed(void **state)
{
	(void)state;
	int64_t part[PART_WIDTH] = { [PART_GPU] = 3, [PART_MIB] = 8000 }, utilisation[] = { 97 };
	char address[] = "10.0.0.1:8000";
	struct effects effects = { 0 }, other = { 0 };
	struct buffer one = { 0 }, two = { 0 };
	struct load_order load = { .reservation_id = 5,
		                   .runtime = RUNTIME_OLLAMA,
		                   .parts = { part, 1 },
		                   .utilisation = { utilisation, 1 },
		                   .kv_cache = "f16",
		                   .command = "" };

	effects_load(&effects, &load);
	effects_route(&effects, &(struct route_effect){ .outcome = ROUTE_GRANTED,
	                                                .request_id = 8,
	                                                .address = address });
	part[PART_MIB] = utilisation[0] = 0;
	address[0] = 'x';
	assert_int_equal(effects.at[0].load.parts.at[PART_MIB], 8000);
	assert_int_equal(effects.at[0].load.utilisation.at[0], 97);
	assert_string_equal(effects.at[1].route.address, "10.0.0.1:8000");
	effects_print(&one, &effects);
	assert_string_equal(one.data,
	                    "load reservation_id=5 runtime=ollama parts=[3,8000,0,0,0] "
	                    "utilisation=[97] kv_cache=\"f16\"\n"
	                    "route outcome=granted request_id=8 address=\"10.0.0.1:8000\"\n");
	effects_load(&other, &effects.at[0].load);
	effects_route(&other, &effects.at[1].route);
	buffer_clear(&one);
	effects_encode(&one, &effects);
	effects_encode(&two, &other);
	assert_int_equal(one.size, two.size);
	assert_memory_equal(one.data, two.data, one.size);
	other.at[1].route.slot_id = 1;
	buffer_clear(&two);
	effects_encode(&two, &other);
	assert_memory_not_equal(one.data, two.data, one.size);
	buffer_free(&one);
	buffer_free(&two);
	effects_free(&effects);
	effects_free(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(effects_come_out_in_the_order_in_which_they_went_in),
		cmocka_unit_test(a_record_that_was_put_is_a_copy),
		cmocka_unit_test(the_parts_of_an_order_are_copies),
		cmocka_unit_test(a_copied_effect_outlives_what_it_was_copied_from),
		cmocka_unit_test(clear_empties_everything),
		cmocka_unit_test(used_again_it_does_not_grow),
		cmocka_unit_test(it_can_be_used_after_free),
		cmocka_unit_test(equal_effects_have_equal_encodings),
		cmocka_unit_test(whatever_differs_changes_the_encoding),
		cmocka_unit_test(print_gives_a_line_for_each_and_one_for_the_reply),
		cmocka_unit_test(every_kind_of_event_has_its_name),
		cmocka_unit_test(a_load_and_a_route_are_copied_encoded_and_printed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
