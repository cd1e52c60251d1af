/* rotation_test.c - turns among models, in virtual time */
#include "core/test/slots.h"

#define STEP_MS 100
#define MODELS 4
#define FLYING_MOST 64

/* One GPU with room for one model, servers that load and answer in a fixed time, and clients that
 * keep asking or ask once. */
struct stage {
	struct harness *h;
	int64_t tenant;
	struct actor {
		int64_t id, load_ms, answer_ms;
		bool endless; /* two requests are always in flight or wait */
		struct {
			int64_t request, ends_ms; /* ends_ms 0: it waits */
		} asked[FLYING_MOST];
		int count;
		int64_t first_ms; /* when it was served first; 0: not yet */
		int loads;
	} models[MODELS];
	int model_count;
	int64_t loading_ms; /* in all */
};

static struct stage stage_new(void)
{
	struct stage stage = { .h = harness_new() };

	add_node(stage.h, "n1", 1, 80000);
	stage.tenant = put_tenant(stage.h, tenant_named("lab"));
	return stage;
}

static struct actor *stage_add(struct stage *stage, const char *name, int64_t mib, int64_t load_ms,
                               int64_t answer_ms)
{
	struct model_record given = model_of(stage->tenant, name, mib);
	struct actor *actor = &stage->models[stage->model_count++];

	assert_true(stage->model_count <= MODELS);
	given.concurrency = 2;
	actor->id = put_model(stage->h, given);
	actor->load_ms = load_ms;
	actor->answer_ms = answer_ms;
	return actor;
}

static void stage_ask(struct stage *stage, struct actor *actor)
{
	assert_true(actor->count < FLYING_MOST);
	actor->asked[actor->count].request = request(stage->h, actor->id);
	actor->asked[actor->count++].ends_ms = 0;
}

/* Requests that hold a lease begin to be answered, and those that are answered end. */
static void answer(struct stage *stage, struct actor *actor)
{
	struct harness *h = stage->h;

	for (int i = 0; i < actor->count; i++) {
		const struct request_entry *entry =
		    map_get(&h->sched->routes.by_id, actor->asked[i].request);
		assert_non_null(entry);
		if (!entry->slot)
			continue;
		if (actor->asked[i].ends_ms == 0)
			actor->asked[i].ends_ms = h->now_ms + actor->answer_ms;
		if (actor->first_ms == 0)
			actor->first_ms = h->now_ms;
		if (actor->asked[i].ends_ms > h->now_ms)
			continue;
		done(h, actor->asked[i].request);
		actor->asked[i--] = actor->asked[--actor->count];
	}
	while (actor->endless && actor->count < 3)
		stage_ask(stage, actor);
}

/* The servers do what they were told; slots that stop are gone at once. */
static void serve(struct stage *stage, struct actor *actor)
{
	const struct model *served = model(stage->h, actor->id);

	for (size_t i = 0; i < served->slot_count; i++) {
		const struct slot *slot = served->slots[i];
		if (slot->r.state != SLOT_LOADING)
			continue;
		stage->loading_ms += STEP_MS;
		if (slot->r.ordered_ms + actor->load_ms > stage->h->now_ms)
			continue;
		actor->loads++;
		ready(stage->h, slot->r.id);
	}
}

static void run_for(struct stage *stage, int64_t ms)
{
	int64_t loads[8];

	for (int64_t end_ms = stage->h->now_ms + ms; stage->h->now_ms < end_ms;) {
		time_passes(stage->h, STEP_MS);
		for (int i = 0; i < stage->model_count; i++) {
			serve(stage, &stage->models[i]);
			answer(stage, &stage->models[i]);
		}
		pass_only(stage->h, loads);
		confirm_stops(stage->h);
		pass_only(stage->h, loads);
	}
}

