/* claims_test.c - claims are prepared when their memory is measured as free, and unprepared when it
 * is measured as back */
#include "kubelet/claims.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"
#include "world.h"

static void a_claim_is_prepared_after_a_measurement_that_began_later(void **state)
{
	struct world *world = world_new();
	(void)state;

	int64_t call = world_prepare(world, 0);
	world_measure(world); /* before its object is known */
	world_fetched(world, NULL);
	assert_false(world->calls[call].is_answered);
	world_measure(world);
	assert_true(world->calls[call].is_answered);
	assert_false(world->calls[call].is_refused);
	assert_string_equal(world->calls[call].uuid, "GPU-aa");
	assert_int_equal(world->calls[call].memory_mib, 4000);
	assert_true(world->pods[0].has_file);
	assert_int_equal(claims_count(world->claims), 1);
	world_free(world);
}

static void memory_that_is_not_free_is_a_refusal_with_the_numbers(void **state)
{
	struct world *world = world_new();
	(void)state;

	world->foreign_mib[0] = 6000;
	const struct world_call *call = world_prepared(world, 0);
	assert_true(call->is_refused);
	assert_string_equal(call->text, "GPU GPU-aa has no room: overhead 500 + foreign 6000 + 0 "
	                                "others 0 + asked 4000 = 10500 MiB, capacity 10000 MiB");
	assert_int_equal(claims_count(world->claims), 0);
	assert_int_equal(claims_pending(world->claims), 0);
	assert_false(world->pods[0].is_kept);
	world->foreign_mib[0] = 5500; /* the kubelet tries again */
	assert_false(world_prepared(world, 0)->is_refused);
	world_free(world);
}

static void prepared_claims_count_with_what_they_have_or_use(void **state)
{
	struct world *world = world_new();
	(void)state;

	assert_false(world_prepared(world, 0)->is_refused);
	assert_false(world_prepared(world, 1)->is_refused);
	assert_true(world_prepared(world, 2)->is_refused); /* 500 + 3 x 4000 */
	world->pods[0].used_mib = 3000;                    /* of its own 4000 */
	world->pods[3].asked_mib = 1500;
	assert_false(world_prepared(world, 3)->is_refused);
	world_free(world);
}

static void a_pod_that_the_node_has_an_order_for_counts_once(void **state)
{
	struct world *world = world_new();
	(void)state;

	world->pods[0].is_ordered = true;
	assert_false(world_prepared(world, 0)->is_refused);
	world->pods[0].used_mib = 4000;
	world->pods[1].is_ordered = true;
	assert_false(world_prepared(world, 1)->is_refused);
	world->pods[2].asked_mib = 1500;
	assert_false(world_prepared(world, 2)->is_refused);
	world->pods[3].asked_mib = 1;
	assert_true(world_prepared(world, 3)->is_refused);
	world_free(world);
}

static void a_claim_is_unprepared_when_its_memory_is_back(void **state)
{
	struct world *world = world_new();
	(void)state;

	world_prepared(world, 0);
	world->pods[0].used_mib = 3000;
	int64_t call = world_unprepare(world, 0);
	world_measure(world);
	assert_false(world->calls[call].is_answered);
	world->pods[0].used_mib = 0;
	world->pods[0].left_mib = 3000; /* processes are gone, memory is not */
	world_sleep(world, 200);
	world_measure(world);
	assert_false(world->calls[call].is_answered);
	world->pods[0].left_mib = 60; /* tolerated */
	world_sleep(world, 200);
	world_measure(world);
	assert_true(world->calls[call].is_answered);
	assert_false(world->calls[call].is_refused);
	assert_false(world->pods[0].is_kept);
	assert_false(world->pods[0].has_file);
	assert_int_equal(claims_count(world->claims), 0);
	assert_int_equal(world->gave_up, 0);
	world_free(world);
}

static void memory_goes_to_the_next_claim_only_after_it_was_measured_as_back(void **state)
{
	struct world *world = world_new();
	(void)state;

	world->pods[0].asked_mib = world->pods[1].asked_mib = 6000;
	world_prepared(world, 0);
	world->pods[0].used_mib = 6000;
	int64_t call = world_unprepare(world, 0);
	assert_true(world_prepared(world, 1)->is_refused);
	world->pods[0].used_mib = 0;
	assert_false(world->calls[call].is_answered);
	world_sleep(world, 200);
	assert_false(world_prepared(world, 1)->is_refused);
	assert_true(world->calls[call].is_answered);
	world_free(world);
}

static void unprepare_gives_up_after_thirty_seconds(void **state)
{
	struct world *world = world_new();
	(void)state;

	world_prepared(world, 0);
	world->pods[0].left_mib = 3000;
	int64_t call = world_unprepare(world, 0);
	for (int i = 0; i < 149; i++) {
		world_sleep(world, 200);
		world_measure(world);
		assert_false(world->calls[call].is_answered);
	}
	world_sleep(world, 200);
	world_measure(world);
	assert_true(world->calls[call].is_answered);
	assert_false(world->calls[call].is_refused);
	assert_int_equal(world->gave_up, 1);
	assert_int_equal(world->gave_up_mib, 3000);
	/* It is foreign from now on. */
	assert_false(world_prepared(world, 1)->is_refused);
	assert_true(world_prepared(world, 2)->is_refused);
	world_free(world);
}

