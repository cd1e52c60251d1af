/* lie_test.c - a node that reports on what another node has changes nothing there */
#include "core/test/slots.h"

/* Two nodes: the victim n1 has a job of a whole GPU and a loaded slot, evil has nothing. */
struct lab {
	struct harness *h;
	int64_t job, right, slot;
};

static struct lab lie_lab_new(void)
{
	struct lab lab = { .h = harness_new() };
	int64_t loads[8];

	add_node(lab.h, "n1", 2, 80000);
	int64_t tenant = put_tenant(lab.h, tenant_named("lab"));
	int64_t model_id = put_model(lab.h, model_of(tenant, "m", 30000));
	request(lab.h, model_id);
	assert_int_equal(pass_only(lab.h, loads), 1);
	lab.slot = loads[0];
	ready(lab.h, lab.slot);
	lab.job = submit(lab.h, whole(tenant, 1));
	pass(lab.h);
	lab.right = right_of(lab.h, lab.job, 0);
	add_node(lab.h, "evil", 1, 80000);
	return lab;
}

static void forbidden(const struct lab *lab, bool applied)
{
	must_not(lab->h, applied, ERROR_FORBIDDEN, "which is on node n1");
	assert_int_equal(lab->h->effects.count, 0);
	assert_int_equal(state(lab->h, lab->job), JOB_RUNNING);
}

static void what_a_node_says_about_anothers_task_is_refused(void **unused)
{
	static const enum command_kind kinds[] = { COMMAND_TASK_STARTED,    COMMAND_TASK_REFUSED,
		                                   COMMAND_TASK_EXITED,     COMMAND_TASK_CHECKPOINT,
		                                   COMMAND_MEMORY_RELEASED, COMMAND_TASK_NOTICE };
	struct lab lab = lie_lab_new();

	(void)unused;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct command command = { .kind = kinds[i] };
		command.task.reservation_id = lab.right;
		command.task.exit_code = 7;
		command.task.node = "evil";
		forbidden(&lab, harness_apply(lab.h, command));
		command.task.reservation_id = lab.slot;
		forbidden(&lab, harness_apply(lab.h, command));
	}
	struct command command = { .kind = COMMAND_TASK_EXITED };
	command.task.reservation_id = lab.right;
	command.task.node = "n1";
	must(lab.h, harness_apply(lab.h, command));
	harness_free(lab.h);
}

static void what_a_node_says_about_anothers_slot_is_refused(void **unused)
{
	static const enum command_kind kinds[] = { COMMAND_SLOT_LOADING, COMMAND_SLOT_READY,
		                                   COMMAND_SLOT_EXITED };
	struct lab lab = lie_lab_new();
	const struct slot *slot = map_get(&lab.h->sched->models.slots, lab.slot);

	(void)unused;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct command command = { .kind = kinds[i] };
		command.slot.reservation_id = lab.slot;
		command.slot.address = "http://evil:666";
		command.slot.node = "evil";
		forbidden(&lab, harness_apply(lab.h, command));
		assert_int_equal(slot->r.state, SLOT_READY);
		assert_string_equal(slot->r.address, "10.0.0.1:8000");
	}
	harness_free(lab.h);
}

static void what_a_node_measures_of_anothers_gpu_is_refused(void **unused)
{
	struct lab lab = lie_lab_new();
	struct command command = { .kind = COMMAND_GPU_REPORT };

	(void)unused;
	command.gpu = (struct gpu_report_command){
		.uuid = "n1-gpu0", .foreign_mib = 79000, .healthy = false, .node = "evil"
	};
	forbidden(&lab, harness_apply(lab.h, command));
	assert_true(gpu(lab.h, "n1-gpu0")->r.healthy);
	command.gpu.node = "n1";
	must(lab.h, harness_apply(lab.h, command));
	harness_free(lab.h);
}

static const struct event *misreport(const struct harness *h)
{
	for (size_t i = 0; i < h->effects.count; i++)
		if (h->effects.at[i].kind == EFFECT_EVENT &&
		    h->effects.at[i].event.kind == EVENT_NODE_MISREPORTED)
			return &h->effects.at[i].event;
	return NULL;
}