static void a_model_is_served_in_time_though_another_is_asked_without_end(void **unused)
{
	/* A load, the longest answer of A, and max(30 s, 3 loads) with that answer. */
	static const int64_t cases[][3] = {
		{ 1000, 500, 30500 },  { 1000, 20000, 50000 },  { 8000, 500, 30500 },
		{ 20000, 500, 60500 }, { 20000, 15000, 75000 }, { 60000, 1000, 181000 },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stage stage = stage_new();
		struct actor *a = stage_add(&stage, "a", 70000, cases[i][0], cases[i][1]);
		struct actor *b = stage_add(&stage, "b", 70000, cases[i][0], 500);
		stage_ask(&stage, b); /* so that its load is known */
		run_for(&stage, cases[i][0] + 20000);
		assert_int_equal(b->loads, 1);
		b->first_ms = 0;
		a->endless = true;
		run_for(&stage, 300000);
		assert_int_equal(b->loads, 1);
		int64_t asked_ms = stage.h->now_ms;
		stage_ask(&stage, b);
		run_for(&stage, 2 * cases[i][2] + 10000);
		assert_true(b->first_ms > 0);
		assert_in_range(b->first_ms - asked_ms, 0, cases[i][2] + 2 * STEP_MS);
		harness_free(stage.h);
	}
}

static void models_that_are_all_asked_without_end_take_turns(void **unused)
{
	struct stage stage = stage_new();

	(void)unused;
	for (int i = 0; i < 3; i++)
		stage_add(&stage,
		          i == 0   ? "a"
		          : i == 1 ? "b"
		                   : "c",
		          70000, 5000, 700)
		    ->endless = true;
	run_for(&stage, 1200000);
	for (int i = 0; i < 3; i++)
		assert_in_range(stage.models[i].loads, 8, 40);
	harness_free(stage.h);
}

static void requests_that_wait_at_one_moment_take_one_load_of_each_model(void **unused)
{
	static const int order[] = { 0, 1, 0, 0, 2, 0, 1, 2 }; /* A B A A C A B C */
	struct stage stage = stage_new();
	int loads = 0;

	(void)unused;
	for (int i = 0; i < 3; i++)
		stage_add(&stage, i == 0 ? "a" : i == 1 ? "b" : "c", 70000, 10000, 2000);
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		stage_ask(&stage, &stage.models[order[i]]);
	run_for(&stage, 180000);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(stage.models[i].count, 0);
		loads += stage.models[i].loads;
	}
	assert_int_equal(loads, 3);
	harness_free(stage.h);
}

static void no_more_time_is_spent_loading_than_the_setting_says(void **unused)
{
	static const int64_t percents[] = { 5, 20, 50 };

	(void)unused;
	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		struct stage stage = stage_new();
		struct config_record config = config_default();
		config.loading = percents[i] * 10;
		config.turn_wait_ms = 1000;
		config.slot_stay_ms = 0;
		configure(stage.h, config);
		for (int m = 0; m < 3; m++)
			stage_add(&stage,
			          m == 0   ? "a"
			          : m == 1 ? "b"
			                   : "c",
			          70000, 12000, 700)
			    ->endless = true;
		run_for(&stage, 1200000);
		int64_t allowed_ms = 12000 * percents[i];
		assert_in_range(stage.loading_ms, allowed_ms / 4, allowed_ms + 12000 + STEP_MS);
		assert_int_equal(gpu(stage.h, "n1-gpu0")->r.loading_ms / 12000,
		                 stage.models[0].loads + stage.models[1].loads +
		                     stage.models[2].loads);
		harness_free(stage.h);
	}
}

static void a_slot_is_not_closed_before_it_was_ready_for_two_loads(void **unused)
{
	struct stage stage = stage_new();
	struct actor *a = stage_add(&stage, "a", 70000, 40000, 500);
	struct actor *b = stage_add(&stage, "b", 70000, 1000, 500);

	(void)unused;
	a->endless = true;
	stage_ask(&stage, a);
	stage_ask(&stage, b);
	run_for(&stage, 41000);
	int64_t ready_ms = slot_of(stage.h, a->id)->r.ready_ms;
	assert_true(ready_ms > 0);
	while (stage.h->now_ms < ready_ms + 80000 - STEP_MS) {
		assert_int_equal(slot_of(stage.h, a->id)->r.closing_for, 0);
		run_for(&stage, STEP_MS);
	}
	run_for(&stage, 10 * STEP_MS);
	assert_null(slot_of(stage.h, a->id));
	harness_free(stage.h);
}