static void unprepare_ends_without_any_measurement(void **state)
{
	struct world *world = world_new();
	(void)state;

	world_prepared(world, 0);
	int64_t call = world_unprepare(world, 0);
	world_sleep(world, 30000);
	world_sleep(world, 4999);
	assert_false(world->calls[call].is_answered);
	world_sleep(world, 1);
	assert_true(world->calls[call].is_answered);
	assert_int_equal(claims_count(world->claims), 0);
	world_free(world);
}

static void a_slow_measurement_still_tells_what_is_left(void **state)
{
	struct world *world = world_new();
	(void)state;

	world_prepared(world, 0);
	world->pods[0].left_mib = 3000;
	int64_t call = world_unprepare(world, 0);
	world_sleep(world, 32000);
	assert_false(world->calls[call].is_answered);
	world_measure(world);
	assert_true(world->calls[call].is_answered);
	assert_int_equal(world->gave_up_mib, 3000);
	world_free(world);
}

static void calls_may_be_repeated(void **state)
{
	struct world *world = world_new();
	(void)state;

	int64_t first = world_prepare(world, 0), second = world_prepare(world, 0);
	world_fetched(world, NULL);
	world_measure(world);
	assert_true(world->calls[first].is_answered && world->calls[second].is_answered);
	world->foreign_mib[0] = 9000; /* what was prepared stays prepared */
	world->pods[0].has_file = false;
	int64_t third = world_prepare(world, 0);
	assert_true(world->calls[third].is_answered);
	assert_false(world->calls[third].is_refused);
	assert_true(world->pods[0].has_file);
	int64_t one = world_unprepare(world, 0), other = world_unprepare(world, 0);
	world_measure(world);
	assert_true(world->calls[one].is_answered && world->calls[other].is_answered);
	int64_t again = world_unprepare(world, 0);
	assert_true(world->calls[again].is_answered);
	assert_false(world->calls[again].is_refused);
	world_free(world);
}

static void unprepare_ends_what_is_being_prepared(void **state)
{
	struct world *world = world_new();
	(void)state;

	int64_t call = world_prepare(world, 0);
	world_unprepare(world, 0);
	assert_true(world->calls[call].is_refused);
	world_fetched(world, NULL);
	world_measure(world);
	assert_int_equal(claims_count(world->claims), 0);
	assert_int_equal(claims_pending(world->claims), 0);
	world_free(world);
}

static void a_restart_knows_what_was_prepared(void **state)
{
	struct world *world = world_new();
	(void)state;

	world_prepared(world, 0);
	world_restart(world, true);
	assert_int_equal(claims_count(world->claims), 1);
	world->pods[1].asked_mib = 6000;
	assert_true(world_prepared(world, 1)->is_refused);
	int64_t call = world_prepare(world, 0);
	assert_true(world->calls[call].is_answered);
	assert_true(world->pods[0].has_file);
	world_unprepare(world, 0);
	world_restart(world, false); /* in the middle */
	call = world_unprepare(world, 0);
	world_measure(world);
	assert_true(world->calls[call].is_answered);
	assert_int_equal(claims_count(world->claims), 0);
	world_free(world);
}

static void what_cannot_be_had_is_a_refusal(void **state)
{
	struct world *world = world_new();
	(void)state;

	int64_t call = world_prepare(world, 0);
	world_fetched(world, "the API server answered with 404");
	assert_string_equal(world->calls[call].text, "the API server answered with 404");
	call = world_prepare(world, 0);
	world_sleep(world, 30000);
	assert_string_equal(world->calls[call].text, "the API server did not answer");
	world->fetches[0] = 0;
	call = world_prepare(world, 0);
	world_fetched(world, NULL);
	world_sleep(world, 30000);
	assert_string_equal(world->calls[call].text, "the GPUs could not be measured");
	world->keeps_failing = true;
	assert_string_equal(world_prepared(world, 0)->text, "no space left on device");
	world->keeps_failing = false;
	world->is_sick[0] = true;
	assert_string_equal(world_prepared(world, 0)->text, "GPU GPU-aa is not healthy");
	assert_int_equal(claims_pending(world->claims), 0);
	world_free(world);
}

