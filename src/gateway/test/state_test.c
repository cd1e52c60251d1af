/* state_test.c - tests of queues, limits, prefixes and the spool */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/number.h"
#include "gateway/state/fair.h"
#include "gateway/state/prefix.h"
#include "gateway/state/rate.h"
#include "gateway/state/speed.h"
#include "gateway/state/spool.h"

static int64_t served_of(struct fair *fair, int64_t id)
{
	return fair_tenant(fair, id, FAIR_WEIGHT_ONE)->served;
}

/* Serves the next and has its tenant wait again; the cost is random. */
static void serve_one(struct fair *fair, uint64_t *seed, int64_t most)
{
	struct fair_item *item = fair_first(fair);
	struct fair_tenant *tenant = item->tenant;

	fair_remove(fair, item);
	tenant->running++;
	fair_charge(fair, tenant, 1 + (int64_t)random_below(seed, (uint64_t)most));
	fair_push(fair, tenant, item, false);
	tenant->running--;
}

static void a_tenant_with_ten_times_the_load_gets_no_more(void **state)
{
	(void)state;
	struct fair fair;
	struct fair_item items[11] = { 0 };
	uint64_t seed = 7;
	fair_init(&fair);
	for (int i = 0; i < 11; i++)
		fair_push(&fair, fair_tenant(&fair, i == 0 ? 1 : 2, FAIR_WEIGHT_ONE), &items[i],
		          false);
	for (int i = 0; i < 10000; i++) {
		serve_one(&fair, &seed, 500);
		int64_t difference = served_of(&fair, 1) - served_of(&fair, 2);
		assert_true(difference <= 500 && difference >= -500);
	}
	fair_free(&fair);
}

/* It always has one at its server, and seldom one that waits. */
static void a_tenant_that_is_always_served_saves_one_charge_up(void **state)
{
	(void)state;
	struct fair fair;
	struct fair_item waits = { 0 }, item = { 0 };
	fair_init(&fair);
	struct fair_tenant *busy = fair_tenant(&fair, 1, FAIR_WEIGHT_ONE),
			   *other = fair_tenant(&fair, 2, FAIR_WEIGHT_ONE);
	busy->running = 1;
	fair_push(&fair, other, &waits, false);
	for (int i = 0; i < 1000; i++) {
		fair_remove(&fair, &waits);
		fair_charge(&fair, other, 100);
		fair_push(&fair, other, &waits, false);
	}
	fair_push(&fair, busy, &item, false);
	assert_true(fair_first(&fair) == &item);
	assert_true(other->counter - busy->counter <= 200 * FAIR_WEIGHT_ONE);
	fair_remove(&fair, &item);
	fair_remove(&fair, &waits);
	fair_free(&fair);
}

/* Of one tenant's queue the first that came is the next: ten times the load is ten times the
 * service. The same load in queues of two tenants is served in halves. */
static void first_come_first_served_would_follow_the_load(void **state)
{
	(void)state;
	for (int tenants = 1; tenants <= 2; tenants++) {
		struct fair fair;
		struct fair_item items[11] = { 0 };
		int64_t small = 0, large = 0;
		fair_init(&fair);
		for (int i = 0; i < 11; i++)
			fair_push(
			    &fair,
			    fair_tenant(&fair, i == 0 || tenants == 1 ? 1 : 2, FAIR_WEIGHT_ONE),
			    &items[i], false);
		for (int i = 0; i < 11000; i++) {
			struct fair_item *item = fair_first(&fair);
			uint64_t seed = 1;
			*(item == &items[0] ? &small : &large) += 1;
			serve_one(&fair, &seed, 1);
		}
		assert_int_equal(large, tenants == 1 ? 10 * small : small);
		fair_free(&fair);
	}
}

