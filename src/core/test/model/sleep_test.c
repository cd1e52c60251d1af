/* sleep_test.c - slots that sleep: their GPU memory is in host memory until somebody asks again */
#include "core/test/slots.h"

#define GIB (INT64_C(1) << 30)
#define RESIDUE_MIB 900

/* One GPU of 80,000 MiB, with room for one of two models that sleep. */
struct dorm {
	struct harness *h;
	int64_t tenant, first, second;
};

static struct model_record sleeper(int64_t tenant, const char *name, int64_t mib)
{
	struct model_record record = model_of(tenant, name, mib);

	record.sleep = SLEEP_DRIVER;
	return record;
}

static struct dorm dorm_new(void)
{
	struct dorm dorm = { .h = harness_new() };

	add_node(dorm.h, "n1", 1, 80000);
	dorm.tenant = put_tenant(dorm.h, tenant_named("lab"));
	dorm.first = put_model(dorm.h, sleeper(dorm.tenant, "first", 50000));
	dorm.second = put_model(dorm.h, sleeper(dorm.tenant, "second", 50000));
	return dorm;
}

static bool tell(struct harness *h, enum command_kind kind, int64_t slot, bool is_done,
                 int64_t residue_mib, int64_t host_bytes)
{
	struct command command = { .kind = kind };

	command.task.reservation_id = slot;
	command.task.released = is_done;
	command.task.message = is_done ? "" : "the driver did not want to";
	command.task.use.peak_mib = residue_mib;
	command.task.use.host_peak_bytes = host_bytes;
	return harness_apply(h, command);
}

/* The first model is loaded and idle, and somebody asks for the second. */
static struct dorm dorm_asked(int64_t *asked)
{
	struct dorm dorm = dorm_new();

	load(dorm.h, dorm.first);
	grow_cold(dorm.h);
	*asked = request(dorm.h, dorm.second);
	settle(dorm.h);
	assert_int_equal(slot_of(dorm.h, dorm.first)->r.state, SLOT_SLEEPING);
	return dorm;
}

/* The first sleeps, and the second is loaded and idle. */
static struct dorm dorm_asleep(void)
{
	int64_t asked;
	struct dorm dorm = dorm_asked(&asked);

	must(dorm.h, tell(dorm.h, COMMAND_TASK_SUSPENDED, slot_of(dorm.h, dorm.first)->r.id, true,
	                  RESIDUE_MIB, 20 * GIB));
	settle(dorm.h);
	assert_int_equal(slot_of(dorm.h, dorm.second)->r.state, SLOT_READY);
	done(dorm.h, asked);
	return dorm;
}

static void an_idle_slot_goes_to_sleep_and_counts_until_its_node_says_so(void **unused)
{
	int64_t asked;
	struct dorm dorm = dorm_asked(&asked);
	const struct gpu *gpu = slot_of(dorm.h, dorm.first)->reservation->parts[0].gpu;

	(void)unused;
	assert_int_equal(gpu->books.used_mib, 50000);
	assert_int_equal(gpu->books.releasing_mib, 50000);
	assert_int_equal(slot_of(dorm.h, dorm.second)->r.state, SLOT_WAITING);
	harness_free(dorm.h);
}

static void one_that_is_asleep_has_what_was_measured(void **unused)
{
	struct dorm dorm = dorm_asleep();
	const struct slot *slot = slot_of(dorm.h, dorm.first);
	const struct reservation *reservation = slot->reservation;

	(void)unused;
	assert_int_equal(slot->r.state, SLOT_ASLEEP);
	assert_int_equal(slot->r.sleep, SLEEP_DRIVER);
	assert_int_equal(reservation->parts[0].gpu->books.used_mib, 50000 + RESIDUE_MIB);
	assert_int_equal(reservation->node->host.used, 20 * GIB);
	assert_int_equal(model(dorm.h, dorm.first)->r.sleep_residue_mib, RESIDUE_MIB);
	assert_non_null(strstr(why_model(dorm.h, dorm.first), "asleep"));
	harness_free(dorm.h);
}

static void it_wakes_where_it_sleeps_once_the_other_sleeps(void **unused)
{
	struct dorm dorm = dorm_asleep();
	struct harness *h = dorm.h;
	int64_t slot = slot_of(h, dorm.first)->r.id, other = slot_of(h, dorm.second)->r.id;

	(void)unused;
	grow_cold(h);
	int64_t asked = request(h, dorm.first);
	settle(h);
	assert_int_equal(slot_of(h, dorm.first)->r.state, SLOT_WAKING);
	assert_int_equal(slot_of(h, dorm.first)->reservation->phase, PHASE_WAKING);
	must(h, tell(h, COMMAND_TASK_SUSPENDED, other, true, RESIDUE_MIB, 20 * GIB));
	settle(h);
	assert_int_equal(slot_of(h, dorm.first)->reservation->phase, PHASE_RESUMING);
	time_passes(h, 700);
	must(h, tell(h, COMMAND_TASK_RESUMED, slot, true, 0, 0));
	assert_int_equal(routed(h, asked)->slot_id, slot);
	assert_int_equal(slot_of(h, dorm.first)->reservation->copy_bytes, 0);
	assert_int_equal(slot_of(h, dorm.first)->reservation->residue_mib, 0);
	assert_int_equal(model(h, dorm.first)->r.wake_ms, 700);
	assert_int_equal(model(h, dorm.first)->slot_count, 1);
	harness_free(h);
}