static void neither_a_pinned_slot_nor_one_of_the_minimum_is_closed(void **unused)
{
	(void)unused;
	for (int pinned = 0; pinned < 2; pinned++) {
		struct harness *h = harness_new();
		add_node(h, "n1", 1, 80000);
		struct tenant_record lab = tenant_named("lab");
		lab.quota_gpu = 1000;
		int64_t tenant = put_tenant(h, lab);
		struct model_record given = model_of(tenant, "a", 70000);
		given.pinned = pinned == 1;
		given.min_replicas = pinned == 0;
		int64_t a = put_model(h, given), b = put_model(h, model_of(tenant, "b", 70000));
		request(h, a);
		settle(h);
		request(h, b);
		time_passes(h, 600000);
		settle(h);
		assert_int_equal(slot_of(h, a)->r.closing_for, 0);
		assert_int_equal(ready_slots(h, a), 1);
		harness_free(h);
	}
}

static void what_was_closed_takes_requests_again_when_nobody_waits(void **unused)
{
	struct harness *h = harness_new();
	int64_t loads[8];

	(void)unused;
	keep_decisions(h);
	add_node(h, "n1", 1, 80000);
	int64_t tenant = put_tenant(h, tenant_named("lab"));
	int64_t a = put_model(h, model_of(tenant, "a", 70000));
	int64_t b = put_model(h, model_of(tenant, "b", 70000));
	request(h, a);
	settle(h);
	int64_t waiting = request(h, b);
	time_passes(h, 60000);
	pass_only(h, loads);
	assert_int_equal(slot_of(h, a)->r.closing_for, b);
	assert_int_equal(decided(h, DECISION_CLOSE, 0)->for_model_id, b);
	int64_t behind = request(h, a);
	assert_int_equal(routed(h, behind)->outcome, ROUTE_QUEUED);
	assert_non_null(strstr(why_model(h, a), "it is the turn of model b: it takes no more"));
	assert_non_null(strstr(why_model(h, b), "its turn has come: 1 busy slot of other models "
	                                        "closes for it, and 1 still has requests"));
	must(h, try_done(h, waiting, REQUEST_GONE));
	pass_only(h, loads);
	assert_int_equal(slot_of(h, a)->r.closing_for, 0);
	assert_int_equal(decided(h, DECISION_REOPEN, 0)->model_id, a);
	harness_free(h);
}

static void a_slot_that_was_closed_goes_for_nobody_else(void **unused)
{
	struct harness *h = harness_new();
	int64_t loads[8];

	(void)unused;
	add_node(h, "n1", 1, 80000);
	int64_t tenant = put_tenant(h, tenant_named("lab"));
	struct model_record small = model_of(tenant, "small", 20000);
	int64_t a = put_model(h, model_of(tenant, "a", 30000));
	int64_t b = put_model(h, model_of(tenant, "b", 40000));
	int64_t large = put_model(h, model_of(tenant, "large", 70000));
	small.priority = 900;
	int64_t other = put_model(h, small);
	int64_t first = request(h, a), second = request(h, b);
	settle(h);
	request(h, large);
	time_passes(h, 60000);
	pass_only(h, loads);
	assert_true(slot_of(h, a)->r.closing_for == large && slot_of(h, b)->r.closing_for == large);
	done(h, first);
	request(h, other);
	submit(h, memory(tenant, 50000));
	settle(h);
	assert_int_equal(slot_of(h, a)->r.state, SLOT_READY);
	assert_null(slot_of(h, other));
	done(h, second);
	settle(h);
	assert_int_equal(ready_slots(h, large), 1);
	harness_free(h);
}

