/* load_test.c - a core that is loaded from records behaves as if it had never stopped */
#include "core/test/busy.h"
#include "core/test/property_keeper.h"

/* What is kept of a core, and another one that was loaded from it and is given
 * the same commands. */
struct store {
	struct keeper keeper;
	struct sched *twin;
	int every; /* the twin is loaded again after this many commands */
	int commands;
	bool foretells; /* asks the core, not its twin, after each command what would be */
};

/* Submissions of all kinds, none of which is made. */
static void foretell_all(struct harness *h)
{
	struct job_record jobs[] = { whole(2, 1),      whole(2, 4),      whole(3, 9),
		                     fraction(3, 300), memory(2, 50000), job_of(2, GPU_NONE, 0) };

	jobs[1].priority = 2000;
	jobs[2].tasks = 2;
	jobs[2].gpu_count = 3;
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		struct submit_command submit = { .job = jobs[i] };
		struct submit_forecast forecast;
		struct buffer reasons = { 0 };
		sched_forecast(h->sched, &submit, h->now_ms, 0, &forecast, &reasons, &h->error);
		sched_check(h->sched);
		buffer_free(&reasons);
	}
}

static void must_agree(const struct effects *one, const struct effects *other,
                       const struct command *command)
{
	struct buffer a = { 0 }, b = { 0 };

	effects_encode(&a, one);
	effects_encode(&b, other);
	if (a.size != b.size || memcmp(a.data, b.data, a.size) != 0) {
		struct buffer text = { 0 };
		command_print(&text, command);
		buffer_text(&text, "\nfirst:\n");
		effects_print(&text, one);
		buffer_text(&text, "\nloaded:\n");
		effects_print(&text, other);
		fail_msg("%s", text.data);
	}
	buffer_free(&a);
	buffer_free(&b);
}

static void load_follow(struct harness *h, const struct command *command, bool applied)
{
	struct store *store = h->watcher;
	struct effects effects = { 0 };
	struct error error;

	if (store->twin) {
		bool also = sched_apply(store->twin, command, &effects, &error);
		assert_int_equal(also, applied);
		sched_check(store->twin);
		must_agree(&h->effects, &effects, command);
		effects_free(&effects);
	}
	if (applied)
		keeper_apply(&store->keeper, &h->effects);
	if (store->foretells)
		foretell_all(h);
	if (store->every > 0 && ++store->commands % store->every == 0) {
		sched_free(store->twin);
		store->twin = keeper_load(&store->keeper);
	}
}

static void store_free(struct store *store)
{
	sched_free(store->twin);
	keeper_free(&store->keeper);
}

/* A life with something of everything in it. */
static void busy_life(struct harness *h)
{
	struct config_record config = config_default();

	config.retention_ms = 120000;
	configure(h, config);
	for (int i = 0; i < 3; i++)
		add_node(h, i == 0 ? "n1" : i == 1 ? "n2" : "n3", 4, 80000);
	int64_t top = put_tenant(h, sharing("top", 0, QUOTA_UNSET));
	int64_t first = put_tenant(h, sharing("first", top, 5 * WHOLE_GPU));
	int64_t second = put_tenant(h, sharing("second", top, 5 * WHOLE_GPU));
	submit_all_kinds(h, first);
	live_on(h, 2);
	submit_all_kinds(h, second);
	live_on(h, 3);
	report_gpu(h, "n1-gpu1", 75000, 80, true);
	end_some(h, 3);
	live_on(h, 2);
	drain(h, "n2", true);
	must(h, try_submit(h, fraction(first, 500)));
	set_node_state(h, "n3", NODE_UNKNOWN);
	submit_all_kinds(h, first);
	live_on(h, 3);
	set_node_state(h, "n3", NODE_LOST);
	report_gpu(h, "n1-gpu1", 0, 72, true);
	live_on(h, 2);
	drain(h, "n2", false);
	add_node(h, "n3", 4, 80000);
	end_some(h, 2);
	live_on(h, 3);
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_START }));
	live_on(h, 1);
	for (int i = 0; i < 3; i++)
		add_node(h, i == 0 ? "n1" : i == 1 ? "n2" : "n3", 4, 80000);
	live_on(h, 3);
	must(h, apply_to_node(h, COMMAND_NODE_DEAD, "n1"));
	submit_all_kinds(h, second);
	live_on(h, 4);
	assert_false(try_submit(h, whole(99, 1)));
	end_some(h, 1);
	live_on(h, 4);
}

/* Runs commands, and compares with a core that is reloaded every few commands. */
static void live_with(int every, bool foretells)
{
	struct harness *h = harness_new();
	struct store store = { .every = every, .foretells = foretells };

	h->watch = load_follow;
	h->watcher = &store;
	busy_life(h);
	assert_non_null(store.twin);
	store_free(&store);
	harness_free(h);
}

static void a_core_loaded_after_any_command_does_the_same_with_the_next(void **unused)
{
	(void)unused;
	live_with(1, false);
}

static void to_foretell_changes_nothing(void **unused)
{
	(void)unused;
	live_with(40, true);
}

static void a_loaded_core_goes_on_as_if_it_had_never_stopped(void **unused)
{
	(void)unused;
	live_with(50, false);
	live_with(83, false);
}

static void a_gpu_that_was_over_is_told_to_be_free_again_just_once(void **unused)
{
	struct harness *h = harness_new();
	struct store store = { .every = 1 };

	(void)unused;
	h->watch = load_follow;
	h->watcher = &store;
	add_node(h, "n1", 1, 80000);
	int64_t tenant = put_tenant(h, tenant_named("lab"));
	int64_t id = submit(h, memory(tenant, 50000));
	pass(h);
	report_gpu(h, "n1-gpu0", 40000, 40, true);
	end_job(h, id, 0);
	report_gpu(h, "n1-gpu0", 30000, 40, true);
	store_free(&store);
	harness_free(h);
}

static void a_refused_change_of_a_tenant_leaves_no_trace(void **unused)
{
	struct harness *h = harness_new();
	struct store store = { .every = 1 };

	(void)unused;
	h->watch = load_follow;
	h->watcher = &store;
	add_node(h, "n1", 1, 80000);
	int64_t tenant = put_tenant(h, sharing("lab", 0, QUOTA_UNSET));
	submit(h, whole(tenant, 1));
	pass(h);
	for (int i = 0; i < 5; i++) {
		struct tenant_record wrong = sharing("lab", tenant, QUOTA_UNSET);
		wrong.id = tenant;
		h->now_ms += 12347;
		assert_false(harness_apply(
		    h, (struct command){ .kind = COMMAND_PUT_TENANT, .tenant = wrong }));
	}
	end_job(h, 1, 0);
	store_free(&store);
	harness_free(h);
}

static void an_empty_store_is_a_new_scheduler(void **unused)
{
	struct keeper keeper = { 0 };
	struct sched *sched = keeper_load(&keeper);

	(void)unused;
	sched_check(sched);
	sched_free(sched);
	keeper_free(&keeper);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(to_foretell_changes_nothing),
		cmocka_unit_test(a_core_loaded_after_any_command_does_the_same_with_the_next),
		cmocka_unit_test(a_loaded_core_goes_on_as_if_it_had_never_stopped),
		cmocka_unit_test(a_gpu_that_was_over_is_told_to_be_free_again_just_once),
		cmocka_unit_test(a_refused_change_of_a_tenant_leaves_no_trace),
		cmocka_unit_test(an_empty_store_is_a_new_scheduler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
