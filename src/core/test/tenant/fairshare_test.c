/* fairshare_test.c - what each tenant is entitled to, and who comes next */
#include "core/tenant/fairshare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GPU INT64_C(1000)
#define HOUR INT64_C(3600000)
#define NOW (INT64_C(20000) * 24 * HOUR)

/* A tenant of a test; numbers of GPUs in thousandths. What is left out is 0, and
 * a limit of 0 is none. */
struct team {
	int64_t parent, quota, weight, asks, limit, priority;
};

static const struct config_record config = { .usage_half_life_ms = HOUR };

/* The teams get the ids 1, 2, ... */
static void teams_put(struct tenants *tenants, const struct team *teams, int count)
{
	for (int i = 0; i < count; i++) {
		const struct team *team = &teams[i];
		char name[8] = { 't', (char)('0' + i / 10), (char)('0' + i % 10) };
		struct tenant_record r = {
			.id = i + 1,
			.parent_id = team->parent,
			.name = name,
			.limit_gpu = team->limit ? team->limit : UNLIMITED,
			.limit_cpu = UNLIMITED,
			.limit_host = UNLIMITED,
			.limit_gpu_memory = UNLIMITED,
			.limit_jobs = UNLIMITED,
			.quota_gpu = team->quota,
			.quota_cpu = QUOTA_UNSET,
			.quota_host = QUOTA_UNSET,
			.weight = team->weight,
			.priority = team->priority,
			.budget_per_month = UNLIMITED,
		};
		struct tenant *tenant = tenants_put(tenants, &r, NULL);
		assert_non_null(tenant);
		struct amounts asks = { .of = { [AMOUNT_GPU] = team->asks } };
		tenant_ask(tenant, &asks, 1);
	}
}

static struct amounts gpus(int64_t thousandths)
{
	return (struct amounts){ .of = { [AMOUNT_GPU] = thousandths } };
}

static int64_t fair_gpus(const struct tenants *tenants, int64_t id)
{
	return tenants_find(tenants, id)->fair[AMOUNT_GPU];
}

/* Divides `total` among the teams; each then has what `expected` says. */
static void assert_shares(int64_t total, const struct team *teams, int count,
                          const int64_t *expected)
{
	struct tenants tenants = { 0 };
	teams_put(&tenants, teams, count);
	struct amounts all = gpus(total);
	fairshare_divide(&tenants, &all, &config, NOW);
	for (int i = 0; i < count; i++)
		assert_int_equal(fair_gpus(&tenants, i + 1), expected[i]);
	tenants_free(&tenants);
}
#define SHARES(total, teams, ...)                                                                  \
	assert_shares(total, teams, (int)(sizeof(teams) / sizeof((teams)[0])),                     \
	              (const int64_t[]){ __VA_ARGS__ })

static void what_is_asked_for_within_quota_is_given_and_the_rest_by_weight(void **state)
{
	(void)state;
	const struct team teams[] = {
		{ .quota = 4 * GPU, .weight = 4000, .asks = 7 * GPU },
		{ .quota = 2 * GPU, .weight = 2000, .asks = 3 * GPU },
	};
	SHARES(8 * GPU, teams, 5 * GPU, 3 * GPU);
	const struct team three[] = {
		{ .quota = 2 * GPU, .weight = 1000, .asks = 10 * GPU },
		{ .quota = 2 * GPU, .weight = 3000, .asks = 10 * GPU },
	};
	SHARES(8 * GPU, three, 3 * GPU, 5 * GPU);
}

static void quotas_are_owed_even_beyond_what_there_is(void **state)
{
	(void)state;
	const struct team teams[] = {
		{ .quota = 6 * GPU, .weight = 1000, .asks = 8 * GPU },
		{ .quota = 5 * GPU, .weight = 1000, .asks = 5 * GPU },
	};
	SHARES(8 * GPU, teams, 6 * GPU, 5 * GPU);
}