/* No record of a reservation, a slot, a task or a job was written. */
static void nothing_of_others_changed(const struct harness *h)
{
	for (size_t i = 0; i < h->effects.count; i++) {
		const struct effect *effect = &h->effects.at[i];
		if (effect->kind != EFFECT_PUT && effect->kind != EFFECT_DELETE)
			continue;
		assert_int_not_equal(effect->record_kind, RECORD_RESERVATION);
		assert_int_not_equal(effect->record_kind, RECORD_SLOT);
		assert_int_not_equal(effect->record_kind, RECORD_TASK);
		assert_int_not_equal(effect->record_kind, RECORD_JOB_STATE);
	}
}

static void a_snapshot_that_names_anothers_work_changes_nothing_and_is_told(void **unused)
{
	struct lab lab = lie_lab_new();
	struct device device = device_of("evil-gpu0", 0, 80000);
	struct node_report_command node = report_of("evil", &device, 1);
	const struct measurement measurements[] = { { lab.right, "evil-gpu0", 5000 },
		                                    { lab.slot, "evil-gpu0", 6000 },
		                                    { lab.right, "n1-gpu0", 70000 } };
	const struct slot_report slots[] = { { lab.slot, "m", "http://evil:666", true },
		                             { lab.right, "m", "http://evil:666", true } };

	(void)unused;
	node.running = &lab.right;
	node.running_count = 1;
	node.slots = slots;
	node.slot_count = 2;
	node.measurements = measurements;
	node.measurement_count = 3;
	node.snapshot = true;
	must(lab.h, report(lab.h, node));
	nothing_of_others_changed(lab.h);
	assert_non_null(misreport(lab.h));
	assert_int_equal(misreport(lab.h)->value, lab.right);
	/* If it really runs them it is told to stop, and their memory counts on its own GPU. */
	assert_true(effects_of(lab.h, EFFECT_STOP) > 0);
	for (size_t i = 0; i < lab.h->effects.count; i++)
		if (lab.h->effects.at[i].kind == EFFECT_STOP)
			assert_int_equal(lab.h->effects.at[i].order.node_id,
			                 gpu(lab.h, "evil-gpu0")->node->r.id);
	assert_int_equal(gpu(lab.h, "evil-gpu0")->r.foreign_mib, 11000);
	assert_int_equal(gpu(lab.h, "n1-gpu0")->r.foreign_mib, 0);
	harness_free(lab.h);
}

static void a_gpu_that_another_node_has_is_not_taken_over(void **unused)
{
	struct lab lab = lie_lab_new();
	struct device device = device_of("n1-gpu0", 0, 80000);

	(void)unused;
	must_not(lab.h, report(lab.h, report_of("evil", &device, 1)), ERROR_CONFLICT,
	         "which is on node n1");
	set_node_state(lab.h, "n1", NODE_UNKNOWN);
	must_not(lab.h, report(lab.h, report_of("evil", &device, 1)), ERROR_CONFLICT,
	         "known on node n1");
	harness_free(lab.h);
}

static void an_adopted_slot_does_not_choose_how_far_ids_go(void **unused)
{
	struct lab lab = lie_lab_new();
	struct device device = device_of("evil-gpu0", 0, 80000);
	struct node_report_command node = report_of("evil", &device, 1);
	int64_t far = lab.h->sched->meta.last_reservation_id + (INT64_C(1) << 40);
	const struct measurement measurement = { far, "evil-gpu0", 5000 };
	const struct slot_report slot = { far, "m", "http://evil:666", true };

	(void)unused;
	node.slots = &slot;
	node.slot_count = 1;
	node.measurements = &measurement;
	node.measurement_count = 1;
	node.snapshot = true;
	must(lab.h, report(lab.h, node));
	assert_null(map_get(&lab.h->sched->models.slots, far));
	assert_true(lab.h->sched->meta.last_reservation_id < far);
	assert_int_equal(effects_of(lab.h, EFFECT_STOP), 1);
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_node_says_about_anothers_task_is_refused),
		cmocka_unit_test(what_a_node_says_about_anothers_slot_is_refused),
		cmocka_unit_test(what_a_node_measures_of_anothers_gpu_is_refused),
		cmocka_unit_test(a_snapshot_that_names_anothers_work_changes_nothing_and_is_told),
		cmocka_unit_test(a_gpu_that_another_node_has_is_not_taken_over),
		cmocka_unit_test(an_adopted_slot_does_not_choose_how_far_ids_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
