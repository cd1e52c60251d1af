/* queue_test.c - the order of waiting jobs, and that none starves */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/queue/queue.h"

#define MINUTE 60000
#define POINT 60000
#define START INT64_C(1700000000000)

static const struct queue_rule usual = { .per_minute = 2, .cap = 10 };

static struct queue_entry waiting(int64_t number, int64_t priority, int64_t queued_ms)
{
	return (
	    struct queue_entry){ .number = number, .priority = priority, .queued_ms = queued_ms };
}

static void equals_leave_in_the_order_they_came(void **state)
{
	(void)state;
	struct queue queue;
	struct queue_entry entries[3];
	queue_init(&queue, usual);
	for (int i = 0; i < 3; i++)
		entries[i] = waiting(i + 1, 5, START);
	queue_push(&queue, &entries[2], START);
	queue_push(&queue, &entries[0], START);
	queue_push(&queue, &entries[1], START);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(queue_pop(&queue, START), &entries[i]);
	assert_null(queue_pop(&queue, START));
	queue_free(&queue);
}

static void higher_priority_goes_first(void **state)
{
	(void)state;
	struct queue queue;
	struct queue_entry low = waiting(1, 1, START), high = waiting(2, 9, START);
	queue_init(&queue, usual);
	queue_push(&queue, &low, START);
	queue_push(&queue, &high, START);
	assert_ptr_equal(queue_first(&queue, START), &high);
	assert_int_equal(queue_position(&queue, &low, START), 1);
	assert_int_equal(queue_count(&queue), 2);
	queue_free(&queue);
}

/* 2 points a minute: 3 points are made up for by 90 seconds. */
static void waiting_makes_up_for_a_lower_priority(void **state)
{
	(void)state;
	struct queue queue;
	struct queue_entry old = waiting(1, 4, START);
	struct queue_entry young = waiting(2, 7, START + 90000 - 1);
	struct queue_entry younger = waiting(3, 7, START + 90000);
	queue_init(&queue, usual);
	queue_push(&queue, &old, START);
	queue_push(&queue, &young, young.queued_ms);
	queue_push(&queue, &younger, younger.queued_ms);
	int64_t now = younger.queued_ms;
	assert_ptr_equal(queue_pop(&queue, now), &young);
	assert_ptr_equal(queue_pop(&queue, now), &old);
	assert_ptr_equal(queue_pop(&queue, now), &younger);
	queue_free(&queue);
}

static void waiting_adds_no_more_than_the_cap_whatever_the_priority(void **state)
{
	(void)state;
	struct queue queue;
	struct queue_entry old = waiting(1, 3, START), high = waiting(3, 20, START);
	struct queue_entry young = waiting(2, 14, START + 60 * MINUTE);
	queue_init(&queue, usual);
	queue_push(&queue, &old, START);
	queue_push(&queue, &young, young.queued_ms);
	assert_true(old.aged);
	assert_int_equal(queue_effective(&usual, &old, young.queued_ms), 13 * POINT);
	assert_int_equal(queue_effective(&usual, &high, young.queued_ms), 30 * POINT);
	assert_ptr_equal(queue_first(&queue, young.queued_ms), &young);
	queue_free(&queue);
}

static void an_urgent_job_has_all_that_waiting_can_add_from_its_time_on(void **state)
{
	(void)state;
	struct queue queue;
	struct queue_entry urgent = waiting(2, 0, START), other = waiting(1, 5, START);
	urgent.urgent_ms = START + 1000;
	queue_init(&queue, usual);
	queue_push(&queue, &other, START);
	queue_push(&queue, &urgent, START);
	assert_ptr_equal(queue_first(&queue, START + 999), &other);
	assert_ptr_equal(queue_first(&queue, START + 1000), &urgent);
	assert_int_equal(queue_effective(&usual, &urgent, START + 1000), 10 * POINT);
	queue_free(&queue);
}

static void without_ageing_only_priority_and_number_count(void **state)
{
	(void)state;
	const struct queue_rule rules[] = { { .cap = 10 },
		                            { .per_minute = 2 },
		                            { .shares = true } };
	for (int i = 0; i < 3; i++) {
		struct queue queue;
		struct queue_entry old = waiting(1, 4, START), high = waiting(2, 5, START + 1);
		int64_t later = START + 1000 * MINUTE;
		queue_init(&queue, rules[i]);
		old.urgent_ms = rules[i].cap == 0 ? START : 0;
		queue_push(&queue, &old, START);
		queue_push(&queue, &high, START + 1);
		assert_ptr_equal(queue_first(&queue, later), &high);
		assert_int_equal(queue_effective(&rules[i], &old, later), 4 * POINT);
		queue_free(&queue);
	}
}