static void an_unlimited_quota_is_what_there_is_and_one_left_out_is_nothing(void **state)
{
	(void)state;
	const struct team teams[] = {
		{ .quota = UNLIMITED, .asks = 20 * GPU },
		{ .quota = QUOTA_UNSET, .weight = 1000, .asks = 2 * GPU },
	};
	SHARES(8 * GPU, teams, 8 * GPU, 0);
	const struct team modest[] = {
		{ .quota = UNLIMITED, .asks = 3 * GPU },
		{ .quota = QUOTA_UNSET, .weight = 1000, .asks = 2 * GPU },
	};
	SHARES(8 * GPU, modest, 3 * GPU, 2 * GPU);
}

static void nobody_is_given_more_than_asked_for_or_allowed(void **state)
{
	(void)state;
	const struct team teams[] = {
		{ .quota = 2 * GPU, .weight = 1000, .asks = 10 * GPU, .limit = 3 * GPU },
		{ .quota = 4 * GPU, .weight = 1000, .asks = GPU },
		{ .weight = 1000, .asks = 2 * GPU },
	};
	SHARES(12 * GPU, teams, 3 * GPU, GPU, 2 * GPU);
}

static void what_one_does_not_need_goes_to_the_others(void **state)
{
	(void)state;
	const struct team teams[] = {
		{ .weight = 1000, .asks = GPU },
		{ .weight = 1000, .asks = 9 * GPU },
		{ .weight = 2000, .asks = 9 * GPU },
	};
	/* 3 each and 6, of which the first needs 1: 2 more for the others, by 1 to 2. */
	SHARES(12 * GPU, teams, GPU, 4 * GPU, 7 * GPU);
}

static void a_higher_priority_is_served_first_beyond_quotas(void **state)
{
	(void)state;
	const struct team teams[] = {
		{ .quota = 2 * GPU, .weight = 100000, .asks = 6 * GPU, .priority = 1 },
		{ .quota = 2 * GPU, .weight = 1000, .asks = 6 * GPU, .priority = 2 },
	};
	SHARES(4 * GPU, teams, 2 * GPU, 2 * GPU);
	SHARES(6 * GPU, teams, 2 * GPU, 4 * GPU);
	SHARES(10 * GPU, teams, 4 * GPU, 6 * GPU);
}

static void leftovers_stay_with_a_priority_that_still_wants_them(void **state)
{
	(void)state;
	const struct team teams[] = {
		{ .quota = GPU, .weight = 1000, .asks = 5 * GPU, .priority = 1 },
		{ .quota = GPU, .weight = 1000, .asks = 5 * GPU, .priority = 2 },
		{ .quota = GPU, .weight = 1000, .asks = 5 * GPU, .priority = 2 },
	};
	SHARES(6 * GPU, teams, GPU, 3 * GPU, 2 * GPU);
}

static void without_weight_there_is_nothing_beyond_the_quota(void **state)
{
	(void)state;
	const struct team teams[] = {
		{ .quota = GPU, .weight = 0, .asks = 5 * GPU },
		{ .quota = GPU, .weight = 1000, .asks = 2 * GPU },
	};
	SHARES(8 * GPU, teams, GPU, 2 * GPU);
	const struct team none[] = { { .asks = 5 * GPU }, { .asks = GPU } };
	SHARES(8 * GPU, none, 0, 0);
}

static void alone_at_its_priority_a_tenant_needs_no_weight(void **state)
{
	(void)state;
	const struct team teams[] = {
		{ .quota = GPU, .weight = 1000, .asks = 5 * GPU },
		{ .quota = GPU, .weight = 1000, .asks = 5 * GPU },
		{ .quota = GPU, .weight = 0, .asks = 2 * GPU, .priority = 101 },
	};
	SHARES(4 * GPU, teams, GPU, GPU, 2 * GPU);
	SHARES(8 * GPU, teams, 3 * GPU, 3 * GPU, 2 * GPU);
}

static void an_only_child_gets_all_of_its_parent(void **state)
{
	(void)state;
	const struct team teams[] = { { .asks = GPU }, { .parent = 1, .asks = 2 * GPU } };
	SHARES(8 * GPU, teams, 8 * GPU, 8 * GPU);
	const struct team owed[] = { { .quota = 9 * GPU, .asks = 9 * GPU } };
	SHARES(8 * GPU, owed, 9 * GPU);
}

