/* score_cache_test.c - what is kept of scores is what they are */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/place/score_cache.h"
#include "core/test/harness.h"

/* Some nodes, and jobs of a few shapes that come and go. */
struct lab {
	struct harness *h;
	int64_t tenant;
};

static struct lab score_cache_lab_begin(int nodes)
{
	struct lab lab = { .h = harness_new() };
	for (int i = 0; i < nodes; i++) {
		char name[16];
		snprintf(name, sizeof(name), "n%04d", i);
		add_node(lab.h, name, 1 + i % 4, 32000);
	}
	lab.tenant = put_tenant(lab.h, tenant_named("team"));
	return lab;
}

static struct search search_of(const struct job *waiting)
{
	return (struct search){ .shape = waiting->class->shape,
		                .view = VIEW_NOW,
		                .until_ms = INT64_MAX };
}

/* The cache of a job that waits, as it is now. */
static struct scorer scorer_of(struct lab lab, int64_t id, struct search *search)
{
	sched_prepare(lab.h->sched);
	*search = search_of(job(lab.h, id));
	filter_refresh(search->shape->filter, &lab.h->sched->cluster,
	               lab.h->sched->cluster.version);
	return scorer_begin(&lab.h->sched->placement, search);
}

static void a_board_counts_the_nodes_that_fit(void **unused)
{
	(void)unused;
	struct lab lab = score_cache_lab_begin(8);
	struct search search;
	int64_t waiting = submit(lab.h, whole(lab.tenant, 4));
	assert_int_equal(scorer_of(lab, waiting, &search).cache->fits, 2);
	assert_int_equal(pass(lab.h), 1);
	waiting = submit(lab.h, whole(lab.tenant, 4));
	assert_int_equal(scorer_of(lab, waiting, &search).cache->fits, 1);
	harness_free(lab.h);
}

static void a_node_that_changed_is_scored_anew(void **unused)
{
	(void)unused;
	struct lab lab = score_cache_lab_begin(4);
	struct search search;
	int64_t waiting = submit(lab.h, fraction(lab.tenant, 500));
	struct scorer scorer = scorer_of(lab, waiting, &search);
	const struct node *node = lab.h->sched->cluster.by_rank[3];
	int64_t before = scorer_score(&scorer, node);
	int64_t other = submit(lab.h, whole(lab.tenant, 3));
	pass(lab.h);
	assert_int_equal(job(lab.h, other)->counts.live, 1);
	waiting = submit(lab.h, fraction(lab.tenant, 500));
	scorer = scorer_of(lab, waiting, &search);
	for (size_t rank = 0; rank < 4; rank++) {
		struct node *at = lab.h->sched->cluster.by_rank[rank];
		struct choice choice;
		bool fits = place_on_node(&lab.h->sched->placement, &search, at, &choice);
		assert_true(scorer_score(&scorer, at) == (fits ? choice.score : TOURNAMENT_NONE));
	}
	assert_true(before != TOURNAMENT_NONE);
	harness_free(lab.h);
}

static void a_node_fits_again_when_nothing_is_promised_there_any_more(void **unused)
{
	(void)unused;
	struct lab lab = score_cache_lab_begin(1);
	struct search search;
	struct sched *sched = lab.h->sched;
	int64_t waiting = submit(lab.h, whole(lab.tenant, 1));
	assert_int_equal(scorer_of(lab, waiting, &search).cache->fits, 1);
	struct node *node = sched->cluster.by_rank[0];
	node->promised = 1;
	index_promised(&sched->index, node);
	assert_false(score_cache_has_fit(&sched->placement, &search));
	node->promised = 0;
	index_promised(&sched->index, node);
	assert_int_equal(scorer_of(lab, waiting, &search).cache->fits, 1);
	harness_free(lab.h);
}

/* What is decided must not depend on how much of it was looked up. */
static void a_large_cluster_keeps_scores_without_following_all_nodes(void **unused)
{
	(void)unused;
	struct lab lab = score_cache_lab_begin(SCORE_CACHE_FOLLOWS + 1);
	struct search search;
	int64_t waiting = submit(lab.h, fraction(lab.tenant, 300));
	struct scorer scorer = scorer_of(lab, waiting, &search);
	const struct node *node = lab.h->sched->cluster.by_rank[0];
	assert_true(scorer.cache->versions[0] == 0);
	int64_t score = scorer_score(&scorer, node);
	assert_true(scorer.cache->versions[0] == node->version);
	assert_true(scorer_score(&scorer, node) == score && score != TOURNAMENT_NONE);
	assert_int_equal(pass(lab.h), 1);
	harness_free(lab.h);
}

