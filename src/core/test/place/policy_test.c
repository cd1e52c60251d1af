/* policy_test.c - the table of placement policies, and scores from views */
#include <stdio.h>

#include "core/place/score_cache.h"
#include "core/record/policy.h"
#include "core/test/harness.h"

static void the_default_has_the_name_that_the_setting_has(void **unused)
{
	(void)unused;
	assert_string_equal(policy_row(POLICY_DEFAULT)->name, POLICY_DEFAULT_NAME);
	assert_int_equal(config_default().policy, POLICY_DEFAULT);
}

static void every_policy_has_a_name_of_its_own_a_score_and_help(void **unused)
{
	(void)unused;
	for (int i = 0; i < POLICY_COUNT; i++) {
		const struct placement_policy *row = policy_row(i);
		assert_int_equal(policy_find(row->name), i);
		assert_true(*row->alias == '\0' || policy_find(row->alias) == i);
		assert_string_equal(word_of(&policy_words, i), row->name);
		assert_true(row->score && strlen(row->help) > 10);
		assert_true(!row->cache.sees == !row->cache.score);
		assert_true(!row->cache.sees || row->cache.by_view);
	}
	assert_int_equal(policy_find("binpack"), POLICY_PACK);
	assert_int_equal(policy_find(""), -1);
	assert_int_equal(policy_find("best"), -1);
}

/* Nodes of two models, one of both, and one with memory of others on a GPU. */
static struct harness *policy_lab_begin(int64_t policy, int64_t *tenant)
{
	struct harness *h = harness_new();
	struct config_record config = config_default();

	config.policy = (int32_t)policy;
	configure(h, config);
	for (int node = 0; node < 9; node++) {
		struct device devices[4];
		char name[16], uuids[4][32];
		snprintf(name, sizeof(name), "n%d", node);
		for (int i = 0; i < 4; i++) {
			snprintf(uuids[i], sizeof(uuids[i]), "%s-%d", name, i);
			devices[i] = device_of(uuids[i], i, 32000);
			devices[i].model = (node == 4 ? i : node) % 2 ? "A" : "B";
			devices[i].foreign_mib = node == 5 && i == 1 ? 2000 : 0;
		}
		struct node_report_command node_report = report_of(name, devices, 4);
		node_report.cpu_milli = 8000 + 8000 * (node % 3);
		must(h, report(h, node_report));
	}
	*tenant = put_tenant(h, tenant_named("lab"));
	return h;
}

static struct job_record draw_job(int64_t tenant, uint64_t *random)
{
	bool shared = random_below(random, 3) > 0;
	struct job_record one = shared ? fraction(tenant, 10 * (int)(1 + random_below(random, 99)))
	                               : whole(tenant, (int)random_below(random, 4) + 1);

	one.cpu_milli = 500 * (int64_t)random_below(random, 8);
	one.gpu_models = random_below(random, 4) == 0 ? "A" : "";
	return one;
}

/* Compares all nodes for the shape of a waiting job. Returns how many a summary decided. */
static int compare_scores(struct harness *h, int64_t id)
{
	struct sched *sched = h->sched;
	const struct policy_cache *cache = &policy_row(sched->config.policy)->cache;
	int seen = 0;

	sched_prepare(sched);
	scarcity_refresh(&sched->placement);
	const struct shape *shape = job(h, id)->class->shape;
	struct search search = { .shape = shape, .view = VIEW_NOW, .until_ms = INT64_MAX };
	filter_refresh(shape->filter, &sched->cluster, sched->cluster.version);
	if (!cache->sees || !cache->sees(&sched->placement, shape))
		return 0;
	for (size_t rank = 0; rank < sched->cluster.node_count; rank++) {
		struct node_summary *summary = &sched->index.summaries[rank];
		struct node *node = sched->cluster.by_rank[rank];
		struct choice choice;
		if (!summary->plain || !summary->uniform || node->promised > 0 ||
		    !bitset_has(&shape->filter->nodes, rank))
			continue;
		bool fits = place_on_node(&sched->placement, &search, node, &choice);
		assert_true(cache->score(&sched->placement, shape, summary) ==
		            (fits ? choice.score : TOURNAMENT_NONE));
		seen += fits;
	}
	return seen;
}

static void a_view_scores_what_the_policy_does_with_the_gpus(void **unused)
{
	(void)unused;
	for (int64_t policy = 0; policy < POLICY_COUNT; policy++) {
		int64_t tenant, running[64];
		uint64_t random = (uint64_t)policy + 1;
		struct harness *h = policy_lab_begin(policy, &tenant);
		int count = 0, seen = 0;
		for (int round = 0; round < 200; round++) {
			int64_t id = submit(h, draw_job(tenant, &random));
			seen += compare_scores(h, id);
			pass(h);
			if (job(h, id)->counts.live == 0 || count == 64)
				must(h, cancel(h, id));
			else
				running[count++] = id;
			while (count > 12)
				end_job(h, running[--count], 0);
		}
		assert_true(policy_row(policy)->cache.sees ? seen > 200 : seen == 0);
		harness_free(h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_has_the_name_that_the_setting_has),
		cmocka_unit_test(every_policy_has_a_name_of_its_own_a_score_and_help),
		cmocka_unit_test(a_view_scores_what_the_policy_does_with_the_gpus),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