static void shares_are_divided_down_the_tree(void **state)
{
	(void)state;
	const struct team teams[] = {
		{ .quota = 6 * GPU, .weight = 1000 },
		{ .quota = 2 * GPU, .weight = 1000 },
		{ .parent = 1, .quota = GPU, .weight = 1000, .asks = 7 * GPU },
		{ .parent = 1, .quota = GPU, .weight = 3000, .asks = 7 * GPU },
		{ .parent = 2, .weight = 1000, .asks = 8 * GPU },
		{ .parent = 5, .weight = 1000, .asks = GPU },
		{ .parent = 5, .weight = 1000, .asks = GPU },
	};
	SHARES(10 * GPU, teams, 7 * GPU, 3 * GPU, 2 * GPU, 5 * GPU, 3 * GPU, GPU, GPU);
}

static void leftovers_go_to_the_largest_remainder(void **state)
{
	(void)state;
	const struct team teams[] = {
		{ .quota = 2 * GPU, .weight = 1000, .asks = 10 * GPU },
		{ .quota = 2 * GPU, .weight = 4000, .asks = 10 * GPU },
	};
	/* 1.4 and 5.6 of the 7 that remain. */
	SHARES(11 * GPU, teams, 3 * GPU, 8 * GPU);
}

static void leftovers_go_to_the_older_of_equals(void **state)
{
	(void)state;
	const struct team teams[] = {
		{ .weight = 1000, .asks = 9 * GPU },
		{ .weight = 1000, .asks = 9 * GPU },
		{ .weight = 1000, .asks = 9 * GPU },
	};
	SHARES(5 * GPU, teams, 2 * GPU, 2 * GPU, GPU);
	SHARES(4 * GPU + 500, teams, 2 * GPU, GPU + 500, GPU);
}

static void a_leftover_is_no_more_than_is_still_wanted(void **state)
{
	(void)state;
	const struct team teams[] = {
		{ .weight = 1000, .asks = GPU + 700 },
		{ .weight = 1000, .asks = 9 * GPU },
	};
	SHARES(3 * GPU, teams, GPU + 700, GPU + 300);
}

static void a_remainder_of_an_earlier_round_still_counts(void **state)
{
	(void)state;
	const struct team teams[] = {
		{ .weight = 1000, .asks = 9 * GPU },
		{ .weight = 2000, .asks = 9 * GPU },
		{ .weight = 2000, .asks = 9 * GPU },
		{ .weight = 5000, .asks = 3500 },
	};
	/* 0.8, 1.6, 1.6 and 4 of 8; of what the last leaves, 0.5, 1 and 1 of 2.5. The
	 * half that then remains goes by 0.5, 0.6 and 0.6. */
	SHARES(8 * GPU, teams, 0, 2500, 2 * GPU, 3500);
}

static void every_fair_kind_is_divided_in_its_own_unit(void **state)
{
	(void)state;
	struct tenants tenants = { 0 };
	const struct team teams[] = { { .weight = 1000 }, { .weight = 1000 } };
	teams_put(&tenants, teams, 2);
	struct amounts asks = { .of = { 9 * GPU, 9000, 900 } };
	tenant_ask(tenants.all[0], &asks, 1);
	tenant_ask(tenants.all[1], &asks, 1);
	struct amounts total = { .of = { 3 * GPU, 5000, 7 } };
	fairshare_divide(&tenants, &total, &config, NOW);
	assert_memory_equal(tenants.all[0]->fair, ((int64_t[]){ 2 * GPU, 3000, 4 }),
	                    sizeof(int64_t[FAIR_KINDS]));
	assert_memory_equal(tenants.all[1]->fair, ((int64_t[]){ GPU, 2000, 3 }),
	                    sizeof(int64_t[FAIR_KINDS]));
	tenants_free(&tenants);
}

