/* runs_test.c - what is written of a run when it ends */
#include "core/test/harness.h"

#define MINUTE INT64_C(60000)

struct lab {
	struct harness *h;
	int64_t tenant;
	struct run_record last; /* the run that was written last */
};

static void note_runs(struct harness *h, const struct command *command, bool applied)
{
	struct lab *lab = h->watcher;

	(void)command;
	(void)applied;
	for (size_t i = 0; i < h->effects.count; i++)
		if (h->effects.at[i].kind == EFFECT_PUT &&
		    h->effects.at[i].record_kind == RECORD_RUN)
			lab->last = *(const struct run_record *)h->effects.at[i].record;
}

static struct lab *runs_lab(void)
{
	struct lab *lab = NEW(struct lab);

	lab->h = harness_new();
	lab->h->watch = note_runs;
	lab->h->watcher = lab;
	add_node(lab->h, "n1", 4, 80000);
	lab->tenant = put_tenant(lab->h, tenant_named("lab"));
	return lab;
}

static void runs_free(struct lab *lab)
{
	harness_free(lab->h);
	free(lab);
}

static int64_t started(struct lab *lab)
{
	int64_t id = submit(lab->h, whole(lab->tenant, 1));

	pass(lab->h);
	return id;
}

static void checkpoint(struct lab *lab, int64_t id)
{
	must(lab->h, to_task(lab->h, COMMAND_TASK_CHECKPOINT, right_of(lab->h, id, 0), 0, false));
}

static void a_run_says_up_to_when_its_work_is_safe(void **unused)
{
	struct lab *lab = runs_lab();
	int64_t id = started(lab);

	(void)unused;
	time_passes(lab->h, 10 * MINUTE);
	checkpoint(lab, id);
	int64_t saved_ms = lab->h->now_ms;
	time_passes(lab->h, 5 * MINUTE);
	must(lab->h, apply_to(lab->h, COMMAND_REQUEUE, id));
	assert_int_equal(lab->last.ending, RUN_REQUEUED);
	assert_int_equal(lab->last.saved_ms, saved_ms);
	/* Its end, when the node confirms it, does not change that. */
	confirm_stops(lab->h);
	assert_int_equal(lab->last.saved_ms, saved_ms);
	runs_free(lab);
}

static void a_checkpoint_of_an_earlier_run_saves_nothing_of_the_next(void **unused)
{
	struct lab *lab = runs_lab();
	int64_t id = started(lab);

	(void)unused;
	checkpoint(lab, id);
	time_passes(lab->h, MINUTE);
	must(lab->h, apply_to(lab->h, COMMAND_REQUEUE, id));
	confirm_stops(lab->h);
	time_passes(lab->h, MINUTE);
	pass(lab->h);
	assert_int_equal(state(lab->h, id), JOB_RUNNING);
	time_passes(lab->h, MINUTE);
	end_job(lab->h, id, 1);
	assert_int_equal(lab->last.ending, RUN_FAILED);
	assert_int_equal(lab->last.saved_ms, 0);
	runs_free(lab);
}

static void what_was_never_saved_says_so(void **unused)
{
	struct lab *lab = runs_lab();
	int64_t id = started(lab);

	(void)unused;
	time_passes(lab->h, MINUTE);
	end_job(lab->h, id, 0);
	assert_int_equal(lab->last.ending, RUN_COMPLETED);
	assert_int_equal(lab->last.saved_ms, 0);
	runs_free(lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_says_up_to_when_its_work_is_safe),
		cmocka_unit_test(a_checkpoint_of_an_earlier_run_saves_nothing_of_the_next),
		cmocka_unit_test(what_was_never_saved_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