static void why_says_whose_turn_it_is_and_when_the_next_comes(void **unused)
{
	struct harness *h = harness_new();
	int64_t loads[8];

	(void)unused;
	add_node(h, "n1", 1, 80000);
	int64_t tenant = put_tenant(h, tenant_named("lab"));
	int64_t rival = put_tenant(h, tenant_named("rival"));
	int64_t a = put_model(h, model_of(tenant, "a", 70000));
	int64_t b = put_model(h, model_of(rival, "b", 70000));
	int64_t c = put_model(h, model_of(tenant, "c", 70000));
	request(h, a);
	settle(h);
	request(h, b);
	time_passes(h, 1000);
	request(h, c);
	pass_only(h, loads);
	assert_non_null(strstr(why_model(h, c), "it is the turn of model b first"));
	assert_non_null(strstr(why_model(h, c), "its turn comes at "));
	struct buffer text = { 0 };
	must(h, sched_why_model(h->sched, c, tenant, &text, &h->error));
	assert_non_null(strstr(text.data, "it is the turn of a model of another tenant first"));
	assert_null(strstr(text.data, "model b"));
	buffer_free(&text);
	harness_free(h);
}

static void a_large_model_is_not_starved_by_small_ones(void **unused)
{
	struct stage stage = stage_new();
	struct actor *small[2], *large;

	(void)unused;
	for (int i = 0; i < 2; i++) {
		small[i] = stage_add(&stage, i == 0 ? "a" : "b", 35000, 2000, 3000);
		small[i]->endless = true;
	}
	struct actor *third = stage_add(&stage, "c", 35000, 2000, 3000);
	third->endless = true;
	run_for(&stage, 120000);
	large = stage_add(&stage, "large", 70000, 4000, 3000);
	int64_t asked_ms = stage.h->now_ms;
	stage_ask(&stage, large);
	run_for(&stage, 120000);
	assert_true(large->first_ms > 0);
	assert_in_range(large->first_ms - asked_ms, 0, 60000);
	harness_free(stage.h);
}

static void a_reset_of_requests_opens_all_slots(void **unused)
{
	struct harness *h = harness_new();
	int64_t loads[8];

	(void)unused;
	add_node(h, "n1", 1, 80000);
	int64_t tenant = put_tenant(h, tenant_named("lab"));
	int64_t a = put_model(h, model_of(tenant, "a", 70000));
	int64_t b = put_model(h, model_of(tenant, "b", 70000));
	request(h, a);
	settle(h);
	request(h, b);
	time_passes(h, 60000);
	pass_only(h, loads);
	assert_int_equal(slot_of(h, a)->r.closing_for, b);
	assert_int_equal(gpu(h, "n1-gpu0")->kept_for, b);
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_RESET_REQUESTS }));
	assert_int_equal(slot_of(h, a)->r.closing_for, 0);
	assert_int_equal(gpu(h, "n1-gpu0")->kept_for, 0);
	harness_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_model_is_served_in_time_though_another_is_asked_without_end),
		cmocka_unit_test(models_that_are_all_asked_without_end_take_turns),
		cmocka_unit_test(requests_that_wait_at_one_moment_take_one_load_of_each_model),
		cmocka_unit_test(no_more_time_is_spent_loading_than_the_setting_says),
		cmocka_unit_test(a_slot_is_not_closed_before_it_was_ready_for_two_loads),
		cmocka_unit_test(neither_a_pinned_slot_nor_one_of_the_minimum_is_closed),
		cmocka_unit_test(what_was_closed_takes_requests_again_when_nobody_waits),
		cmocka_unit_test(a_slot_that_was_closed_goes_for_nobody_else),
		cmocka_unit_test(why_says_whose_turn_it_is_and_when_the_next_comes),
		cmocka_unit_test(a_large_model_is_not_starved_by_small_ones),
		cmocka_unit_test(a_reset_of_requests_opens_all_slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