static void the_largest_numbers_do_not_overflow(void **state)
{
	(void)state;
	struct tenants tenants = { 0 };
	struct team teams[32];
	for (int i = 0; i < 32; i++)
		teams[i] = (struct team){ .weight = WEIGHT_MAX - i };
	teams_put(&tenants, teams, 32);
	struct amounts asks = { .of = { [AMOUNT_HOST] = INT64_C(1) << 57 } };
	for (int i = 0; i < 32; i++)
		tenant_ask(tenants.all[i], &asks, 1);
	struct amounts total = { .of = { [AMOUNT_HOST] = INT64_C(1) << 61 } };
	struct config_record extreme = config;
	extreme.usage_influence = INT64_MAX;
	fairshare_divide(&tenants, &total, &extreme, NOW);
	int64_t sum = 0;
	for (int i = 0; i < 32; i++)
		sum += tenants.all[i]->fair[AMOUNT_HOST];
	assert_int_equal(sum, total.of[AMOUNT_HOST]);
	tenants_free(&tenants);
}

static void past_use_lowers_the_share_of_a_heavy_user(void **state)
{
	(void)state;
	struct tenants tenants = { 0 };
	const struct team teams[] = {
		{ .weight = 1000, .asks = 10 * GPU },
		{ .weight = 1000, .asks = 10 * GPU },
	};
	teams_put(&tenants, teams, 2);
	struct amounts total = gpus(10 * GPU);
	struct config_record fair_config = config;
	fair_config.usage_influence = 1000;
	struct tenant *heavy = tenants.all[0];
	heavy->r.metered_ms = NOW;
	heavy->r.usage_gpu = 10 * GPU * HOUR / 1000 * 1443 / 1000; /* all of it, for ever */

	/* The weights are 0.5 + (0.5 - 1) and 0.5 + (0.5 - 0). */
	fairshare_divide(&tenants, &total, &fair_config, NOW);
	assert_int_equal(fair_gpus(&tenants, 1), 0);
	assert_int_equal(fair_gpus(&tenants, 2), 10 * GPU);
	/* A half-life later 0.5 + (0.5 - 0.5) and 0.5 + (0.5 - 0): 3.33 and 6.67. */
	fairshare_divide(&tenants, &total, &fair_config, NOW + HOUR);
	assert_int_equal(fair_gpus(&tenants, 1), 3 * GPU);
	assert_int_equal(fair_gpus(&tenants, 2), 7 * GPU);
	fairshare_divide(&tenants, &total, &fair_config, NOW + 20 * HOUR);
	assert_int_equal(fair_gpus(&tenants, 1), 5 * GPU);
	fair_config.usage_influence = 0;
	fairshare_divide(&tenants, &total, &fair_config, NOW);
	assert_int_equal(fair_gpus(&tenants, 1), 5 * GPU);
	tenants_free(&tenants);
}

static struct team random_team(uint64_t *seed, int64_t parent)
{
	int64_t quota = (int64_t)random_below(seed, 12) - 2;
	int64_t limit = (int64_t)random_below(seed, 30);
	int64_t scale = random_below(seed, 4) == 0 ? 1 + (int64_t)random_below(seed, 2000) : GPU;
	return (struct team){
		.parent = parent,
		.quota = quota == -2   ? UNLIMITED
		         : quota == -1 ? QUOTA_UNSET
		                       : quota * GPU,
		.weight = (int64_t)random_below(seed, 6) * (1 + (int64_t)random_below(seed, 1000)),
		.asks = (int64_t)random_below(seed, 20) * scale,
		.limit = limit > 12 ? 0 : limit * scale,
		.priority = (int64_t)random_below(seed, 3),
	};
}

static int64_t asked_for(const struct team *team)
{
	return team->limit ? min64(team->asks, team->limit) : team->asks;
}

/* What of its request a team is owed. */
static int64_t owed_to(const struct team *team, int64_t total)
{
	int64_t quota = team->quota == UNLIMITED ? total : max64(team->quota, 0);
	return min64(quota, asked_for(team));
}