static void one_that_could_not_sleep_serves_on_and_is_stopped_the_next_time(void **unused)
{
	int64_t asked;
	struct dorm dorm = dorm_asked(&asked);
	int64_t slot = slot_of(dorm.h, dorm.first)->r.id;

	(void)unused;
	must(dorm.h, tell(dorm.h, COMMAND_TASK_SUSPENDED, slot, false, 0, 0));
	assert_int_equal(slot_of(dorm.h, dorm.first)->r.state, SLOT_READY);
	assert_true(slot_of(dorm.h, dorm.first)->r.sleepless);
	grow_cold(dorm.h);
	settle(dorm.h);
	assert_int_equal(model(dorm.h, dorm.first)->slot_count, 0);
	assert_int_equal(slot_of(dorm.h, dorm.second)->r.state, SLOT_READY);
	harness_free(dorm.h);
}

static void one_that_does_not_wake_is_stopped_and_its_model_loaded_again(void **unused)
{
	struct dorm dorm = dorm_asleep();
	struct harness *h = dorm.h;
	int64_t slot = slot_of(h, dorm.first)->r.id;

	(void)unused;
	must(h, apply_to(h, COMMAND_REMOVE_MODEL, dorm.second));
	settle(h);
	request(h, dorm.first);
	settle(h);
	assert_int_equal(slot_of(h, dorm.first)->r.state, SLOT_WAKING);
	must(h, tell(h, COMMAND_TASK_RESUMED, slot, false, 0, 0));
	assert_int_equal(slot_of(h, dorm.first)->r.state, SLOT_STOPPING);
	assert_int_equal(model(h, dorm.first)->r.failures, 1);
	must(h, to_task(h, COMMAND_MEMORY_RELEASED, slot, 0, true));
	time_passes(h, 60000);
	settle(h);
	assert_int_equal(slot_of(h, dorm.first)->r.state, SLOT_READY);
	assert_true(slot_of(h, dorm.first)->r.id != slot);
	harness_free(h);
}

static void a_job_that_needs_the_residue_stops_the_sleeper(void **unused)
{
	struct dorm dorm = dorm_asleep();
	struct harness *h = dorm.h;

	(void)unused;
	grow_cold(h);
	int64_t job_id = submit(h, whole(dorm.tenant, 1));
	settle(h);
	for (int i = 0; i < 3 && state(h, job_id) != JOB_RUNNING; i++) {
		struct slot *second = slot_of(h, dorm.second);
		if (second && second->r.state == SLOT_SLEEPING)
			must(h, tell(h, COMMAND_TASK_SUSPENDED, second->r.id, true, 0, 20 * GIB));
		settle(h);
	}
	assert_int_equal(state(h, job_id), JOB_RUNNING);
	assert_int_equal(model(h, dorm.first)->slot_count, 0);
	harness_free(h);
}

static void without_host_memory_it_is_stopped(void **unused)
{
	struct dorm dorm = dorm_new();
	struct config_record config = config_default();

	(void)unused;
	config.suspend_host = 0;
	configure(dorm.h, config);
	load(dorm.h, dorm.first);
	grow_cold(dorm.h);
	request(dorm.h, dorm.second);
	settle(dorm.h);
	assert_int_equal(model(dorm.h, dorm.first)->slot_count, 0);
	assert_int_equal(slot_of(dorm.h, dorm.second)->r.state, SLOT_READY);
	harness_free(dorm.h);
}

static void a_model_that_is_off_does_not_sleep(void **unused)
{
	struct dorm dorm = dorm_new();
	struct model_record record = sleeper(dorm.tenant, "first", 50000);

	(void)unused;
	record.id = dorm.first;
	record.sleep = SLEEP_OFF;
	put_model(dorm.h, record);
	load(dorm.h, dorm.first);
	grow_cold(dorm.h);
	request(dorm.h, dorm.second);
	settle(dorm.h);
	assert_int_equal(model(dorm.h, dorm.first)->slot_count, 0);
	harness_free(dorm.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_slot_goes_to_sleep_and_counts_until_its_node_says_so),
		cmocka_unit_test(one_that_is_asleep_has_what_was_measured),
		cmocka_unit_test(it_wakes_where_it_sleeps_once_the_other_sleeps),
		cmocka_unit_test(one_that_could_not_sleep_serves_on_and_is_stopped_the_next_time),
		cmocka_unit_test(one_that_does_not_wake_is_stopped_and_its_model_loaded_again),
		cmocka_unit_test(a_job_that_needs_the_residue_stops_the_sleeper),
		cmocka_unit_test(without_host_memory_it_is_stopped),
		cmocka_unit_test(a_model_that_is_off_does_not_sleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
