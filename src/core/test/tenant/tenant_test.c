/* tenant_test.c - the tree of tenants, its bounds and its meters */
#include "core/tenant/tenant.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GPU INT64_C(1000)
#define MIB (INT64_C(1) << 20)
#define SECOND INT64_C(1000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)
#define MONEY INT64_C(1000000)
#define JANUARY_31 INT64_C(1738281600000) /* 2025-01-31 00:00 UTC */
#define FEBRUARY_1 (JANUARY_31 + DAY)

static const struct config_record config = { .usage_half_life_ms = HOUR };

static struct tenant_record record(int64_t id, int64_t parent_id, const char *name)
{
	return (struct tenant_record){
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
}

static struct tenant *tenant_write(struct tenants *tenants, struct tenant_record r)
{
	struct error error = { 0 };
	struct tenant *tenant = tenants_put(tenants, &r, &error);
	assert_string_equal(error.text, "");
	assert_non_null(tenant);
	return tenant;
}

/* A university with a faculty, which has two labs; and a company. */
struct world {
	struct tenants tenants;
	struct tenant *university, *faculty, *lab, *other_lab, *company;
};

static struct world world_new(void)
{
	struct world w = { 0 };
	w.university = tenant_write(&w.tenants, record(1, 0, "university"));
	w.faculty = tenant_write(&w.tenants, record(2, 1, "faculty"));
	w.lab = tenant_write(&w.tenants, record(3, 2, "lab"));
	w.other_lab = tenant_write(&w.tenants, record(4, 2, "other lab"));
	w.company = tenant_write(&w.tenants, record(5, 0, "company"));
	return w;
}

static void world_free(struct world *w)
{
	tenants_check(&w->tenants);
	tenants_free(&w->tenants);
}

static struct amounts gpus(int64_t thousandths)
{
	return (struct amounts){ .of = { [AMOUNT_GPU] = thousandths, [AMOUNT_JOBS] = 1 } };
}

static void tenant_hold(struct world *w, struct tenant *tenant, int64_t thousandths)
{
	struct amounts amounts = gpus(llabs(thousandths));
	tenant_charge(&w->tenants, tenant, &amounts, true, thousandths < 0 ? -1 : 1);
}

static void count_changed(void *context, struct tenant *tenant)
{
	int64_t *log = context;
	log[++log[0]] = tenant->r.id;
}

/* Settles, and forgets who changed. */
static void tenant_resolve(struct world *w, int64_t now_ms)
{
	int64_t log[16] = { 0 };
	tenants_settle(&w->tenants, now_ms, &config, count_changed, log);
}

static void tenant_assert_refused(struct tenants *tenants, struct tenant_record r,
                                  enum error_code code, const char *text)
{
	size_t count = tenants->count;
	struct error error = { 0 };
	assert_null(tenants_put(tenants, &r, &error));
	assert_int_equal(error.code, code);
	assert_string_equal(error.text, text);
	assert_int_equal(tenants->count, count);
	tenants_check(tenants);
}

static void assert_bound(const struct bound *bound, const char *text)
{
	struct buffer buffer = { 0 };
	bound_print(&buffer, bound);
	assert_string_equal(buffer.data, text);
	buffer_free(&buffer);
}

static void a_tenant_is_found_by_its_id_below_its_parent(void **state)
{
	(void)state;
	struct world w = world_new();
	assert_ptr_equal(tenants_find(&w.tenants, 3), w.lab);
	assert_null(tenants_find(&w.tenants, 9));
	assert_ptr_equal(w.lab->parent, w.faculty);
	assert_int_equal(w.faculty->child_count, 2);
	assert_int_equal(w.tenants.root_count, 2);
	world_free(&w);
}

static void a_tenant_needs_a_name_of_its_own(void **state)
{
	(void)state;
	struct world w = world_new();
	tenant_assert_refused(&w.tenants, record(9, 0, ""), ERROR_INVALID, "name is empty");
	tenant_assert_refused(&w.tenants, record(9, 0, NULL), ERROR_INVALID, "name is empty");
	tenant_assert_refused(&w.tenants, record(9, 0, "lab"), ERROR_CONFLICT,
	                      "there is a tenant with the name lab already");
	tenant_assert_refused(&w.tenants, record(4, 2, "lab"), ERROR_CONFLICT,
	                      "there is a tenant with the name lab already");
	assert_string_equal(w.other_lab->r.name, "other lab");
	world_free(&w);
}

static void a_parent_must_exist(void **state)
{
	(void)state;
	struct world w = world_new();
	tenant_assert_refused(&w.tenants, record(9, 8, "new"), ERROR_NOT_FOUND,
	                      "tenant new: there is no parent tenant 8");
	tenant_assert_refused(&w.tenants, record(9, 9, "new"), ERROR_NOT_FOUND,
	                      "tenant new: there is no parent tenant 9");
	tenant_assert_refused(&w.tenants, record(0, 0, "new"), ERROR_INVALID,
	                      "id is 0, and must be positive");
	world_free(&w);
}

static void a_tenant_is_never_below_itself(void **state)
{
	(void)state;
	struct world w = world_new();
	tenant_assert_refused(&w.tenants, record(2, 2, "faculty"), ERROR_INVALID,
	                      "tenant faculty cannot be below tenant faculty, which is itself");
	tenant_assert_refused(&w.tenants, record(1, 3, "university"), ERROR_INVALID,
	                      "tenant university cannot be below tenant lab, which is below it");
	assert_null(w.university->parent);
	world_free(&w);
}

static void negative_limits_quotas_and_weights_are_refused(void **state)
{
	(void)state;
	struct world w = world_new();
	struct tenant_record r = record(9, 0, "new");
	r.limit_cpu = -1;
	tenant_assert_refused(&w.tenants, r, ERROR_INVALID,
	                      "limit_cpu is -1, and must not be negative");
	r = record(9, 0, "new");
	r.quota_gpu = -2;
	tenant_assert_refused(&w.tenants, r, ERROR_INVALID,
	                      "quota_gpu is -2, and must not be negative");
	r = record(9, 0, "new");
	r.weight = -1;
	tenant_assert_refused(&w.tenants, r, ERROR_INVALID,
	                      "weight is -1, and must not be negative");
	r.weight = WEIGHT_MAX + 1;
	tenant_assert_refused(
	    &w.tenants, r, ERROR_INVALID,
	    "weight is 1000000001 thousandths, and may be 1000000000 at the most");
	world_free(&w);
}

static void putting_a_known_tenant_again_keeps_its_meters(void **state)
{
	(void)state;
	struct world w = world_new();
	w.lab->r.cost = 7;
	w.lab->r.jobs_completed = 3;
	struct tenant_record r = record(3, 2, "laboratory");
	r.cost = 99;
	r.limit_gpu = 8 * GPU;
	assert_ptr_equal(tenant_write(&w.tenants, r), w.lab);
	assert_string_equal(w.lab->r.name, "laboratory");
	assert_int_equal(w.lab->r.limit_gpu, 8 * GPU);
	assert_int_equal(w.lab->r.cost, 7);
	assert_int_equal(w.lab->r.jobs_completed, 3);
	tenant_write(&w.tenants, record(9, 0, "lab"));
	world_free(&w);
}

static void a_new_tenant_starts_with_empty_meters(void **state)
{
	(void)state;
	struct world w = world_new();
	struct tenant_record r = record(9, 0, "new");
	r.cost = 99;
	r.usage_gpu = 99;
	const struct tenant *tenant = tenant_write(&w.tenants, r);
	assert_int_equal(tenant->r.cost, 0);
	assert_int_equal(tenant->r.usage_gpu, 0);
	world_free(&w);
}

static void a_tenant_takes_what_it_holds_to_its_new_parent(void **state)
{
	(void)state;
	struct world w = world_new();
	struct amounts four = gpus(4 * GPU), one = gpus(GPU);
	tenant_charge(&w.tenants, w.lab, &four, false, 1);
	tenant_charge(&w.tenants, w.other_lab, &one, true, 1);
	tenant_ask(w.lab, &one, 1);
	tenant_write(&w.tenants, record(3, 5, "lab"));
	tenants_check(&w.tenants);
	assert_ptr_equal(w.lab->parent, w.company);
	assert_int_equal(w.company->allocated.of[AMOUNT_GPU], 4 * GPU);
	assert_int_equal(w.company->fixed.of[AMOUNT_GPU], 4 * GPU);
	assert_int_equal(w.company->waiting.of[AMOUNT_GPU], GPU);
	assert_int_equal(w.university->allocated.of[AMOUNT_GPU], GPU);
	assert_int_equal(w.university->fixed.of[AMOUNT_GPU], 0);
	assert_int_equal(w.university->waiting.of[AMOUNT_GPU], 0);
	world_free(&w);
}

static void what_is_charged_and_returned_leaves_nothing_anywhere(void **state)
{
	(void)state;
	struct world w = world_new();
	struct amounts amounts = { .of = { 1500, 4000, 3 * MIB, 200, 1 } };
	tenant_charge(&w.tenants, w.lab, &amounts, false, 1);
	tenant_ask(w.lab, &amounts, 1);
	assert_memory_equal(&w.university->fixed, &amounts, sizeof(amounts));
	for (int k = 0; k < AMOUNT_KINDS; k++)
		assert_int_equal(w.university->waiting.of[k], amounts.of[k]);
	tenants_check(&w.tenants);
	tenant_ask(w.lab, &amounts, -1);
	tenant_charge(&w.tenants, w.lab, &amounts, false, -1);
	static const struct amounts nothing;
	for (size_t i = 0; i < w.tenants.count; i++) {
		const struct tenant *tenant = w.tenants.all[i];
		assert_memory_equal(&tenant->allocated, &nothing, sizeof(nothing));
		assert_memory_equal(&tenant->fixed, &nothing, sizeof(nothing));
		for (int k = 0; k < AMOUNT_KINDS; k++)
			assert_int_equal(tenant->waiting.of[k], 0);
	}
	world_free(&w);
}

static void a_tenant_in_use_is_not_deleted(void **state)
{
	(void)state;
	struct world w = world_new();
	struct error error = { 0 };
	assert_false(tenants_delete(&w.tenants, w.faculty, &error));
	assert_string_equal(error.text, "tenant faculty has tenants below it, such as lab");
	struct amounts one = gpus(GPU);
	tenant_ask(w.lab, &one, 1);
	assert_false(tenants_delete(&w.tenants, w.lab, &error));
	assert_string_equal(error.text, "tenant lab has waiting jobs");
	tenant_ask(w.lab, &one, -1);
	tenant_hold(&w, w.lab, GPU);
	assert_false(tenants_delete(&w.tenants, w.lab, &error));
	assert_string_equal(error.text, "tenant lab has running jobs");
	assert_int_equal(error.code, ERROR_CONFLICT);
	world_free(&w);
}

static void a_deleted_tenant_leaves_its_name_and_nothing_to_settle(void **state)
{
	(void)state;
	struct world w = world_new();
	tenant_hold(&w, w.lab, GPU);
	tenant_hold(&w, w.lab, -GPU);
	assert_true(tenants_delete(&w.tenants, w.lab, NULL));
	tenants_check(&w.tenants);
	tenant_resolve(&w, DAY);
	assert_null(tenants_find(&w.tenants, 3));
	tenant_write(&w.tenants, record(9, 0, "lab"));
	world_free(&w);
}

static void limits_bind_at_every_ancestor(void **state)
{
	(void)state;
	struct world w = world_new();
	w.university->r.limit_gpu = 4 * GPU;
	tenant_hold(&w, w.other_lab, 2 * GPU);
	struct amounts two = gpus(2 * GPU), three = gpus(2500);
	struct bound bound;
	assert_true(tenant_may_hold(w.lab, &two, true, 0, &bound));
	assert_null(bound.tenant);
	assert_false(tenant_may_hold(w.lab, &three, true, 0, &bound));
	assert_ptr_equal(bound.tenant, w.university);
	assert_bound(&bound, "quota exceeded for tenant university: GPUs requested=2.5, quota=4, "
	                     "current=2");
	assert_true(tenant_may_hold(w.company, &three, true, 0, &bound));
	world_free(&w);
}

static void every_kind_of_amount_is_limited(void **state)
{
	(void)state;
	static const char *const texts[AMOUNT_KINDS] = {
		"quota exceeded for tenant lab: GPUs requested=0.004, quota=0.003, current=0.001",
		"quota exceeded for tenant lab: CPU cores requested=0.004, quota=0.003, "
		"current=0.001",
		"quota exceeded for tenant lab: host memory MiB requested=0.001, quota=0, "
		"current=0",
		"quota exceeded for tenant lab: GPU memory MiB requested=4, quota=3, current=1",
		"quota exceeded for tenant lab: running jobs requested=4, quota=3, current=1",
	};
	for (int k = 0; k < AMOUNT_KINDS; k++) {
		struct world w = world_new();
		struct tenant_record *r = &w.lab->r;
		int64_t *limits[] = { &r->limit_gpu, &r->limit_cpu, &r->limit_host,
			              &r->limit_gpu_memory, &r->limit_jobs };
		*limits[k] = 3;
		struct amounts one = { 0 }, two = { 0 }, four = { 0 };
		one.of[k] = 1;
		two.of[k] = 2;
		four.of[k] = 4;
		tenant_charge(&w.tenants, w.lab, &one, true, 1);
		struct bound bound;
		assert_true(tenant_may_hold(w.lab, &two, true, 0, &bound));
		assert_false(tenant_may_hold(w.lab, &four, true, 0, &bound));
		assert_bound(&bound, texts[k]);
		world_free(&w);
	}
}

static void what_is_over_its_limit_refuses_only_more_of_that(void **state)
{
	(void)state;
	struct world w = world_new();
	tenant_hold(&w, w.lab, 4 * GPU);
	w.lab->r.limit_gpu = 2 * GPU;
	struct amounts cores = { .of = { [AMOUNT_CPU] = 8000, [AMOUNT_JOBS] = 1 } };
	struct amounts part = gpus(1);
	struct bound bound;
	assert_true(tenant_may_hold(w.lab, &cores, true, 0, &bound));
	assert_false(tenant_may_hold(w.lab, &part, true, 0, &bound));
	world_free(&w);
}

static void jobs_that_may_not_be_preempted_are_bound_by_quotas(void **state)
{
	(void)state;
	struct world w = world_new();
	w.faculty->r.quota_gpu = 3 * GPU;
	w.lab->r.quota_gpu = UNLIMITED;
	tenant_hold(&w, w.other_lab, 3 * GPU);
	struct amounts three = gpus(3 * GPU), four = gpus(4 * GPU);
	struct bound bound;
	assert_true(tenant_may_hold(w.lab, &four, true, 0, &bound));
	assert_true(tenant_may_hold(w.lab, &three, false, 0, &bound));
	assert_false(tenant_may_hold(w.lab, &four, false, 0, &bound));
	assert_bound(&bound, "tenant faculty: jobs that may not be preempted are bound by the "
	                     "quota: GPUs requested=4, quota=3, current=0");
	tenant_charge(&w.tenants, w.lab, &three, false, 1);
	assert_false(tenant_may_hold(w.other_lab, &three, false, 0, &bound));
	assert_int_equal(bound.has, 3 * GPU);
	world_free(&w);
}

static void a_quota_of_nothing_binds_and_a_quota_left_out_does_not(void **state)
{
	(void)state;
	struct world w = world_new();
	struct amounts one = gpus(GPU);
	struct bound bound;
	assert_true(tenant_may_hold(w.lab, &one, false, 0, &bound));
	w.lab->r.quota_gpu = 0;
	assert_false(tenant_may_hold(w.lab, &one, false, 0, &bound));
	assert_int_equal(bound.of, BOUND_QUOTA);
	world_free(&w);
}

static void limits_are_named_before_quotas_and_quotas_before_budgets(void **state)
{
	(void)state;
	struct world w = world_new();
	w.university->r.limit_gpu = 1 * GPU;
	w.lab->r.quota_gpu = 2 * GPU;
	w.lab->r.budget_per_month = 0;
	struct amounts three = gpus(3 * GPU);
	struct bound bound;
	assert_false(tenant_may_hold(w.lab, &three, false, 0, &bound));
	assert_int_equal(bound.of, BOUND_LIMIT);
	w.university->r.limit_gpu = UNLIMITED;
	assert_false(tenant_may_hold(w.lab, &three, false, 0, &bound));
	assert_int_equal(bound.of, BOUND_QUOTA);
	assert_false(tenant_may_hold(w.lab, &three, true, 0, &bound));
	assert_int_equal(bound.of, BOUND_BUDGET);
	world_free(&w);
}

static void what_runs_now_does_not_make_a_job_impossible(void **state)
{
	(void)state;
	struct world w = world_new();
	w.lab->r.limit_gpu = 4 * GPU;
	w.lab->r.budget_per_month = 0;
	tenant_hold(&w, w.lab, 2 * GPU);
	struct amounts four = gpus(4 * GPU), eight = gpus(8 * GPU);
	struct bound bound;
	assert_true(tenant_could_ever_hold(w.lab, &four, true, &bound));
	assert_false(tenant_could_ever_hold(w.lab, &eight, true, &bound));
	assert_bound(&bound, "quota exceeded for tenant lab: GPUs requested=8, quota=4, current=2");
	w.lab->r.quota_gpu = 3 * GPU;
	assert_false(tenant_could_ever_hold(w.lab, &four, false, &bound));
	assert_int_equal(bound.of, BOUND_QUOTA);
	world_free(&w);
}

static void months_are_those_of_the_calendar(void **state)
{
	(void)state;
	assert_int_equal(month_of(0), 1970 * 12);
	assert_int_equal(month_of(31 * DAY - 1), 1970 * 12);
	assert_int_equal(month_of(31 * DAY), 1970 * 12 + 1);
	assert_int_equal(month_of(FEBRUARY_1 - 1), 2025 * 12);
	assert_int_equal(month_of(FEBRUARY_1), 2025 * 12 + 1);
	assert_int_equal(month_of(INT64_C(951782400000)), 2000 * 12 + 1);  /* 2000-02-29 */
	assert_int_equal(month_of(INT64_C(951868800000)), 2000 * 12 + 2);  /* 2000-03-01 */
	assert_int_equal(month_of(INT64_C(1709251199999)), 2024 * 12 + 1); /* 2024-02-29, its end */
	assert_int_equal(month_of(INT64_C(4102444799999)), 2099 * 12 + 11);
	assert_int_equal(month_of(INT64_C(4107542400000)), 2100 * 12 + 2); /* no 29 February */
	int64_t month = month_of(0);
	for (int64_t day = 0; day < 366 * 200; day++) {
		int64_t next = month_of(day * DAY);
		assert_true(next == month || next == month + 1);
		month = next;
	}
}

static void what_is_held_is_metered_and_paid_at_every_ancestor(void **state)
{
	(void)state;
	struct world w = world_new();
	w.lab->r.cost_per_gpu_hour = 3 * MONEY;
	w.university->r.cost_per_gpu_hour = 2 * MONEY;
	int64_t log[16] = { 0 };
	tenant_hold(&w, w.lab, 2 * GPU);
	tenants_settle(&w.tenants, JANUARY_31, &config, count_changed, log);
	assert_int_equal(log[0], 3);
	assert_int_equal(log[1], 1);
	assert_int_equal(log[2], 2);
	assert_int_equal(log[3], 3);
	assert_int_equal(tenant_cost(w.lab, JANUARY_31 + HOUR / 2), 3 * MONEY);
	assert_int_equal(w.lab->r.cost, 0);
	tenant_hold(&w, w.lab, -2 * GPU);
	tenant_resolve(&w, JANUARY_31 + HOUR);
	assert_int_equal(w.lab->r.cost, 6 * MONEY);
	assert_int_equal(w.lab->r.gpu_ms, 2 * GPU * HOUR);
	assert_int_equal(w.university->r.cost, 4 * MONEY);
	assert_int_equal(tenant_cost(w.lab, FEBRUARY_1), 6 * MONEY);
	assert_int_equal(tenant_gpu_ms(w.lab, FEBRUARY_1), 2 * GPU * HOUR);
	world_free(&w);
}

static void holding_the_same_again_changes_no_meter(void **state)
{
	(void)state;
	struct world w = world_new();
	tenant_hold(&w, w.lab, GPU);
	tenant_resolve(&w, JANUARY_31);
	tenant_hold(&w, w.lab, -GPU);
	tenant_hold(&w, w.lab, GPU);
	assert_int_equal(w.tenants.unsettled_count, 3);
	int64_t log[16] = { 0 };
	tenants_settle(&w.tenants, JANUARY_31 + HOUR, &config, count_changed, log);
	assert_int_equal(log[0], 0);
	assert_int_equal(w.tenants.unsettled_count, 0);
	assert_int_equal(w.lab->r.metered_ms, JANUARY_31);
	world_free(&w);
}

static void a_month_that_begins_starts_a_new_bill(void **state)
{
	(void)state;
	struct world w = world_new();
	w.lab->r.cost_per_gpu_hour = 1 * MONEY;
	tenant_hold(&w, w.lab, GPU);
	tenant_resolve(&w, FEBRUARY_1 - 10 * HOUR);
	assert_int_equal(tenant_month_cost(w.lab, FEBRUARY_1 - 1), 10 * MONEY - 1);
	assert_int_equal(tenant_month_cost(w.lab, FEBRUARY_1), 0);
	assert_int_equal(tenant_month_cost(w.lab, FEBRUARY_1 + 3 * HOUR), 3 * MONEY);
	tenant_hold(&w, w.lab, GPU);
	tenant_resolve(&w, FEBRUARY_1 + 3 * HOUR);
	assert_int_equal(w.lab->r.month, month_of(FEBRUARY_1));
	assert_int_equal(w.lab->r.month_cost, 3 * MONEY);
	assert_int_equal(w.lab->r.cost, 13 * MONEY);
	assert_int_equal(tenant_month_cost(w.lab, FEBRUARY_1 + 4 * HOUR), 5 * MONEY);
	world_free(&w);
}

static void a_spent_budget_refuses_gpus_until_the_month_ends(void **state)
{
	(void)state;
	struct world w = world_new();
	w.faculty->r.cost_per_gpu_hour = 12050 * (MONEY / 1000);
	w.faculty->r.budget_per_month = 100 * MONEY;
	tenant_hold(&w, w.lab, GPU);
	tenant_resolve(&w, JANUARY_31);
	tenant_hold(&w, w.lab, -GPU);
	tenant_resolve(&w, JANUARY_31 + 10 * HOUR);
	struct amounts one = gpus(1), cores = { .of = { [AMOUNT_CPU] = 1000 } };
	struct bound bound;
	assert_true(tenant_may_hold(w.lab, &cores, true, FEBRUARY_1 - 1, &bound));
	assert_false(tenant_may_hold(w.lab, &one, true, FEBRUARY_1 - 1, &bound));
	assert_bound(&bound,
	             "tenant faculty has spent its budget for this month: 120.50 of 100.00");
	assert_true(tenant_may_hold(w.lab, &one, true, FEBRUARY_1, &bound));
	world_free(&w);
}

static void a_new_price_counts_from_when_it_is_set(void **state)
{
	(void)state;
	struct world w = world_new();
	tenant_hold(&w, w.lab, GPU);
	tenant_resolve(&w, JANUARY_31);
	struct tenant_record r = w.lab->r;
	r.cost_per_gpu_hour = 5 * MONEY;
	tenant_settle_now(&w.tenants, w.lab, JANUARY_31 + HOUR, &config);
	tenant_write(&w.tenants, r);
	assert_int_equal(w.lab->r.metered_ms, JANUARY_31 + HOUR);
	assert_int_equal(tenant_cost(w.lab, JANUARY_31 + 3 * HOUR), 10 * MONEY);
	world_free(&w);
}

static void past_use_halves_with_every_half_life(void **state)
{
	(void)state;
	struct world w = world_new();
	w.lab->r.usage_gpu = 4096;
	w.lab->r.metered_ms = JANUARY_31;
	assert_int_equal(tenant_usage(w.lab, AMOUNT_GPU, JANUARY_31, HOUR), 4096);
	assert_int_equal(tenant_usage(w.lab, AMOUNT_GPU, JANUARY_31 + HOUR, HOUR), 2048);
	assert_int_equal(tenant_usage(w.lab, AMOUNT_GPU, JANUARY_31 + 12 * HOUR, HOUR), 1);
	assert_int_equal(tenant_usage(w.lab, AMOUNT_GPU, JANUARY_31 - HOUR, HOUR), 4096);
	assert_int_equal(tenant_usage(w.lab, AMOUNT_GPU, JANUARY_31 + HOUR, 0), 0);
	world_free(&w);
}

static void use_nears_what_is_held_and_settling_changes_it_little(void **state)
{
	(void)state;
	struct world w = world_new();
	struct amounts half = { .of = { 4 * GPU, 16000, INT64_C(1) << 54, 0, 1 } };
	int64_t total[FAIR_KINDS] = { 8 * GPU, 32000, INT64_C(1) << 55 };
	tenant_charge(&w.tenants, w.lab, &half, true, 1);
	tenant_resolve(&w, JANUARY_31);
	for (enum amount_kind k = 0; k < FAIR_KINDS; k++) {
		int64_t half_life_on =
		    tenant_usage_share(w.lab, k, JANUARY_31 + HOUR, HOUR, total[k]);
		int64_t long_after =
		    tenant_usage_share(w.lab, k, JANUARY_31 + 90 * DAY, HOUR, total[k]);
		assert_in_range(half_life_on, 249, 250);
		assert_in_range(long_after, 499, 500);
	}
	int64_t straight = tenant_usage(w.lab, AMOUNT_GPU, JANUARY_31 + HOUR, HOUR);
	for (int i = 1; i <= 60; i++)
		tenant_settle_now(&w.tenants, w.lab, JANUARY_31 + i * HOUR / 60, &config);
	assert_in_range(w.lab->r.usage_gpu, straight - 120, straight);
	assert_int_equal(tenant_usage_share(w.lab, AMOUNT_GPU, JANUARY_31 + HOUR, HOUR, 0), 0);
	world_free(&w);
}

static void tenants_load_in_any_order_and_their_meters_run_on(void **state)
{
	(void)state;
	struct tenants tenants = { 0 };
	struct tenant_record child = record(3, 7, "child"), parent = record(7, 8, "parent");
	struct tenant_record top = record(8, 0, "top");
	child.metered_ms = JANUARY_31;
	child.cost = 5 * MONEY;
	child.cost_per_gpu_hour = MONEY;
	struct tenant *loaded = tenants_load(&tenants, &child, NULL);
	const struct tenant *loaded_parent = tenants_load(&tenants, &parent, NULL);
	const struct tenant *loaded_top = tenants_load(&tenants, &top, NULL);
	assert_ptr_equal(loaded->parent, loaded_parent);
	assert_ptr_equal(loaded_parent->parent, loaded_top);
	assert_int_equal(tenants.root_count, 1);
	struct amounts two = gpus(2 * GPU);
	tenant_charge(&tenants, loaded, &two, true, 1);
	assert_true(tenants_loaded(&tenants, NULL));
	tenants_check(&tenants);
	assert_int_equal(tenants.unsettled_count, 0);
	assert_int_equal(loaded->r.metered_ms, JANUARY_31);
	assert_int_equal(tenant_cost(loaded, JANUARY_31 + HOUR), 7 * MONEY);
	tenants_free(&tenants);
}

static void records_that_form_no_tree_do_not_load(void **state)
{
	(void)state;
	struct tenants tenants = { 0 };
	struct error error = { 0 };
	struct tenant_record a = record(1, 3, "a"), b = record(2, 1, "b"), c = record(3, 2, "c");
	struct tenant_record again = record(2, 0, "again"), own = record(9, 9, "own");
	struct tenant_record worn = record(10, 0, "worn");
	worn.usage_gpu = -1;
	assert_non_null(tenants_load(&tenants, &a, &error));
	assert_non_null(tenants_load(&tenants, &b, &error));
	assert_null(tenants_load(&tenants, &c, &error));
	assert_string_equal(error.text, "tenant c is its own ancestor");
	assert_null(tenants_load(&tenants, &own, &error));
	assert_string_equal(error.text, "tenant own is its own ancestor");
	assert_null(tenants_load(&tenants, &again, &error));
	assert_string_equal(error.text, "there are two tenants with id 2");
	assert_null(tenants_load(&tenants, &worn, &error));
	assert_string_equal(error.text, "usage_gpu is -1, and must not be negative");
	assert_false(tenants_loaded(&tenants, &error));
	assert_string_equal(error.text, "tenant a: there is no parent tenant 3");
	assert_int_equal(error.code, ERROR_CORRUPT);
	tenants_free(&tenants);
}

static void random_changes_keep_every_total_the_sum_of_its_parts(void **state)
{
	(void)state;
	struct tenants tenants = { 0 };
	struct amounts held[33] = { 0 };
	uint64_t seed = 7;
	for (int step = 0; step < 20000; step++) {
		int64_t id = 1 + (int64_t)random_below(&seed, 32);
		int64_t other = (int64_t)random_below(&seed, 33);
		struct tenant *tenant = tenants_find(&tenants, id);
		struct amounts amounts = gpus((int64_t)random_below(&seed, 8) * GPU);
		char name[8] = { 't', (char)('0' + id / 10), (char)('0' + id % 10) };
		struct tenant_record r = record(id, other, name);
		uint64_t what = random_below(&seed, 4);
		if (what == 0 || !tenant) {
			tenants_put(&tenants, &r, NULL);
		} else if (what == 1) {
			tenants_delete(&tenants, tenant, NULL);
		} else if (what == 2) {
			tenant_charge(&tenants, tenant, &held[id], false, -1);
			held[id] = (struct amounts){ 0 };
		} else {
			tenant_charge(&tenants, tenant, &amounts, false, 1);
			amounts_add(&held[id], &amounts);
		}
		if (step % 16 == 0)
			tenants_check(&tenants);
	}
	assert_true(tenants.count > 8);
	tenants_free(&tenants);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tenant_is_found_by_its_id_below_its_parent),
		cmocka_unit_test(a_tenant_needs_a_name_of_its_own),
		cmocka_unit_test(a_parent_must_exist),
		cmocka_unit_test(a_tenant_is_never_below_itself),
		cmocka_unit_test(negative_limits_quotas_and_weights_are_refused),
		cmocka_unit_test(putting_a_known_tenant_again_keeps_its_meters),
		cmocka_unit_test(a_new_tenant_starts_with_empty_meters),
		cmocka_unit_test(a_tenant_takes_what_it_holds_to_its_new_parent),
		cmocka_unit_test(what_is_charged_and_returned_leaves_nothing_anywhere),
		cmocka_unit_test(a_tenant_in_use_is_not_deleted),
		cmocka_unit_test(a_deleted_tenant_leaves_its_name_and_nothing_to_settle),
		cmocka_unit_test(limits_bind_at_every_ancestor),
		cmocka_unit_test(every_kind_of_amount_is_limited),
		cmocka_unit_test(what_is_over_its_limit_refuses_only_more_of_that),
		cmocka_unit_test(jobs_that_may_not_be_preempted_are_bound_by_quotas),
		cmocka_unit_test(a_quota_of_nothing_binds_and_a_quota_left_out_does_not),
		cmocka_unit_test(limits_are_named_before_quotas_and_quotas_before_budgets),
		cmocka_unit_test(what_runs_now_does_not_make_a_job_impossible),
		cmocka_unit_test(months_are_those_of_the_calendar),
		cmocka_unit_test(what_is_held_is_metered_and_paid_at_every_ancestor),
		cmocka_unit_test(holding_the_same_again_changes_no_meter),
		cmocka_unit_test(a_month_that_begins_starts_a_new_bill),
		cmocka_unit_test(a_spent_budget_refuses_gpus_until_the_month_ends),
		cmocka_unit_test(a_new_price_counts_from_when_it_is_set),
		cmocka_unit_test(past_use_halves_with_every_half_life),
		cmocka_unit_test(use_nears_what_is_held_and_settling_changes_it_little),
		cmocka_unit_test(tenants_load_in_any_order_and_their_meters_run_on),
		cmocka_unit_test(records_that_form_no_tree_do_not_load),
		cmocka_unit_test(random_changes_keep_every_total_the_sum_of_its_parts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