/* Whether somebody of a higher priority, who competes by weight, wants more. */
static bool is_behind_another(const struct tenants *tenants, const struct team *teams, int count,
                              int at)
{
	for (int i = 0; i < count; i++) {
		if (teams[i].priority > teams[at].priority && teams[i].weight > 0 &&
		    fair_gpus(tenants, i + 1) < asked_for(&teams[i]))
			return true;
	}
	return false;
}

static void check_shares(const struct tenants *tenants, const struct team *teams, int count,
                         int64_t total)
{
	int64_t sum = 0, owed_sum = 0, asked_sum = 0;
	bool all_have_weight = true;
	for (int i = 0; i < count; i++) {
		int64_t fair = fair_gpus(tenants, i + 1), owed = owed_to(&teams[i], total);
		assert_true(fair >= owed && fair <= asked_for(&teams[i]));
		if (fair > owed)
			assert_false(is_behind_another(tenants, teams, count, i));
		all_have_weight = all_have_weight && teams[i].weight > 0;
		sum += fair;
		owed_sum += owed;
		asked_sum += asked_for(&teams[i]);
	}
	assert_true(sum <= max64(total, owed_sum));
	if (all_have_weight)
		assert_int_equal(sum, max64(owed_sum, min64(total, asked_sum)));
}

static void random_shares_are_owed_asked_for_and_no_more_than_there_is(void **state)
{
	(void)state;
	uint64_t seed = 11;
	for (int round = 0; round < 5000; round++) {
		struct tenants tenants = { 0 };
		struct team teams[12];
		int count = 2 + (int)random_below(&seed, 11);
		for (int i = 0; i < count; i++)
			teams[i] = random_team(&seed, 0);
		teams_put(&tenants, teams, count);
		struct amounts total = gpus((int64_t)random_below(&seed, 60) * 500);
		fairshare_divide(&tenants, &total, &config, NOW);
		check_shares(&tenants, teams, count, total.of[AMOUNT_GPU]);
		tenants_free(&tenants);
	}
}

static void shares_depend_on_nothing_but_the_input(void **state)
{
	(void)state;
	uint64_t seed = 13;
	for (int round = 0; round < 500; round++) {
		struct tenants fresh = { 0 }, used = { 0 };
		struct team teams[16], others[16];
		for (int i = 0; i < 16; i++) {
			teams[i] =
			    random_team(&seed, (int64_t)random_below(&seed, 1 + (uint64_t)i));
			others[i] = random_team(&seed, 0);
		}
		struct amounts total = gpus((int64_t)random_below(&seed, 60) * 500);
		teams_put(&fresh, teams, 16);
		fairshare_divide(&fresh, &total, &config, NOW);
		/* The order of earlier teams must not matter: these follow others that had shares.
		 */
		teams_put(&used, others, 16);
		fairshare_divide(&used, &total, &config, NOW);
		for (int i = 0; i < 16; i++)
			used.all[i]->waiting = (struct wide_amounts){ 0 };
		teams_put(&used, teams, 16);
		fairshare_divide(&used, &total, &config, NOW);
		fairshare_divide(&used, &total, &config, NOW);
		for (int i = 0; i < 16; i++)
			assert_memory_equal(fresh.all[i]->fair, used.all[i]->fair,
			                    sizeof(fresh.all[i]->fair));
		tenants_free(&fresh);
		tenants_free(&used);
	}
}

static void a_tenant_may_count_on_quota_or_fair_share_up_to_its_limit(void **state)
{
	(void)state;
	struct tenant tenant = { .r = { .limit_gpu = UNLIMITED, .quota_gpu = 3 * GPU } };
	tenant.fair[AMOUNT_GPU] = 5 * GPU;
	assert_int_equal(fairshare_allocatable(&tenant, AMOUNT_GPU), 5 * GPU);
	tenant.r.quota_gpu = 7 * GPU;
	assert_int_equal(fairshare_allocatable(&tenant, AMOUNT_GPU), 7 * GPU);
	tenant.r.limit_gpu = 4 * GPU;
	assert_int_equal(fairshare_allocatable(&tenant, AMOUNT_GPU), 4 * GPU);
	tenant.r.quota_gpu = UNLIMITED;
	assert_int_equal(fairshare_allocatable(&tenant, AMOUNT_GPU), 4 * GPU);
	tenant.r.limit_gpu = UNLIMITED;
	assert_int_equal(fairshare_allocatable(&tenant, AMOUNT_GPU), UNLIMITED);
	tenant.r.quota_gpu = QUOTA_UNSET;
	tenant.fair[AMOUNT_GPU] = 0;
	assert_int_equal(fairshare_allocatable(&tenant, AMOUNT_GPU), 0);
}