static void service_follows_weights(void **state)
{
	(void)state;
	struct fair fair;
	struct fair_item one = { 0 }, two = { 0 };
	uint64_t seed = 7;
	fair_init(&fair);
	struct fair_tenant *heavy = fair_tenant(&fair, 1, 3 * FAIR_WEIGHT_ONE);
	struct fair_tenant *light = fair_tenant(&fair, 2, FAIR_WEIGHT_ONE);
	fair_push(&fair, heavy, &one, false);
	fair_push(&fair, light, &two, false);
	for (int i = 0; i < 10000; i++)
		serve_one(&fair, &seed, 100);
	assert_true(heavy->served > 29 * light->served / 10 &&
	            heavy->served < 31 * light->served / 10);
	fair_free(&fair);
}

static void a_tenant_that_was_away_saves_nothing_up(void **state)
{
	(void)state;
	struct fair fair;
	struct fair_item one = { 0 }, two = { 0 };
	uint64_t seed = 7;
	fair_init(&fair);
	struct fair_tenant *busy = fair_tenant(&fair, 1, FAIR_WEIGHT_ONE);
	struct fair_tenant *late = fair_tenant(&fair, 2, FAIR_WEIGHT_ONE);
	fair_push(&fair, busy, &one, false);
	for (int i = 0; i < 1000; i++)
		serve_one(&fair, &seed, 100);
	fair_push(&fair, late, &two, false);
	int64_t before = busy->served;
	for (int i = 0; i < 1000; i++)
		serve_one(&fair, &seed, 100);
	assert_true(busy->served - before > late->served * 9 / 10);
	fair_free(&fair);
}

static void batches_wait_for_people(void **state)
{
	(void)state;
	struct fair fair;
	struct fair_item batch = { .class = FAIR_BATCH }, person = { 0 };
	fair_init(&fair);
	struct fair_tenant *tenant = fair_tenant(&fair, 1, FAIR_WEIGHT_ONE);
	fair_push(&fair, tenant, &batch, false);
	fair_push(&fair, tenant, &person, false);
	assert_ptr_equal(fair_first(&fair), &person);
	fair_remove(&fair, &person);
	fair_remove(&fair, &person);
	assert_ptr_equal(fair_first(&fair), &batch);
	fair_free(&fair);
}

static void what_was_served_elsewhere_counts(void **state)
{
	(void)state;
	struct fair fair;
	struct fair_item one = { 0 }, two = { 0 };
	fair_init(&fair);
	struct fair_tenant *a = fair_tenant(&fair, 1, FAIR_WEIGHT_ONE);
	struct fair_tenant *b = fair_tenant(&fair, 2, FAIR_WEIGHT_ONE);
	fair_push(&fair, a, &one, false);
	fair_push(&fair, b, &two, false);
	fair_others(&fair, a, 1000);
	fair_others(&fair, a, 1000);
	assert_ptr_equal(fair_first(&fair), &two);
	fair_charge(&fair, b, 1001);
	assert_ptr_equal(fair_first(&fair), &one);
	fair_free(&fair);
}

static void limits_fill_within_a_minute(void **state)
{
	(void)state;
	struct rate rate = { 0 };
	rate_limit(&rate, 60, 0);
	for (int i = 0; i < 60; i++) {
		assert_true(rate_has(&rate, 1, 0));
		rate_take(&rate, 1, 0);
	}
	assert_false(rate_has(&rate, 1, 0));
	assert_int_equal(rate_wait_ms(&rate, 1, 0), 1000);
	assert_true(rate_has(&rate, 1, 1000));
	rate_take(&rate, 600, 1000); /* known afterwards */
	assert_int_equal(rate_left(&rate, 1000), 0);
	assert_false(rate_has(&rate, 1, 60000));
	assert_true(rate_has(&rate, 60, 1000000));
	assert_true(rate_has(&rate, 1000, 1000000)); /* more than the limit: when it is full */
	rate_limit(&rate, 0, 1000000);
	assert_true(rate_has(&rate, 1000000, 1000000));
}