static void a_job_of_another_queue_has_a_position(void **state)
{
	(void)state;
	struct queue queue;
	struct queue_entry entries[10];
	struct queue_entry stranger = waiting(100, 5, START);
	queue_init(&queue, usual);
	for (int i = 0; i < 10; i++) {
		entries[i] = waiting(i + 1, i, START);
		queue_push(&queue, &entries[i], START);
	}
	assert_int_equal(queue_position(&queue, &stranger, START), 5);
	stranger.urgent_ms = START + 1;
	assert_int_equal(queue_position(&queue, &stranger, START + 1), 0);
	assert_int_equal(queue_position(&queue, &stranger, START + 60 * MINUTE), 5);
	queue_free(&queue);
}

static void a_job_can_be_queued_again_after_it_left(void **state)
{
	(void)state;
	struct queue queue;
	struct queue_entry first = waiting(1, 1, START), second = waiting(2, 1, START + 1);
	queue_init(&queue, usual);
	queue_push(&queue, &first, START);
	queue_push(&queue, &second, START + 1);
	assert_ptr_equal(queue_pop(&queue, START + 1), &first);
	assert_false(first.queued);
	queue_push(&queue, &first, START + 2);
	assert_ptr_equal(queue_first(&queue, START + 2), &first);
	queue_remove(&queue, &first);
	queue_remove(&queue, &second);
	assert_int_equal(queue_count(&queue), 0);
	assert_null(queue_first(&queue, START + 2));
	queue_free(&queue);
}

static void extreme_values_do_not_overflow(void **state)
{
	(void)state;
	const struct queue_rule rule = { .per_minute = 100000, .cap = INT32_MAX };
	const int64_t late = INT64_C(1) << 45;
	struct queue queue;
	struct queue_entry low_old = waiting(1, INT32_MIN, 0), low = waiting(2, INT32_MIN, late);
	struct queue_entry high_old = waiting(3, INT32_MAX, 0), high = waiting(4, INT32_MAX, late);
	struct queue_entry *const order[] = { &high_old, &high, &low_old, &low };
	queue_init(&queue, rule);
	queue_push(&queue, &low_old, 0);
	queue_push(&queue, &high_old, 0);
	queue_push(&queue, &low, late);
	queue_push(&queue, &high, late);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(queue_position(&queue, order[i], late), i);
	for (size_t i = 0; i < 4; i++)
		assert_ptr_equal(queue_pop(&queue, late), order[i]);
	queue_free(&queue);
}

static void a_changed_rule_orders_all_anew(void **state)
{
	(void)state;
	struct queue queue;
	struct queue_entry old = waiting(1, 0, START);
	struct queue_entry young = waiting(2, 20, START + 60 * MINUTE);
	int64_t now = young.queued_ms;
	queue_init(&queue, usual);
	queue_push(&queue, &old, START);
	queue_push(&queue, &young, now);
	assert_ptr_equal(queue_first(&queue, now), &young);
	queue_rerule(&queue, (struct queue_rule){ .per_minute = 2, .cap = 1000 }, now);
	assert_false(old.aged);
	assert_ptr_equal(queue_first(&queue, now), &old);
	queue_rerule(&queue, (struct queue_rule){ .per_minute = 0, .cap = 1000 }, now);
	assert_ptr_equal(queue_first(&queue, now), &young);
	assert_int_equal(queue_count(&queue), 2);
	queue_free(&queue);
}

/* A job of priority 0 and a stream of others of `from` .. `to`, which come as
 * fast as they are served, one a second, with enough ahead that the queue
 * never runs dry: only ageing can help the low one. Everything served before it must be
 * allowed by the header. Returns true if it was served in the end. */
static bool is_served(struct queue_rule rule, int64_t from, int64_t to, uint64_t seed)
{
	enum { ARRIVALS = 12000, AHEAD = 50 };
	struct queue_entry *arrivals = calloc(ARRIVALS, sizeof(*arrivals));
	struct queue_entry low = waiting(1, 0, START);
	struct queue_entry *served = NULL;
	struct queue queue;
	assert_non_null(arrivals);
	queue_init(&queue, rule);
	queue_push(&queue, &low, START);
	for (int64_t i = 0; i < ARRIVALS && served != &low; i++) {
		int64_t now = START + max64(i - AHEAD, 0) * 1000;
		int64_t priority = from + (int64_t)random_below(&seed, (uint64_t)(to - from + 1));
		arrivals[i] = waiting(i + 2, priority, now);
		queue_push(&queue, &arrivals[i], now);
		if (i < AHEAD)
			continue;
		served = queue_pop(&queue, now);
		int64_t behind = (served->queued_ms - START) * rule.per_minute;
		assert_true(served == &low || behind < served->priority * MINUTE ||
		            queue_effective(&rule, served, now) > rule.cap * POINT);
	}
	queue_free(&queue);
	free(arrivals);
	return served == &low;
}