static void the_offer_is_what_only_claims_can_have(void **state)
{
	struct world *world = world_new();
	struct claims_gpu gpu = { .uuid = "GPU-aa",
		                  .capacity_mib = 10000,
		                  .overhead_mib = 500,
		                  .foreign_mib = 3000,
		                  .is_present = true,
		                  .is_healthy = true };
	struct claims_owner owners[] = {
		{ .uuid = "GPU-aa", .pod = "pod-0", .measured_mib = 2000, .is_foreign = true },
		{ .uuid = "GPU-aa", .pod = "pod-9", .reserved_mib = 700, .measured_mib = 100 },
		{ .uuid = "GPU-bb", .pod = "", .reserved_mib = 5000 },
	};
	struct claims_measured measured = {
		.gpus = &gpu, .gpu_count = 1, .owners = owners, .owner_count = 3
	};
	(void)state;

	assert_int_equal(claims_offer_mib(world->claims, &measured, &gpu), 5800);
	world_prepared(world, 0);
	assert_int_equal(claims_offer_mib(world->claims, &measured, &gpu), 7800);
	world_free(world);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* What was given out at any time fits, by what the world knows. */
static void check_sums(const struct world *world)
{
	int64_t sums[WORLD_GPUS] = { 0 };

	for (int64_t i = 0; i < claims_count(world->claims); i++) {
		const struct claim_device *device = &claims_at(world->claims, i)->devices[0];
		sums[strcmp(device->uuid, "GPU-bb") == 0] += device->memory_mib;
	}
	for (int i = 0; i < WORLD_GPUS; i++)
		assert_true(sums[i] + world->overhead_mib <= world->capacity_mib);
}

static void random_step(struct world *world, uint32_t *seed)
{
	int64_t at = next_random(seed) % 6;
	struct world_pod *pod = &world->pods[at];

	switch (next_random(seed) % 12) {
	case 0:
	case 1:
	case 2:
		world_prepare(world, at);
		break;
	case 3:
		world_fetched(world, next_random(seed) % 8 == 0 ? "no" : NULL);
		break;
	case 4:
	case 5:
		world_fetched(world, NULL);
		world_measure(world);
		break;
	case 6:
		world_unprepare(world, at);
		break;
	case 7:
		pod->used_mib = pod->is_kept ? next_random(seed) % 2 * pod->asked_mib : 0;
		break;
	case 8:
		pod->left_mib = next_random(seed) % 2 * pod->used_mib;
		pod->used_mib = 0;
		break;
	case 9:
		world_sleep(world, next_random(seed) % 40000);
		break;
	case 10:
		if (next_random(seed) % 4 == 0)
			world_restart(world, next_random(seed) % 2);
		break;
	default:
		if (!pod->is_kept)
			pod->is_ordered = !pod->is_ordered;
		world->keeps_failing = next_random(seed) % 8 == 0;
		break;
	}
}

static void no_claim_is_left_after_1000_random_sequences(void **state)
{
	(void)state;

	for (uint32_t sequence = 0; sequence < 1000; sequence++) {
		struct world *world = world_new();
		uint32_t seed = sequence;
		for (int i = 0; i < 6; i++) {
			world->pods[i].gpu = next_random(&seed) % WORLD_GPUS;
			world->pods[i].asked_mib = 1 + next_random(&seed) % 6000;
		}
		for (int step = 0; step < 200; step++) {
			random_step(world, &seed);
			check_sums(world);
		}
		world->keeps_failing = false;
		for (int i = 0; i < WORLD_CLAIMS; i++)
			world->pods[i].used_mib = world->pods[i].left_mib = 0;
		for (int i = 0; i < WORLD_CLAIMS; i++)
			world_unprepare(world, i);
		world_measure(world);
		world_sleep(world, 30000);
		world_measure(world);
		assert_int_equal(claims_count(world->claims), 0);
		assert_int_equal(claims_pending(world->claims), 0);
		for (int64_t i = 0; i < world->call_count; i++)
			assert_true(world->calls[i].is_answered);
		for (int i = 0; i < WORLD_CLAIMS; i++)
			assert_false(world->pods[i].is_kept || world->pods[i].has_file);
		world_free(world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_claim_is_prepared_after_a_measurement_that_began_later),
		cmocka_unit_test(memory_that_is_not_free_is_a_refusal_with_the_numbers),
		cmocka_unit_test(prepared_claims_count_with_what_they_have_or_use),
		cmocka_unit_test(a_pod_that_the_node_has_an_order_for_counts_once),
		cmocka_unit_test(a_claim_is_unprepared_when_its_memory_is_back),
		cmocka_unit_test(memory_goes_to_the_next_claim_only_after_it_was_measured_as_back),
		cmocka_unit_test(unprepare_gives_up_after_thirty_seconds),
		cmocka_unit_test(unprepare_ends_without_any_measurement),
		cmocka_unit_test(a_slow_measurement_still_tells_what_is_left),
		cmocka_unit_test(calls_may_be_repeated),
		cmocka_unit_test(unprepare_ends_what_is_being_prepared),
		cmocka_unit_test(a_restart_knows_what_was_prepared),
		cmocka_unit_test(what_cannot_be_had_is_a_refusal),
		cmocka_unit_test(the_offer_is_what_only_claims_can_have),
		cmocka_unit_test(no_claim_is_left_after_1000_random_sequences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