/* Two siblings with no bounds and much of everything as their share, so that a
 * test need only say what differs. */
struct pair {
	struct tenant a, b;
};

static const struct amounts all = { .of = { 100 * GPU, 100000, 100000 } };

static struct pair pair_new(void)
{
	const struct tenant tenant = {
		.r = { .id = 1,
		       .limit_gpu = UNLIMITED,
		       .limit_cpu = UNLIMITED,
		       .limit_host = UNLIMITED,
		       .quota_gpu = 5 * GPU,
		       .quota_cpu = UNLIMITED,
		       .quota_host = UNLIMITED },
		.allocated = { .of = { 6 * GPU, 10, 10 } },
		.fair = { 10 * GPU, 10, 10 },
	};
	struct pair pair = { tenant, tenant };
	pair.b.r.id = 2;
	return pair;
}

static void assert_before(const struct tenant *a, const struct amounts *a_job,
                          const struct tenant *b, const struct amounts *b_job)
{
	assert_true(fairshare_compare(a, a_job, b, b_job, &all) < 0);
	assert_true(fairshare_compare(b, b_job, a, a_job, &all) > 0);
}

static void over_means_more_than_the_share_of_everything(void **state)
{
	(void)state;
	struct pair p = pair_new();
	p.a.allocated = (struct amounts){ .of = { 11 * GPU, 11, 10 } };
	assert_false(fairshare_over(&p.a));
	p.a.allocated.of[AMOUNT_HOST] = 11;
	assert_true(fairshare_over(&p.a));
}

static void any_kind_can_be_over_what_may_be_counted_on(void **state)
{
	(void)state;
	struct pair p = pair_new();
	p.a.r.quota_cpu = 0;
	struct amounts less = { .of = { 1, 1, 0 } };
	assert_false(fairshare_over_allocatable(&p.a, NULL));
	p.a.allocated.of[AMOUNT_CPU] = 11;
	assert_true(fairshare_over_allocatable(&p.a, NULL));
	assert_false(fairshare_over_allocatable(&p.a, &less));
	p.a.r.quota_cpu = UNLIMITED;
	assert_false(fairshare_over_allocatable(&p.a, NULL));
}

static void quotas_left_out_count_as_nothing(void **state)
{
	(void)state;
	struct pair p = pair_new();
	struct amounts one = gpus(GPU);
	assert_true(fairshare_over_quota(&p.a, NULL));
	assert_false(fairshare_over_quota(&p.a, &one));
	assert_true(fairshare_within_quota(&p.a, &one, NULL));
	assert_false(fairshare_within_quota(&p.a, &one, &one));
	p.a.r.quota_gpu = QUOTA_UNSET;
	assert_true(fairshare_over_quota(&p.a, &one));
	p.a.r.quota_gpu = UNLIMITED;
	assert_true(fairshare_within_quota(&p.a, NULL, &one));
}

static void within_the_share_is_within_it_in_every_kind(void **state)
{
	(void)state;
	struct pair p = pair_new();
	struct amounts four = gpus(4 * GPU), five = gpus(5 * GPU), one = gpus(GPU);
	struct amounts core = { .of = { [AMOUNT_CPU] = 1 } };
	assert_true(fairshare_within(&p.a, NULL, &four));
	assert_false(fairshare_within(&p.a, NULL, &five));
	assert_true(fairshare_within(&p.a, &one, &five));
	assert_false(fairshare_within(&p.a, NULL, &core));
}