static void searches_that_depend_on_more_than_the_shape_have_no_board(void **unused)
{
	(void)unused;
	struct lab lab = score_cache_lab_begin(2);
	struct search search = search_of(job(lab.h, submit(lab.h, whole(lab.tenant, 1))));
	assert_true(score_cache_serves(&lab.h->sched->placement, &search));
	search.view = VIEW_LATER;
	assert_false(score_cache_serves(&lab.h->sched->placement, &search));
	search.view = VIEW_NOW;
	search.link = 1;
	assert_false(score_cache_serves(&lab.h->sched->placement, &search));
	search.link = 0;
	struct model model = { 0 };
	search.model = &model;
	assert_true(score_cache_serves(&lab.h->sched->placement, &search));
	lab.h->sched->cluster.kept_count = 1;
	assert_false(score_cache_serves(&lab.h->sched->placement, &search));
	lab.h->sched->cluster.kept_count = 0;
	harness_free(lab.h);
}

static void boards_follow_the_policy_and_what_arrives(void **unused)
{
	(void)unused;
	struct lab lab = score_cache_lab_begin(6);
	for (int round = 0; round < 12; round++) {
		struct config_record config = config_default();
		config.policy = round % policy_words.count;
		configure(lab.h, config);
		submit(lab.h, fraction(lab.tenant, 100 + 50 * (round % 5)));
		submit(lab.h, whole(lab.tenant, 1 + round % 2));
		pass(lab.h);
		sched_check(lab.h->sched);
	}
	harness_free(lab.h);
}

static void set_promised(struct lab lab, int promised)
{
	for (size_t rank = 0; rank < lab.h->sched->cluster.node_count; rank++) {
		struct node *node = lab.h->sched->cluster.by_rank[rank];
		node->promised = promised;
		index_promised(&lab.h->sched->index, node);
	}
}

static void a_node_fits_again_after_a_promise_that_a_board_only_glanced_at(void **unused)
{
	(void)unused;
	struct lab lab = score_cache_lab_begin(4);
	struct search search;
	int64_t waiting = submit(lab.h, whole(lab.tenant, 1));
	assert_int_equal(scorer_of(lab, waiting, &search).cache->fits, 4);
	set_promised(lab, 1);
	assert_false(score_cache_has_fit(&lab.h->sched->placement, &search));
	set_promised(lab, 0);
	assert_int_equal(scorer_of(lab, waiting, &search).cache->fits, 4);
	score_caches_check(&lab.h->sched->placement);
	harness_free(lab.h);
}

/* Whether score_caches_check ends the program, in a child. */
static bool is_found_out(struct sched *sched)
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		assert_non_null(freopen("/dev/null", "w", stderr));
		score_caches_check(&sched->placement);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status);
}

static void a_score_that_is_not_right_is_found_out(void **unused)
{
	(void)unused;
	struct lab lab = score_cache_lab_begin(4);
	struct search search;
	int64_t waiting = submit(lab.h, whole(lab.tenant, 1));
	struct scorer scorer = scorer_of(lab, waiting, &search);
	assert_false(is_found_out(lab.h->sched));
	tournament_put(&scorer.cache->scores, 2, -1);
	assert_true(is_found_out(lab.h->sched));
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_board_counts_the_nodes_that_fit),
		cmocka_unit_test(a_node_that_changed_is_scored_anew),
		cmocka_unit_test(a_node_fits_again_when_nothing_is_promised_there_any_more),
		cmocka_unit_test(a_large_cluster_keeps_scores_without_following_all_nodes),
		cmocka_unit_test(searches_that_depend_on_more_than_the_shape_have_no_board),
		cmocka_unit_test(boards_follow_the_policy_and_what_arrives),
		cmocka_unit_test(a_node_fits_again_after_a_promise_that_a_board_only_glanced_at),
		cmocka_unit_test(a_score_that_is_not_right_is_found_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