static void no_job_is_passed_by_arrivals_later_than_its_bound(void **state)
{
	(void)state;
	assert_true(is_served((struct queue_rule){ .per_minute = 1, .cap = 100 }, 1, 100, 1));
	assert_true(is_served((struct queue_rule){ .per_minute = 1, .cap = 40 }, 39, 39, 6));
	assert_true(is_served((struct queue_rule){ .per_minute = 7, .cap = 90 }, 70, 75, 7));
	assert_true(is_served((struct queue_rule){ .per_minute = 1, .cap = 40 }, 1, 40, 2));
	assert_true(is_served((struct queue_rule){ .per_minute = 7, .cap = 90 }, 1, 90, 3));
	assert_true(is_served((struct queue_rule){ .per_minute = 60, .cap = 1000 }, 1, 1000, 4));
	assert_true(is_served((struct queue_rule){ .per_minute = 100, .cap = 1000 }, 1, 100, 5));
}

static void jobs_that_are_higher_by_more_than_the_cap_always_go_first(void **state)
{
	(void)state;
	assert_false(is_served((struct queue_rule){ .per_minute = 1, .cap = 20 }, 21, 40, 8));
}

static void where_time_is_shared_who_takes_longer_goes_behind_for_so_long_and_no_longer(
    void **state)
{
	struct queue queue;
	struct queue_entry old = waiting(1, 0, START), young = waiting(2, 0, START + 5 * MINUTE);
	(void)state;
	old.behind_ms = 10 * MINUTE;
	queue_init(&queue, (struct queue_rule){
			       .per_minute = 1, .cap = 1000, .shares = true, .wait_ms = 1 });
	queue_push(&queue, &old, START);
	queue_push(&queue, &young, START + 5 * MINUTE);
	assert_ptr_equal(queue_first(&queue, START + 6 * MINUTE), &young);
	assert_int_equal(queue_effective(&queue.rule, &old, START + 6 * MINUTE), 0);
	assert_int_equal(queue_position(&queue, &old, START + 6 * MINUTE), 1);
	struct queue_entry later = waiting(3, 0, START + 11 * MINUTE);
	queue_push(&queue, &later, START + 11 * MINUTE);
	assert_true(queue_before(&queue.rule, &old, &later, START + 500 * MINUTE));
	assert_true(queue_before(&queue.rule, &young, &old, START + 500 * MINUTE));
	assert_ptr_equal(queue_first(&queue, START + 1000 * MINUTE), &old); /* by its age alone */
	queue_free(&queue);
}

/* The order in the plainest words: everything below is compared with this. */
static int64_t plain_effective(const struct queue_rule *rule, const struct queue_entry *entry,
                               int64_t now_ms)
{
	int64_t full = rule->per_minute == 0 ? 0 : rule->cap * POINT;
	int64_t bonus = rule->per_minute * (now_ms - entry->queued_ms);
	if (bonus > full || (entry->urgent_ms > 0 && entry->urgent_ms <= now_ms))
		bonus = full;
	return entry->priority * POINT + bonus;
}

enum { WORLD_ENTRIES = 48 };

struct world {
	struct queue queue;
	struct queue_rule rule;
	struct queue_entry entries[WORLD_ENTRIES];
	int64_t now_ms, last_number;
	int64_t levels; /* of priority */
	uint64_t seed;
	bool ageing_used, heap_used, aged_used;
};

static int64_t below(struct world *world, int64_t bound)
{
	return (int64_t)random_below(&world->seed, (uint64_t)bound);
}

static bool plain_before(const struct world *world, const struct queue_entry *a,
                         const struct queue_entry *b)
{
	int64_t of_a = plain_effective(&world->rule, a, world->now_ms);
	int64_t of_b = plain_effective(&world->rule, b, world->now_ms);
	return of_a > of_b || (of_a == of_b && a->number < b->number);
}

static size_t plain_position(const struct world *world, const struct queue_entry *entry)
{
	size_t position = 0;
	for (int i = 0; i < WORLD_ENTRIES; i++)
		if (world->entries[i].queued)
			position += plain_before(world, &world->entries[i], entry);
	return position;
}

static size_t plain_count(const struct world *world)
{
	size_t count = 0;
	for (int i = 0; i < WORLD_ENTRIES; i++)
		count += world->entries[i].queued;
	return count;
}

static struct queue_rule any_rule(struct world *world)
{
	static const int64_t rates[] = { 0, 1, 1, 3, 7, 1000, 100000 };
	return (struct queue_rule){ .per_minute = rates[below(world, 7)],
		                    .cap = below(world, 4) ? below(world, 30) : 0 };
}