static void who_is_over_in_everything_comes_last(void **state)
{
	(void)state;
	struct pair p = pair_new();
	p.a.allocated = (struct amounts){ .of = { 11 * GPU, 11, 11 } };
	p.a.r.priority = 9;
	assert_before(&p.b, NULL, &p.a, NULL);
}

static void who_stays_within_quota_with_its_job_comes_first(void **state)
{
	(void)state;
	struct pair p = pair_new();
	p.b.allocated.of[AMOUNT_GPU] = 4 * GPU;
	p.a.r.priority = 9;
	struct amounts one = gpus(GPU), two = gpus(2 * GPU);
	assert_before(&p.b, &one, &p.a, &one);
	assert_before(&p.a, &one, &p.b, &two);
}

static void the_higher_priority_comes_first(void **state)
{
	(void)state;
	struct pair p = pair_new();
	p.b.r.priority = 1;
	p.b.allocated.of[AMOUNT_GPU] = 9 * GPU;
	assert_before(&p.b, NULL, &p.a, NULL);
}

static void who_would_use_what_it_has_no_share_of_comes_after(void **state)
{
	(void)state;
	struct pair p = pair_new();
	struct amounts core = { .of = { [AMOUNT_CPU] = 1 } };
	p.a.r.quota_cpu = QUOTA_UNSET;
	p.a.fair[AMOUNT_CPU] = 0;
	p.a.allocated = gpus(6 * GPU);
	p.b.allocated = gpus(9 * GPU);
	assert_before(&p.a, NULL, &p.b, &core);
	assert_before(&p.b, &core, &p.a, &core);
}

static void the_smaller_dominant_share_with_the_job_comes_first(void **state)
{
	(void)state;
	struct pair p = pair_new();
	struct amounts one = gpus(GPU), three = gpus(3 * GPU);
	assert_before(&p.b, &one, &p.a, &three);
	/* 8 of 10 GPUs, and 90% of the cores, of which the quota is all there are. */
	p.b.allocated.of[AMOUNT_CPU] = 90000;
	assert_before(&p.a, &one, &p.b, &one);
}

static void a_use_without_any_share_weighs_a_thousandfold(void **state)
{
	(void)state;
	struct pair p = pair_new();
	p.a.r.quota_cpu = p.b.r.quota_cpu = 0;
	p.a.fair[AMOUNT_CPU] = p.b.fair[AMOUNT_CPU] = 0;
	p.a.allocated.of[AMOUNT_CPU] = 2000;
	p.b.allocated.of[AMOUNT_CPU] = 1000;
	p.b.allocated.of[AMOUNT_GPU] = 9 * GPU;
	assert_before(&p.b, NULL, &p.a, NULL);
	p.a.allocated.of[AMOUNT_CPU] = INT64_MAX / 2;
	assert_before(&p.b, NULL, &p.a, NULL);
}

static void a_kind_that_does_not_exist_does_not_count(void **state)
{
	(void)state;
	struct pair p = pair_new();
	struct amounts total = all;
	total.of[AMOUNT_CPU] = 0;
	p.a.allocated.of[AMOUNT_CPU] = 5000;
	p.b.allocated.of[AMOUNT_GPU] += 1;
	assert_true(fairshare_compare(&p.a, NULL, &p.b, NULL, &total) < 0);
}

static void the_smaller_dominant_share_without_the_job_breaks_ties(void **state)
{
	(void)state;
	struct pair p = pair_new();
	p.b.allocated.of[AMOUNT_GPU] = 5500;
	p.b.r.quota_gpu = p.a.r.quota_gpu = 0;
	struct amounts one = gpus(GPU), more = gpus(1500);
	assert_before(&p.b, &more, &p.a, &one);
}

static void who_may_count_on_less_comes_first(void **state)
{
	(void)state;
	struct pair p = pair_new();
	p.a.allocated = p.b.allocated = gpus(6 * GPU);
	p.b.r.quota_cpu = 0;
	assert_before(&p.b, NULL, &p.a, NULL);
	/* Less of one kind and more of another decides nothing. */
	p.b.r.limit_host = 0;
	p.b.r.quota_host = UNLIMITED;
	p.a.r.limit_cpu = 5;
	assert_before(&p.a, NULL, &p.b, NULL);
}