static void the_longest_prefix_is_known_by_slot(void **state)
{
	(void)state;
	struct prefixes *prefixes = prefixes_new(64);
	const uint64_t blocks[] = { 11, 22, 33, 44 };
	for (int i = 0; i < 3; i++)
		assert_int_equal(prefixes_add(prefixes), i);
	prefixes_note(prefixes, 0, blocks, 2);
	prefixes_note(prefixes, 1, blocks, 4);
	const int *matched = prefixes_match(prefixes, blocks, 4);
	assert_int_equal(matched[0], 2);
	assert_int_equal(matched[1], 4);
	assert_int_equal(matched[2], 0);
	for (uint64_t i = 1000; i < 10000; i++)
		prefixes_note(prefixes, 0, &i, 1);
	matched = prefixes_match(prefixes, blocks, 4);
	assert_int_equal(matched[0], 0);
	assert_int_equal(matched[1], 4);
	prefixes_remove(prefixes, 1);
	assert_int_equal(prefixes_add(prefixes), 1);
	assert_int_equal(prefixes_match(prefixes, blocks, 4)[1], 0);
	prefixes_free(prefixes);
}

static void the_end_of_a_prompt_is_forgotten_before_its_beginning(void **state)
{
	(void)state;
	struct prefixes *prefixes = prefixes_new(4);
	const uint64_t one[] = { 11, 22, 33, 44, 55 }, other[] = { 11, 66 };
	prefixes_add(prefixes);
	prefixes_note(prefixes, 0, one, 5);
	assert_int_equal(prefixes_match(prefixes, one, 5)[0], 4);
	prefixes_note(prefixes, 0, other, 2);
	assert_int_equal(prefixes_match(prefixes, one, 5)[0], 3);
	assert_int_equal(prefixes_match(prefixes, other, 2)[0], 2);
	prefixes_free(prefixes);
}

enum { MODEL_SLOTS = 130, MODEL_BLOCKS = 40, MODEL_ROUNDS = 20000 };

/* Blocks by slot, the last used first: what the table must agree with. */
struct prefix_model {
	uint64_t blocks[MODEL_SLOTS][MODEL_BLOCKS];
	int counts[MODEL_SLOTS];
};

static void model_note(struct prefix_model *model, int slot, uint64_t block)
{
	uint64_t *blocks = model->blocks[slot];
	int at = 0;

	while (at < model->counts[slot] && blocks[at] != block)
		at++;
	if (at == model->counts[slot] && at < MODEL_BLOCKS)
		model->counts[slot]++;
	if (at == MODEL_BLOCKS)
		at--;
	memmove(blocks + 1, blocks, (size_t)at * sizeof(*blocks));
	blocks[0] = block;
}

static int model_match(const struct prefix_model *model, int slot, const uint64_t *blocks,
                       int count)
{
	int matched = 0;

	for (; matched < count; matched++) {
		int at = 0;
		while (at < model->counts[slot] && model->blocks[slot][at] != blocks[matched])
			at++;
		if (at == model->counts[slot])
			break;
	}
	return matched;
}

static void prefixes_of_many_slots_are_those_of_a_plain_list(void **state)
{
	(void)state;
	struct prefixes *prefixes = prefixes_new(MODEL_BLOCKS);
	struct prefix_model *model = memory_zero(1, sizeof(*model));
	uint64_t seed = 5;
	for (int i = 0; i < MODEL_SLOTS; i++)
		prefixes_add(prefixes);
	for (int round = 0; round < MODEL_ROUNDS; round++) {
		uint64_t blocks[12];
		int count = 1 + (int)random_below(&seed, 12), slot;
		uint64_t from = random_below(&seed, 60);
		for (int i = 0; i < count; i++)
			blocks[i] = from + (uint64_t)i + 1;
		slot = (int)random_below(&seed, MODEL_SLOTS);
		if (random_below(&seed, 50) == 0) {
			prefixes_remove(prefixes, slot);
			model->counts[slot] = 0;
			assert_int_equal(prefixes_add(prefixes), slot);
		}
		const int *matched = prefixes_match(prefixes, blocks, count);
		for (int i = 0; i < MODEL_SLOTS; i++)
			assert_int_equal(matched[i], model_match(model, i, blocks, count));
		prefixes_note(prefixes, slot, blocks, count);
		for (int i = count; i-- > 0;)
			model_note(model, slot, blocks[i]);
	}
	free(model);
	prefixes_free(prefixes);
}

