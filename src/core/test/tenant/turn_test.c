/* turn_test.c - whose turn it is, against choosing among all tenants each time */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/tenant/turn.h"

#define TENANTS 24

static const struct amounts total = { .of = { 64000, 512000, INT64_C(1) << 40 } };

static struct amounts gpus(int64_t milli)
{
	return (struct amounts){ .of = { [AMOUNT_GPU] = milli } };
}

static struct tenant *turn_put(struct tenants *tenants, int64_t id, int64_t parent_id)
{
	char name[32];
	struct error error;
	(void)snprintf(name, sizeof(name), "t-%d", (int)id);
	const struct tenant_record record = {
		.id = id,
		.parent_id = parent_id,
		.name = name,
		.limit_gpu = UNLIMITED,
		.limit_cpu = UNLIMITED,
		.limit_host = UNLIMITED,
		.limit_gpu_memory = UNLIMITED,
		.limit_jobs = UNLIMITED,
		.quota_gpu = QUOTA_UNSET,
		.quota_cpu = QUOTA_UNSET,
		.quota_host = QUOTA_UNSET,
		.weight = 1000,
		.max_preemptions = UNLIMITED,
		.queue_max = UNLIMITED,
		.budget_per_month = UNLIMITED,
	};
	struct tenant *tenant = tenants_put(tenants, &record, &error);
	assert_non_null(tenant);
	tenant->fair[AMOUNT_GPU] = 8000;
	return tenant;
}

static void charge(struct tenants *tenants, struct tenant *tenant, int64_t milli)
{
	const struct amounts amounts = gpus(milli);
	tenant_charge(tenants, tenant, &amounts, true, 1);
}

static void the_tenant_with_least_goes_first_and_last_to_be_taken_from(void **state)
{
	(void)state;
	struct tenants tenants = { 0 };
	struct turn order = { 0 };
	struct tenant *rich = turn_put(&tenants, 1, 0), *poor = turn_put(&tenants, 2, 0);
	const struct amounts one = gpus(1000), less = gpus(-1000);
	charge(&tenants, rich, 6000);
	charge(&tenants, poor, 2000);

	turn_begin(&order, &total, false);
	turn_offer(&order, rich, &one);
	turn_offer(&order, poor, &one);
	assert_ptr_equal(turn_first(&order), poor);
	turn_begin(&order, &total, true);
	turn_offer(&order, rich, &less);
	turn_offer(&order, poor, &less);
	assert_ptr_equal(turn_first(&order), rich);

	turn_free(&order);
	tenants_free(&tenants);
}

static void nobody_is_next_when_nobody_offers(void **state)
{
	(void)state;
	struct tenants tenants = { 0 };
	struct turn order = { 0 };
	struct tenant *parent = turn_put(&tenants, 1, 0), *child = turn_put(&tenants, 2, 1);
	const struct amounts one = gpus(1000);

	turn_begin(&order, &total, false);
	assert_null(turn_first(&order));
	turn_offer(&order, child, NULL);
	turn_refresh(&order, parent);
	assert_null(turn_first(&order));
	turn_offer(&order, child, &one);
	turn_offer(&order, child, NULL);
	assert_null(turn_first(&order));

	turn_free(&order);
	tenants_free(&tenants);
}

static void a_tenants_own_offer_goes_before_those_of_its_children(void **state)
{
	(void)state;
	struct tenants tenants = { 0 };
	struct turn order = { 0 };
	struct tenant *parent = turn_put(&tenants, 1, 0), *child = turn_put(&tenants, 2, 1);
	const struct amounts one = gpus(1000), two = gpus(2000);

	for (int backwards = 0; backwards < 2; backwards++) {
		turn_begin(&order, &total, backwards);
		turn_offer(&order, child, &one);
		turn_offer(&order, parent, &two);
		assert_ptr_equal(turn_first(&order), parent);
		turn_offer(&order, parent, NULL);
		assert_ptr_equal(turn_first(&order), child);
	}

	turn_free(&order);
	tenants_free(&tenants);
}

static void a_parent_is_compared_by_the_offer_of_its_best_child(void **state)
{
	(void)state;
	struct tenants tenants = { 0 };
	struct turn order = { 0 };
	turn_put(&tenants, 1, 0);
	struct tenant *other = turn_put(&tenants, 2, 0);
	struct tenant *large = turn_put(&tenants, 3, 1), *small = turn_put(&tenants, 4, 1);
	const struct amounts one = gpus(1000), two = gpus(2000), three = gpus(3000);

	turn_begin(&order, &total, false);
	turn_offer(&order, other, &two);
	turn_offer(&order, large, &three);
	assert_ptr_equal(turn_first(&order), other);
	turn_offer(&order, small, &one);
	assert_ptr_equal(turn_first(&order), small);

	turn_free(&order);
	tenants_free(&tenants);
}

static void what_a_sibling_without_offers_takes_moves_its_parent(void **state)
{
	(void)state;
	struct tenants tenants = { 0 };
	struct turn order = { 0 };
	turn_put(&tenants, 1, 0);
	struct tenant *other = turn_put(&tenants, 2, 0);
	struct tenant *child = turn_put(&tenants, 3, 1), *silent = turn_put(&tenants, 4, 1);
	const struct amounts one = gpus(1000);

	turn_begin(&order, &total, false);
	turn_offer(&order, other, &one);
	turn_offer(&order, child, &one);
	assert_ptr_equal(turn_first(&order), child);
	charge(&tenants, silent, 1000);
	turn_refresh(&order, silent);
	assert_ptr_equal(turn_first(&order), other);

	turn_free(&order);
	tenants_free(&tenants);
}

