/* quota_plan_test.c - quotas follow what tenants use, within their bounds */
#include "core/quotas.h"
#include "core/tenant/quota_plan.h"
#include "core/test/harness.h"

#define HOUR INT64_C(3600000)
#define DAY (24 * HOUR)

static int64_t put_following(struct harness *h, const char *name, int64_t least, int64_t most)
{
	struct tenant_record tenant = tenant_named(name);

	tenant.quota_gpu = 0;
	tenant.quota_gpu_least = least * WHOLE_GPU;
	tenant.quota_gpu_most = most * WHOLE_GPU;
	return put_tenant(h, tenant);
}

static struct quota_proposal proposal(struct harness *h, int64_t tenant_id)
{
	size_t count;
	struct quota_proposal *all = sched_propose_quotas(h->sched, h->now_ms, &count);
	struct quota_proposal found = { 0 };

	for (size_t i = 0; i < count; i++)
		if (all[i].tenant_id == tenant_id)
			found = all[i];
	free(all);
	assert_int_equal(found.tenant_id, tenant_id);
	return found;
}

static int64_t quota(struct harness *h, int64_t tenant_id)
{
	return tenants_find(&h->sched->tenants, tenant_id)->r.quota_gpu;
}

/* Holds as many GPUs for a long time. */
static void hold(struct harness *h, int64_t tenant_id, int32_t gpus)
{
	struct job_record record = whole(tenant_id, gpus);

	record.preemptible = true;
	submit(h, record);
}

static void what_is_proposed_is_what_was_used_within_the_bounds(void **unused)
{
	struct harness *h = harness_new();

	(void)unused;
	add_node(h, "n1", 8, 80000);
	int64_t three = put_following(h, "three", 0, 8), capped = put_following(h, "capped", 0, 2);
	int64_t idle = put_following(h, "idle", 1, 8), fixed = put_following(h, "fixed", 0, 0);
	hold(h, three, 3);
	hold(h, capped, 4);
	pass(h);
	time_passes(h, 365 * DAY);
	assert_in_range(proposal(h, three).used, 2990, 3000);
	assert_int_equal(proposal(h, three).proposed, 3 * WHOLE_GPU);
	assert_int_equal(proposal(h, capped).proposed, 2 * WHOLE_GPU);
	assert_int_equal(proposal(h, idle).proposed, WHOLE_GPU);
	assert_int_equal(proposal(h, fixed).proposed, 0);
	assert_true(proposal(h, three).follows);
	assert_false(proposal(h, fixed).follows);
	assert_int_equal(quota(h, three), 0); /* it is a proposal */
	harness_free(h);
}

static void what_is_longer_ago_counts_less(void **unused)
{
	struct harness *h = harness_new();

	(void)unused;
	add_node(h, "n1", 8, 80000);
	int64_t lab = put_following(h, "lab", 0, 8);
	struct job_record record = whole(lab, 8);
	int64_t id = submit(h, record);
	pass(h);
	time_passes(h, 365 * DAY);
	end_job(h, id, 0);
	assert_int_equal(proposal(h, lab).proposed, 8 * WHOLE_GPU);
	time_passes(h, h->sched->config.usage_half_life_ms);
	assert_in_range(proposal(h, lab).used, 3900, 4000);
	time_passes(h, 10 * h->sched->config.usage_half_life_ms);
	assert_int_equal(proposal(h, lab).proposed, WHOLE_GPU);
	harness_free(h);
}

/* Eight GPUs, of which two are guaranteed to one that does not follow. */
static void siblings_are_cut_to_what_there_is(void **unused)
{
	struct harness *h = harness_new();
	struct tenant_record owner = tenant_named("owner");

	(void)unused;
	add_node(h, "n1", 8, 80000);
	owner.quota_gpu = 2 * WHOLE_GPU;
	put_tenant(h, owner);
	int64_t a = put_following(h, "a", 2, 8), b = put_following(h, "b", 0, 8);
	hold(h, a, 4);
	hold(h, b, 4);
	pass(h);
	time_passes(h, 365 * DAY);
	/* 2 for the owner, 2 for a at the least; of the 6 beyond that 4 are left, two thirds. */
	assert_int_equal(proposal(h, a).proposed, (2 + 1) * WHOLE_GPU);
	assert_int_equal(proposal(h, b).proposed, 2 * WHOLE_GPU);
	harness_free(h);
}

static void children_share_what_their_parent_is_guaranteed(void **unused)
{
	struct harness *h = harness_new();
	struct tenant_record parent = tenant_named("parent"), child = tenant_named("child");

	(void)unused;
	add_node(h, "n1", 8, 80000);
	parent.quota_gpu = 3 * WHOLE_GPU;
	child.parent_id = put_tenant(h, parent);
	child.quota_gpu = 0;
	child.quota_gpu_most = 8 * WHOLE_GPU;
	int64_t id = put_tenant(h, child);
	hold(h, id, 6);
	pass(h);
	time_passes(h, 365 * DAY);
	assert_int_equal(proposal(h, id).proposed, 3 * WHOLE_GPU);
	harness_free(h);
}

static void quotas_are_set_as_often_as_the_policy_says(void **unused)
{
	struct harness *h = harness_new();
	struct config_record config = config_default();

	(void)unused;
	add_node(h, "n1", 8, 80000);
	int64_t lab = put_following(h, "lab", 0, 8), fixed = put_following(h, "fixed", 0, 0);
	hold(h, lab, 3);
	pass(h);
	time_passes(h, 365 * DAY);
	assert_int_equal(quota(h, lab), 0);
	config.quota_follow_ms = 7 * DAY;
	configure(h, config);
	time_passes(h, HOUR);
	assert_int_equal(quota(h, lab), 3 * WHOLE_GPU);
	assert_int_equal(quota(h, fixed), 0);
	hold(h, lab, 3);
	pass(h);
	time_passes(h, 6 * DAY);
	assert_int_equal(quota(h, lab), 3 * WHOLE_GPU);
	time_passes(h, DAY);
	assert_true(quota(h, lab) > 3 * WHOLE_GPU);
	assert_int_equal(h->sched->meta.quotas_ms, h->now_ms);
	harness_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_proposed_is_what_was_used_within_the_bounds),
		cmocka_unit_test(what_is_longer_ago_counts_less),
		cmocka_unit_test(siblings_are_cut_to_what_there_is),
		cmocka_unit_test(children_share_what_their_parent_is_guaranteed),
		cmocka_unit_test(quotas_are_set_as_often_as_the_policy_says),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