struct sums {
	int64_t rows, completion, cut;
};

static void sum_row(void *context, const struct spool_row *row)
{
	struct sums *sums = context;

	sums->rows++;
	sums->completion += row->completion;
	sums->cut += row->is_cut;
}

static struct spool *opened(const char *path, int64_t boot)
{
	struct error error = { 0 };
	struct spool *spool = spool_open(path, boot, &error);

	if (!spool)
		fail_msg("%s", error.text);
	return spool;
}

static void usage_survives_and_is_counted_once(void **state)
{
	(void)state;
	char path[] = "/tmp/spool-XXXXXX";
	struct spool_range range;
	struct sums sums = { 0 };
	close(mkstemp(path));
	struct spool *spool = opened(path, 5);
	for (int i = 0; i < 10000; i++) {
		struct spool_row *row = spool_begin(spool, 1, 2, "key", "");
		row->completion = 3;
		if (i % 2 == 0)
			spool_end(spool, row);
	}
	struct error error = { 0 };
	assert_null(spool_open(path, 6, &error)); /* in use */
	assert_int_equal(error.code, ERROR_CONFLICT);
	spool_counted(spool, 5, 100);
	spool_close(spool);
	/* As after SIGKILL: 4,900 that ended are left, and 5,000 are cut. */
	spool = opened(path, 5);
	assert_int_equal(spool_boot(spool), 6);
	int64_t boots[4];
	assert_int_equal(spool_boots(spool, boots, 4), 2);
	while (spool_next(spool, &range)) {
		spool_each(spool, &range, sum_row, &sums);
		spool_counted(spool, range.boot, range.to);
	}
	assert_int_equal(sums.rows, 9900);
	assert_int_equal(sums.completion, 29700);
	assert_int_equal(sums.cut, 5000);
	assert_int_equal(spool_used(spool), 0);
	spool_drop(spool, spool_begin(spool, 1, 2, "key", "adapter"));
	assert_false(spool_next(spool, &range));
	spool_close(spool);
	unlink(path);
}

static void a_minute_is_told_and_then_forgotten(void **state)
{
	struct speed speed = { 0 };
	int64_t now_ms = 5000000;

	(void)state;
	assert_null(speed_said(&speed, now_ms));
	for (int i = 0; i < 30; i++) {
		speed_first_token(&speed, now_ms + i * 1000, 200);
		speed_tokens(&speed, now_ms + i * 1000, 50);
	}
	now_ms += 30000;
	Gateway__Speed *said = speed_said(&speed, now_ms);
	assert_non_null(said);
	assert_int_equal(said->answers, 30);
	assert_int_equal(said->tokens, 1500);
	assert_int_equal(said->over_ms, 30000); /* and not a minute, which it has not had yet */
	assert_int_equal(said->n_first_token, duration_bucket(200) + 1);
	assert_int_equal(said->first_token[duration_bucket(200)], 30);
	gateway__speed__free_unpacked(said, NULL);
	assert_null(speed_said(&speed, now_ms + 60000));
	speed_free(&speed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tenant_with_ten_times_the_load_gets_no_more),
		cmocka_unit_test(first_come_first_served_would_follow_the_load),
		cmocka_unit_test(service_follows_weights),
		cmocka_unit_test(a_tenant_that_was_away_saves_nothing_up),
		cmocka_unit_test(a_tenant_that_is_always_served_saves_one_charge_up),
		cmocka_unit_test(batches_wait_for_people),
		cmocka_unit_test(what_was_served_elsewhere_counts),
		cmocka_unit_test(limits_fill_within_a_minute),
		cmocka_unit_test(the_longest_prefix_is_known_by_slot),
		cmocka_unit_test(a_minute_is_told_and_then_forgotten),
		cmocka_unit_test(the_end_of_a_prompt_is_forgotten_before_its_beginning),
		cmocka_unit_test(prefixes_of_many_slots_are_those_of_a_plain_list),
		cmocka_unit_test(usage_survives_and_is_counted_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