/* A number is used again for the same job, as when it is queued again. */
static void prepare(struct world *world, struct queue_entry *entry)
{
	int64_t number = entry->number && below(world, 2) ? entry->number : ++world->last_number;
	int64_t ago = below(world, 3) ? 0 : below(world, 40 * MINUTE);
	*entry = waiting(number, below(world, world->levels) - 4, world->now_ms - ago);
	if (!below(world, 3))
		entry->urgent_ms = world->now_ms + below(world, 30 * MINUTE) - 10 * MINUTE;
}

static void check_walk(struct world *world)
{
	struct queue_cursor cursor = queue_walk(&world->queue, world->now_ms);
	const struct queue_entry *entry;
	size_t walked = 0;
	while ((entry = queue_walk_next(&cursor)))
		assert_int_equal(plain_position(world, entry), walked++);
	assert_int_equal(walked, plain_count(world));
	assert_null(queue_walk_next(&cursor));
}

static void check_pair(struct world *world, const struct queue_entry *entry)
{
	const struct queue_entry *other = &world->entries[below(world, WORLD_ENTRIES)];
	assert_int_equal(queue_effective(&world->rule, entry, world->now_ms),
	                 plain_effective(&world->rule, entry, world->now_ms));
	assert_int_equal(queue_before(&world->rule, entry, other, world->now_ms),
	                 plain_before(world, entry, other));
}

static void check_first(struct world *world)
{
	const struct queue_entry *first = queue_first(&world->queue, world->now_ms);
	assert_int_equal(first != NULL, plain_count(world) > 0);
	if (first)
		assert_int_equal(plain_position(world, first), 0);
}

static void check_pop(struct world *world)
{
	const struct queue_entry *expected = queue_first(&world->queue, world->now_ms);
	check_first(world);
	assert_ptr_equal(queue_pop(&world->queue, world->now_ms), expected);
	if (expected)
		assert_false(expected->queued);
}

static void queue_step(struct world *world)
{
	static const int64_t steps[] = { 0, 0, 1, 500, MINUTE, 10 * MINUTE };
	struct queue_entry *entry = &world->entries[below(world, WORLD_ENTRIES)];
	world->now_ms += below(world, steps[below(world, 6)] + 1);
	switch (below(world, 16)) {
	case 0:
		check_walk(world);
		break;
	case 1:
		check_pop(world);
		break;
	case 2:
		if (!below(world, 20)) {
			world->rule = any_rule(world);
			queue_rerule(&world->queue, world->rule, world->now_ms);
		}
		break;
	case 3:
	case 4:
		check_first(world);
		break;
	case 5:
	case 6:
	case 7:
		if (entry->queued)
			queue_remove(&world->queue, entry);
		break;
	case 8:
	case 9:
	case 10:
	case 11:
		if (!entry->queued) {
			prepare(world, entry);
			queue_push(&world->queue, entry, world->now_ms);
		}
		break;
	default:
		assert_int_equal(queue_position(&world->queue, entry, world->now_ms),
		                 plain_position(world, entry));
		check_pair(world, entry);
	}
	assert_int_equal(queue_count(&world->queue), plain_count(world));
	world->ageing_used |= world->queue.ageing.count > 1;
	world->heap_used |= world->queue.note_count > 1;
	world->aged_used |= world->queue.aged.count > 1;
}

static void the_order_is_that_of_the_definition_whatever_happens(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct world world = { .seed = seed, .now_ms = START };
		world.levels = seed % 2 ? 12 : 1 + (int64_t)(seed % 4) / 2;
		world.rule = any_rule(&world);
		for (int i = 0; i < WORLD_ENTRIES; i++)
			prepare(&world, &world.entries[i]);
		queue_init(&world.queue, world.rule);
		for (int i = 0; i < 20000; i++)
			queue_step(&world);
		assert_true(world.ageing_used && world.heap_used && world.aged_used);
		queue_free(&world.queue);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_leave_in_the_order_they_came),
		cmocka_unit_test(higher_priority_goes_first),
		cmocka_unit_test(waiting_makes_up_for_a_lower_priority),
		cmocka_unit_test(waiting_adds_no_more_than_the_cap_whatever_the_priority),
		cmocka_unit_test(an_urgent_job_has_all_that_waiting_can_add_from_its_time_on),
		cmocka_unit_test(without_ageing_only_priority_and_number_count),
		cmocka_unit_test(a_job_of_another_queue_has_a_position),
		cmocka_unit_test(a_job_can_be_queued_again_after_it_left),
		cmocka_unit_test(extreme_values_do_not_overflow),
		cmocka_unit_test(a_changed_rule_orders_all_anew),
		cmocka_unit_test(no_job_is_passed_by_arrivals_later_than_its_bound),
		cmocka_unit_test(jobs_that_are_higher_by_more_than_the_cap_always_go_first),
		cmocka_unit_test(
		    where_time_is_shared_who_takes_longer_goes_behind_for_so_long_and_no_longer),
		cmocka_unit_test(the_order_is_that_of_the_definition_whatever_happens),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