/* A world in which every offer is kept beside the order. */
struct world {
	struct tenants tenants;
	struct turn order;
	struct amounts offers[2 * TENANTS + 1]; /* by id */
	bool has_offer[2 * TENANTS + 1];
	bool backwards;
	uint64_t seed;
};

/* Who is next at or below the tenant, or NULL. */
static struct tenant *next_below(const struct world *world, struct tenant *tenant);

static struct tenant *next_among(const struct world *world, struct tenant **list, size_t count)
{
	struct tenant *best = NULL, *best_next = NULL;
	for (size_t i = 0; i < count; i++) {
		struct tenant *next = next_below(world, list[i]);
		if (!next)
			continue;
		int compared = !best ? 0
		                     : fairshare_compare(list[i], &world->offers[next->r.id], best,
		                                         &world->offers[best_next->r.id], &total);
		if (!best || (world->backwards ? compared > 0 : compared < 0)) {
			best = list[i];
			best_next = next;
		}
	}
	return best_next;
}

static struct tenant *next_below(const struct world *world, struct tenant *tenant)
{
	if (world->has_offer[tenant->r.id])
		return tenant;
	return next_among(world, tenant->children, tenant->child_count);
}

static int64_t any(struct world *world, uint64_t bound)
{
	return (int64_t)random_below(&world->seed, bound);
}

static struct tenant *any_tenant(struct world *world)
{
	return world->tenants.all[any(world, world->tenants.count)];
}

static void add_tenant(struct world *world, int64_t id)
{
	bool root = world->tenants.count == 0 || any(world, 4) == 0;
	struct tenant *tenant = turn_put(&world->tenants, id, root ? 0 : any_tenant(world)->r.id);
	tenant->r.priority = any(world, 8) == 0;
	tenant->fair[AMOUNT_GPU] = any(world, 5) * 1000;
}

static void change_offer(struct world *world, struct tenant *tenant, bool offers)
{
	int64_t milli = any(world, 4) * 500;
	world->has_offer[tenant->r.id] = offers;
	world->offers[tenant->r.id] = gpus(world->backwards ? -milli : milli);
	turn_offer(&world->order, tenant, offers ? &world->offers[tenant->r.id] : NULL);
}

static void change_something(struct world *world)
{
	struct tenant *tenant = any_tenant(world);
	switch (any(world, 5)) {
	case 0:
		change_offer(world, tenant, false);
		break;
	case 1:
	case 2:
		change_offer(world, tenant, true);
		break;
	case 3:
		charge(&world->tenants, tenant, any(world, 3) * 500);
		change_offer(world, tenant, any(world, 2));
		break;
	default:
		charge(&world->tenants, tenant, any(world, 3) * 500);
		turn_refresh(&world->order, tenant);
	}
}

static void any_walk_finds_whom_a_look_at_all_tenants_finds(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct world world = { .seed = seed, .backwards = seed % 2 };
		for (int64_t id = 1; id <= TENANTS; id++)
			add_tenant(&world, id);
		turn_begin(&world.order, &total, world.backwards);
		for (int i = 0; i < 500; i++) {
			change_something(&world);
			assert_ptr_equal(
			    turn_first(&world.order),
			    next_among(&world, world.tenants.roots, world.tenants.root_count));
		}
		turn_free(&world.order);
		tenants_free(&world.tenants);
	}
}

static void tenants_may_come_and_go_between_walks(void **state)
{
	(void)state;
	struct world world = { .seed = 1 };
	int64_t last_id = 0;
	while (last_id < TENANTS)
		add_tenant(&world, ++last_id);
	turn_begin(&world.order, &total, false);
	for (size_t i = 0; i < world.tenants.count; i++)
		change_offer(&world, world.tenants.all[i], true);
	for (int64_t id = TENANTS; id > TENANTS / 2; id--) {
		struct error error;
		struct tenant *tenant = tenants_find(&world.tenants, id);
		world.has_offer[id] = false;
		if (tenant->child_count == 0)
			assert_true(tenants_delete(&world.tenants, tenant, &error));
	}
	while (last_id < 2 * TENANTS)
		add_tenant(&world, ++last_id);

	turn_begin(&world.order, &total, false);
	assert_null(turn_first(&world.order));
	for (size_t i = 0; i < world.tenants.count; i++) {
		change_offer(&world, world.tenants.all[i], i % 2);
		world.has_offer[world.tenants.all[i]->r.id] = i % 2;
	}
	assert_ptr_equal(turn_first(&world.order),
	                 next_among(&world, world.tenants.roots, world.tenants.root_count));

	turn_free(&world.order);
	tenants_free(&world.tenants);
}

static void walks_use_the_memory_of_earlier_ones_again(void **state)
{
	(void)state;
	struct world world = { .seed = 1 };
	for (int64_t id = 1; id <= TENANTS; id++)
		add_tenant(&world, id);
	for (int walk = 0; walk < 10; walk++) {
		turn_begin(&world.order, &total, false);
		for (size_t i = 0; i < world.tenants.count; i++)
			change_offer(&world, world.tenants.all[i], true);
	}
	assert_int_equal(world.order.made, TENANTS);

	turn_free(&world.order);
	tenants_free(&world.tenants);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tenant_with_least_goes_first_and_last_to_be_taken_from),
		cmocka_unit_test(nobody_is_next_when_nobody_offers),
		cmocka_unit_test(a_tenants_own_offer_goes_before_those_of_its_children),
		cmocka_unit_test(a_parent_is_compared_by_the_offer_of_its_best_child),
		cmocka_unit_test(what_a_sibling_without_offers_takes_moves_its_parent),
		cmocka_unit_test(any_walk_finds_whom_a_look_at_all_tenants_finds),
		cmocka_unit_test(tenants_may_come_and_go_between_walks),
		cmocka_unit_test(walks_use_the_memory_of_earlier_ones_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