static void the_older_comes_first_among_equals(void **state)
{
	(void)state;
	struct pair p = pair_new();
	struct amounts one = gpus(GPU);
	assert_before(&p.a, &one, &p.b, &one);
	assert_int_equal(fairshare_compare(&p.a, &one, &p.a, &one, &all), 0);
}

static void what_would_be_taken_counts_for_the_dominant_share_alone(void **state)
{
	(void)state;
	struct pair p = pair_new();
	struct amounts taken = gpus(-2 * GPU);
	/* Without two GPUs the first would be within quota, which does not put it
	 * before a higher priority. */
	p.b.r.priority = 1;
	assert_before(&p.b, NULL, &p.a, &taken);
	p.b.r.priority = 0;
	p.b.allocated.of[AMOUNT_GPU] = 5500;
	assert_before(&p.a, &taken, &p.b, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_asked_for_within_quota_is_given_and_the_rest_by_weight),
		cmocka_unit_test(quotas_are_owed_even_beyond_what_there_is),
		cmocka_unit_test(an_unlimited_quota_is_what_there_is_and_one_left_out_is_nothing),
		cmocka_unit_test(nobody_is_given_more_than_asked_for_or_allowed),
		cmocka_unit_test(what_one_does_not_need_goes_to_the_others),
		cmocka_unit_test(a_higher_priority_is_served_first_beyond_quotas),
		cmocka_unit_test(leftovers_stay_with_a_priority_that_still_wants_them),
		cmocka_unit_test(without_weight_there_is_nothing_beyond_the_quota),
		cmocka_unit_test(alone_at_its_priority_a_tenant_needs_no_weight),
		cmocka_unit_test(an_only_child_gets_all_of_its_parent),
		cmocka_unit_test(shares_are_divided_down_the_tree),
		cmocka_unit_test(leftovers_go_to_the_largest_remainder),
		cmocka_unit_test(leftovers_go_to_the_older_of_equals),
		cmocka_unit_test(a_leftover_is_no_more_than_is_still_wanted),
		cmocka_unit_test(a_remainder_of_an_earlier_round_still_counts),
		cmocka_unit_test(every_fair_kind_is_divided_in_its_own_unit),
		cmocka_unit_test(the_largest_numbers_do_not_overflow),
		cmocka_unit_test(past_use_lowers_the_share_of_a_heavy_user),
		cmocka_unit_test(random_shares_are_owed_asked_for_and_no_more_than_there_is),
		cmocka_unit_test(shares_depend_on_nothing_but_the_input),
		cmocka_unit_test(a_tenant_may_count_on_quota_or_fair_share_up_to_its_limit),
		cmocka_unit_test(over_means_more_than_the_share_of_everything),
		cmocka_unit_test(any_kind_can_be_over_what_may_be_counted_on),
		cmocka_unit_test(quotas_left_out_count_as_nothing),
		cmocka_unit_test(within_the_share_is_within_it_in_every_kind),
		cmocka_unit_test(who_is_over_in_everything_comes_last),
		cmocka_unit_test(who_stays_within_quota_with_its_job_comes_first),
		cmocka_unit_test(the_higher_priority_comes_first),
		cmocka_unit_test(who_would_use_what_it_has_no_share_of_comes_after),
		cmocka_unit_test(the_smaller_dominant_share_with_the_job_comes_first),
		cmocka_unit_test(a_use_without_any_share_weighs_a_thousandfold),
		cmocka_unit_test(a_kind_that_does_not_exist_does_not_count),
		cmocka_unit_test(the_smaller_dominant_share_without_the_job_breaks_ties),
		cmocka_unit_test(who_may_count_on_less_comes_first),
		cmocka_unit_test(the_older_comes_first_among_equals),
		cmocka_unit_test(what_would_be_taken_counts_for_the_dominant_share_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
