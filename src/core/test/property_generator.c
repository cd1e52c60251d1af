/* property_generator.c - random commands that mostly make sense */
#include "core/test/property_generator.h"

#include <stdio.h>

#include "base/hash.h"
#include "core/test/property_random.h"

#define SECOND_MS INT64_C(1000)
#define DAY_MS (86400 * SECOND_MS)
#define START_MS INT64_C(1700000000000)
#define TENANTS 12

static void draw_hardware(struct generator *generator)
{
	static const int64_t capacities[] = { 8192, 16384, 24564, 32600, 46068, 81920 };
	static const char *const models[] = { "A10", "A100", "H100", "L4", "V100" };
	uint64_t *random = &generator->random;
	struct hardware *hardware = &generator->world.hardware;

	hardware->machines = (int)between(random, 1, MACHINES);
	hardware->chips = (int)between(random, 1, CHIPS);
	for (int i = 0; i < 2; i++) {
		hardware->models[i] = ONE_OF(random, models);
		hardware->capacity_mib[i] = ONE_OF(random, capacities);
	}
	hardware->replicas = chance(random, 50) ? 1 : (int)between(random, 1, 6);
	hardware->mig = chance(random, 30);
}

void generator_turn(struct generator *generator)
{
	uint64_t *random = &generator->random;
	struct flavour *flavour = &generator->flavour;

	draw_hardware(generator);
	*flavour = (struct flavour){
		.waiting = chance(random, 85) ? between(random, 5, 40) : between(random, 40, 250),
		.split = (int)between(random, 0, 30),
		.gangs = chance(random, 50) ? (int)between(random, 0, 60) : 5,
		.elastic = chance(random, 50) ? (int)between(random, 0, 40) : 5,
		.arrays = chance(random, 40) ? (int)between(random, 0, 20) : 0,
		.dependent = chance(random, 50) ? (int)between(random, 0, 25) : 0,
		.gang_tasks = between(random, 2, 8),
		.parts = between(random, 1, 8),
		.constrained = chance(random, 60) ? (int)between(random, 0, 50) : 0,
		.preemptible = (int)between(random, 20, 100),
		.movable = (int)between(random, 0, 100),
		.bounded = chance(random, 50) ? (int)between(random, 0, 60) : 5,
		.faults = chance(random, 70) ? (int)between(random, 0, 20) : 60,
		.exits = chance(random, 80) ? (int)between(random, 2, 20) : 60,
		.releases = (int)between(random, 5, 95),
		.step_ms =
		    chance(random, 80) ? between(random, 10, 4000) : between(random, 10, 60000),
	};
	if (chance(random, 75)) {
		flavour->models = between(random, 1, 14);
		flavour->serving = (int)between(random, 5, 60);
		flavour->requests = chance(random, 70);
	}
	for (int i = 0; i <= GPU_UNEVEN; i++)
		flavour->kinds[i] = chance(random, 70) ? (int)between(random, 1, 20) : 1;
	generator_draw_templates(generator);
}

void generator_init(struct generator *generator, uint64_t seed, const struct keeper *keeper,
                    const struct router *router)
{
	*generator = (struct generator){
		/* Not a multiple of the step: neighbors would draw the same numbers, one later. */
		.random = hash_number(seed),
		.now_ms = START_MS,
		.keeper = keeper,
		.router = router,
	};
	world_init(&generator->world, &generator->random);
	generator->loads_per_gpu =
	    chance(&generator->random, 60) ? 1 : between(&generator->random, 2, 3);
	generator_turn(generator);
}

void generator_free(struct generator *generator)
{
	arena_free(&generator->arena);
}

static struct machine *any_machine(struct generator *generator)
{
	int64_t most = generator->world.hardware.machines - 1;

	return &generator->world.machines[between(&generator->random, 0, most)];
}

/* A machine that the core knows, or NULL. */
static struct machine *known_machine(struct generator *generator)
{
	for (int tries = 0; tries < 8; tries++) {
		struct machine *machine =
		    &generator->world.machines[between(&generator->random, 0, MACHINES - 1)];
		if (machine_record(machine, generator->keeper))
			return machine;
	}
	return NULL;
}

struct command generator_report(struct generator *generator, struct machine *machine, bool honest)
{
	return (struct command){
		.kind = COMMAND_NODE_REPORT,
		.now_ms = generator->now_ms,
		.report = machine_report(&generator->world, machine, generator->keeper, honest,
		                         &generator->arena),
	};
}

static int64_t bounded_or(struct generator *generator, int64_t otherwise, int64_t most)
{
	uint64_t *random = &generator->random;

	if (!chance(random, generator->flavour.bounded / 2))
		return otherwise;
	return chance(random, 10) ? between(random, 0, most / 4) : between(random, most / 4, most);
}

static void draw_bounds(struct generator *generator, struct tenant_record *tenant)
{
	int64_t gpus = 1000 * (int64_t)generator->world.hardware.chips * 6;
	int64_t memory = 8 * generator->world.hardware.capacity_mib[0];

	tenant->limit_gpu = bounded_or(generator, UNLIMITED, gpus);
	tenant->limit_cpu = bounded_or(generator, UNLIMITED, 200000);
	tenant->limit_host = bounded_or(generator, UNLIMITED, INT64_C(1) << 40);
	tenant->limit_gpu_memory = bounded_or(generator, UNLIMITED, memory);
	tenant->limit_jobs = bounded_or(generator, UNLIMITED, 20);
	tenant->quota_gpu = bounded_or(generator, QUOTA_UNSET, gpus);
	tenant->quota_cpu = bounded_or(generator, QUOTA_UNSET, 200000);
	tenant->quota_host = bounded_or(generator, UNLIMITED, INT64_C(1) << 40);
}

static int64_t draw_parent(struct generator *generator)
{
	size_t count = keeper_tenant_count(generator->keeper);

	if (count == 0 || chance(&generator->random, 40))
		return 0;
	return keeper_tenant(generator->keeper, random_below(&generator->random, count))->id;
}

struct command generator_tenant(struct generator *generator, const struct tenant_record *old)
{
	uint64_t *random = &generator->random;
	struct tenant_record tenant = { .parent_id = draw_parent(generator) };
	char name[32];

	snprintf(name, sizeof(name), "team-%lld", (long long)++generator->number);
	if (old) {
		tenant.id = old->id;
		snprintf(name, sizeof(name), "%s", old->name);
		if (chance(random, 80))
			tenant.parent_id = old->parent_id;
	}
	tenant.name = arena_string(&generator->arena, name);
	tenant.payload = tenant.name;
	draw_bounds(generator, &tenant);
	tenant.weight = chance(random, 60) ? 1000 : between(random, 0, 4000);
	tenant.priority = chance(random, 70) ? 0 : between(random, 0, 3);
	tenant.allow_preemption = chance(random, 70);
	tenant.can_preempt_others = chance(random, 70);
	tenant.max_preemptions = chance(random, 60) ? UNLIMITED : between(random, 0, 4);
	tenant.queue_max = chance(random, 90) ? UNLIMITED : between(random, 0, 50);
	tenant.cost_per_gpu_hour = chance(random, 50) ? 0 : between(random, 1, 5000000);
	tenant.budget_per_month =
	    chance(random, 85) ? UNLIMITED : between(random, 0, 1000) * 1000000;
	if (chance(random, 2))
		tenant.limit_gpu = -1;
	return (struct command){ .kind = COMMAND_PUT_TENANT,
		                 .now_ms = generator->now_ms,
		                 .tenant = tenant };
}

static void draw_switches(struct generator *generator, struct config_record *config)
{
	uint64_t *random = &generator->random;

	config->policy = (int32_t)between(random, 0, POLICY_COUNT - 1);
	config->enable_preemption = chance(random, 85);
	config->enable_gangs = chance(random, 95);
	config->enable_thermal = chance(random, 85);
	config->enable_consolidation = chance(random, 80);
	config->enable_backfill = chance(random, 80);
	config->move_any_job = chance(random, 30);
}

struct command generator_config(struct generator *generator)
{
	uint64_t *random = &generator->random;
	struct config_record config = config_default();

	draw_switches(generator, &config);
	config.queue_max = chance(random, 80) ? 2000000 : between(random, 5, 100);
	config.tenant_queue_max = chance(random, 80) ? UNLIMITED : between(random, 5, 100);
	config.ageing_per_minute = between(random, 0, 100);
	config.ageing_cap = between(random, 0, 5000);
	config.thermal_threshold_c = between(random, 60, 90);
	config.thermal_resume_c = between(random, 40, config.thermal_threshold_c);
	config.usage_half_life_ms = between(random, 1, 14 * DAY_MS);
	config.usage_influence = between(random, 0, 1000);
	config.min_runtime_ms = chance(random, 50) ? 0 : between(random, 0, 600) * SECOND_MS;
	config.release_timeout_ms = between(random, 0, 120) * SECOND_MS;
	config.gang_grace_ms = between(random, 0, 300) * SECOND_MS;
	config.refuse_backoff_ms = between(random, 0, 20) * SECOND_MS;
	config.grace_ms = between(random, 0, 60) * SECOND_MS;
	config.retention_ms = between(random, 0, 1200) * SECOND_MS;
	config.predict_jobs =
	    chance(random, 70) ? between(random, 1, 60) : between(random, 0, 1) * 32768;
	config.predict_experts = chance(random, 70) ? 8192 : between(random, 0, 100);
	config.promise_jobs = between(random, 0, 6);
	config.promise_gpus = between(random, 0, 4) * WHOLE_GPU;
	config.foreign_tolerance_mib = chance(random, 70) ? 0 : between(random, 0, 2000);
	config.lease_ms = between(random, 1, 600) * SECOND_MS;
	config.loads_per_gpu = generator->loads_per_gpu;
	config.foreign_requeues = between(random, 0, 3);
	config.time_sharing = chance(random, 40)
	                          ? (int32_t)between(random, 1, SHARING_PREDICTED_SERVICE)
	                          : SHARING_OFF;
	config.sharing_wait_ms = between(random, 1, 7200) * SECOND_MS;
	config.sharing_turn_ms = between(random, 0, 3600) * SECOND_MS;
	config.sharing_delay_ms = chance(random, 50) ? 0 : between(random, 0, 600) * SECOND_MS;
	config.suspend_wait_ms = between(random, 0, 7200) * SECOND_MS;
	config.deadline_risk = between(random, 0, 1000);
	config.deadline_first = chance(random, 50);
	config.quota_follow_ms = chance(random, 50) ? 0 : between(random, 1, 600) * SECOND_MS;
	config.search_width = chance(random, 50) ? 256 : between(random, 1, 8);
	config.search_pause_us = chance(random, 50) ? 0 : between(random, 0, 1000);
	config.suspend = (int32_t)between(random, 0, 2);
	config.sharing_compute = chance(random, 20) ? COMPUTE_MPS : COMPUTE_NONE;
	config.sharing_mixed = chance(random, 30);
	config.suspend_host = between(random, 0, 1000);
	if (chance(random, 3))
		config.thermal_resume_c = config.thermal_threshold_c + 1;
	return (struct command){ .kind = COMMAND_CONFIGURE,
		                 .now_ms = generator->now_ms,
		                 .configure = config };
}

/* Commands, by what they are about. Each fills in `command`, or returns false
 * where there is nothing to say. */
static bool generate_pass(struct generator *generator, struct command *command)
{
	uint64_t *random = &generator->random;

	command->kind = COMMAND_PASS;
	command->units = chance(random, 75) ? 100000 : between(random, 0, 6);
	return true;
}

static bool generate_time(struct generator *generator, struct command *command)
{
	(void)generator;
	command->kind = COMMAND_TIME;
	return true;
}

static bool generate_configure(struct generator *generator, struct command *command)
{
	*command = generator_config(generator);
	return true;
}

static bool generate_tenant(struct generator *generator, struct command *command)
{
	uint64_t *random = &generator->random;
	size_t count = keeper_tenant_count(generator->keeper);
	bool old = count > 0 && chance(random, count < TENANTS ? 60 : 100);
	const struct tenant_record *tenant =
	    old ? keeper_tenant(generator->keeper, random_below(random, count)) : NULL;

	if (tenant && chance(random, 15)) {
		command->kind = COMMAND_DELETE_TENANT;
		command->id = tenant->id;
	} else {
		*command = generator_tenant(generator, tenant);
	}
	return true;
}

/* Jobs that are not over and do not run. */
static int64_t count_waiting(const struct keeper *keeper)
{
	int64_t count = 0;

	for (size_t i = 0; i < keeper_job_state_count(keeper); i++)
		count += keeper_job_state(keeper, i)->state == JOB_PENDING;
	return count;
}

/* Submits while there is room in the queue, and makes some where there is not: what
 * waits there for long may be impossible. */
static bool generate_job(struct generator *generator, struct command *command)
{
	uint64_t *random = &generator->random;
	int64_t waiting = count_waiting(generator->keeper), wanted = generator->flavour.waiting;

	if (waiting < wanted)
		return generate_submit(generator, command);
	const struct job_state_record *job = keeper_job_state(
	    generator->keeper, random_below(random, keeper_job_state_count(generator->keeper)));
	command->kind = COMMAND_CANCEL;
	command->id = job->id;
	return job->state == JOB_PENDING && chance(random, 30);
}

static void generate_cancel_or_hold(struct generator *generator, struct command *command)
{
	const struct job_state_record *job =
	    keeper_find(generator->keeper, RECORD_JOB_STATE, command->id, 0);
	uint64_t *random = &generator->random;

	if (job->held && chance(random, 70))
		command->kind = COMMAND_UNHOLD;
	else if (job->state == JOB_PENDING && chance(random, 30))
		command->kind = COMMAND_HOLD;
	else
		command->kind = COMMAND_CANCEL;
}

/* What people do with jobs that are there already. */
static bool generate_wish(struct generator *generator, struct command *command)
{
	uint64_t *random = &generator->random;
	size_t count = keeper_job_state_count(generator->keeper);

	if (count == 0)
		return false;
	const struct job_state_record *job =
	    keeper_job_state(generator->keeper, random_below(random, count));
	if (job_state_is_final((enum job_state)job->state) && !rarely(random, 20))
		return false;
	command->id = job->id;
	switch (between(random, 0, 7)) {
	case 6:
		command->kind = COMMAND_RESUME;
		return job->state == JOB_SUSPENDED || rarely(random, 50);
	case 7:
		command->kind = COMMAND_SUSPEND;
		return job->state == JOB_RUNNING || rarely(random, 20);
	case 0:
		command->kind = COMMAND_REQUEUE;
		return job->state != JOB_PENDING || rarely(random, 50);
	case 1:
		command->kind = COMMAND_REPRIORITISE;
		command->reprioritise.id = job->id;
		command->reprioritise.priority = between(random, 0, 20) * 50;
		return true;
	default:
		generate_cancel_or_hold(generator, command);
		return true;
	}
}

static void set_task(struct generator *generator, struct command *command, enum command_kind kind,
                     int64_t reservation_id)
{
	uint64_t *random = &generator->random;

	command->kind = kind;
	command->task.reservation_id = reservation_id;
	command->task.exit_code = chance(random, 88) ? 0 : between(random, 1, 255);
	command->task.released = chance(random, 50);
	command->task.message = kind == COMMAND_TASK_REFUSED ? "no room here" : "";
	command->task.foreign = kind == COMMAND_TASK_EXITED && chance(random, 30);
	command->task.finished = kind == COMMAND_TASK_EXITED && chance(random, 30);
}

/* What a node would say next about one that it was ordered to run. */
static bool tell_of_held(struct generator *generator, struct command *command, int64_t id)
{
	uint64_t *random = &generator->random;
	enum command_kind kind = COMMAND_TASK_STARTED;

	if (chance(random, 4))
		kind = COMMAND_TASK_REFUSED;
	else if (chance(random, 5))
		kind = COMMAND_TASK_EXITED;
	set_task(generator, command, kind, id);
	return chance(random, 90);
}

static bool tell_of_live(struct generator *generator, struct command *command, int64_t id)
{
	uint64_t *random = &generator->random;

	if (chance(random, generator->flavour.exits))
		set_task(generator, command, COMMAND_TASK_EXITED, id);
	else if (chance(random, 15))
		set_task(generator, command, COMMAND_TASK_CHECKPOINT, id);
	else
		return false;
	return true;
}

/* A node that moves memory does it, cannot, or loses the task; or the task ends before. */
static bool tell_of_moving(struct generator *generator, struct command *command, int64_t id,
                           enum command_kind kind)
{
	uint64_t *random = &generator->random;

	if (chance(random, 5))
		kind = COMMAND_TASK_EXITED;
	set_task(generator, command, kind, id);
	if (kind == COMMAND_TASK_EXITED)
		return true;
	command->task.released = chance(random, 85);
	command->task.ago_ms = between(random, 0, 60000);
	return chance(random, generator->flavour.releases);
}

static bool tell_of_releasing(struct generator *generator, struct command *command, int64_t id)
{
	uint64_t *random = &generator->random;
	bool exited = chance(random, 20);

	set_task(generator, command, exited ? COMMAND_TASK_EXITED : COMMAND_MEMORY_RELEASED, id);
	return chance(random, generator->flavour.releases);
}

static bool is_silent(const struct generator *generator, int64_t node_id)
{
	const struct node_record *node = keeper_find(generator->keeper, RECORD_NODE, node_id, 0);

	return !node || node->state != NODE_ONLINE;
}

/* A node tells of something that it runs. */
static bool generate_progress(struct generator *generator, struct command *command)
{
	static const enum command_kind kinds[] = { COMMAND_TASK_STARTED,   COMMAND_TASK_REFUSED,
		                                   COMMAND_TASK_EXITED,    COMMAND_TASK_CHECKPOINT,
		                                   COMMAND_TASK_SUSPENDED, COMMAND_TASK_RESUMED,
		                                   COMMAND_MEMORY_RELEASED };
	uint64_t *random = &generator->random;
	size_t count = keeper_reservation_count(generator->keeper);

	if (count == 0)
		return false;
	const struct reservation_record *reservation =
	    keeper_reservation(generator->keeper, random_below(random, count));
	if (rarely(random, 10)) { /* late, out of order, or wrong */
		int64_t id = chance(random, 50) ? reservation->id : between(random, 1, 50000);
		set_task(generator, command, ONE_OF(random, kinds), id);
		return true;
	}
	if (is_silent(generator, reservation->node_id) && !rarely(random, 20))
		return false;
	if (reservation->job_id == 0)
		return generate_slot_progress(generator, command, reservation->id);
	switch (reservation->phase) {
	case PHASE_SUSPENDING:
		return tell_of_moving(generator, command, reservation->id, COMMAND_TASK_SUSPENDED);
	case PHASE_RESUMING:
		return tell_of_moving(generator, command, reservation->id, COMMAND_TASK_RESUMED);
	case PHASE_GRANTED:
		return tell_of_held(generator, command, reservation->id);
	case PHASE_LIVE:
		return tell_of_live(generator, command, reservation->id);
	case PHASE_RELEASING:
		return tell_of_releasing(generator, command, reservation->id);
	default:
		return false;
	}
}

/* A node that should report does; there are more of them after a start. */
static bool generate_report(struct generator *generator, struct command *command)
{
	uint64_t *random = &generator->random;
	struct machine *machine = any_machine(generator);
	const struct node_record *node = machine_record(machine, generator->keeper);
	bool silent = !node || node->state != NODE_ONLINE || !node->reported;

	if (!silent && !chance(random, 30))
		return false;
	if (!machine->built || (!node && chance(random, 50)))
		machine_build(&generator->world, machine);
	if (rarely(random, 10 * generator->flavour.faults))
		machine_wear(&generator->world, machine);
	else if (chance(random, 10))
		machine_heal(machine);
	*command = generator_report(generator, machine, rarely(random, 700));
	if (chance(random, 3))
		report_spoil(&generator->world, &command->report, &generator->arena);
	return true;
}

static bool generate_gpu_report(struct generator *generator, struct command *command)
{
	uint64_t *random = &generator->random;
	size_t count = keeper_gpu_count(generator->keeper);

	if (count == 0)
		return false;
	const struct gpu_record *gpu = keeper_gpu(generator->keeper, random_below(random, count));
	command->kind = COMMAND_GPU_REPORT;
	command->gpu = (struct gpu_report_command){
		.uuid = arena_string(&generator->arena, gpu->uuid),
		.foreign_mib = gpu->foreign_mib,
		.temperature_c = between(random, 40, 70),
		.healthy = true,
	};
	if (rarely(random, 20 * generator->flavour.faults)) {
		command->gpu.temperature_c = between(random, 60, 95);
		command->gpu.healthy = chance(random, 80);
		command->gpu.foreign_mib = between(random, 0, gpu->capacity_mib);
	} else if (chance(random, 50)) {
		command->gpu.foreign_mib = 0;
	}
	if (rarely(random, 10))
		command->gpu.foreign_mib = -1;
	return true;
}

/* Nodes fall silent, are drained, declared dead, removed, or trade their GPUs. */
static bool generate_node_change(struct generator *generator, struct command *command)
{
	uint64_t *random = &generator->random;
	struct machine *machine = known_machine(generator);

	if (!machine)
		return false;
	switch (between(random, 0, 11)) {
	case 0:
	case 1:
	case 2:
		command->kind = COMMAND_NODE_STATE;
		command->node_state.name = machine->name;
		command->node_state.state =
		    (enum node_state)between(random, NODE_ONLINE, NODE_LOST);
		return true;
	case 3:
		command->kind = COMMAND_NODE_DEAD;
		command->node = machine->name;
		return true;
	case 4:
		command->kind = COMMAND_NODE_REMOVE;
		command->node = machine->name;
		return true;
	case 5:
		machine_trade(&generator->world, machine, any_machine(generator));
		return false;
	default:
		command->kind = COMMAND_NODE_DRAIN;
		command->drain.name = machine->name;
		command->drain.draining =
		    !machine_record(machine, generator->keeper)->draining && chance(random, 20);
		return true;
	}
}

static bool generate_start(struct generator *generator, struct command *command)
{
	(void)generator;
	command->kind = COMMAND_START;
	return true;
}

/* The clock turns out to have been wrong, by days or by years. */
static bool generate_clock(struct generator *generator, struct command *command)
{
	uint64_t *random = &generator->random;
	int64_t most = chance(random, 50) ? 3 * DAY_MS : 1100 * DAY_MS;
	int64_t to_ms = generator->now_ms + between(random, -most / 2, most);

	command->kind = COMMAND_CLOCK;
	command->clock.to_ms = to_ms;
	command->clock.clamp = to_ms < generator->now_ms && chance(random, 50);
	generator->now_ms = to_ms;
	return true;
}

static bool generate_mix(struct generator *generator, struct command *command)
{
	uint64_t *random = &generator->random;
	int64_t *rows = arena_alloc(&generator->arena, 3 * MIX_WIDTH * sizeof(*rows));
	int64_t count = between(random, 0, 3);

	for (int64_t i = 0; i < count; i++) {
		rows[MIX_WIDTH * i] = 100 * between(random, 1, 10);
		rows[MIX_WIDTH * i + 1] =
		    rows[MIX_WIDTH * i] == WHOLE_GPU ? between(random, 1, 4) : 1;
		rows[MIX_WIDTH * i + 2] = between(random, 0, 8000);
		rows[MIX_WIDTH * i + 3] = between(random, chance(random, 5) ? 0 : 1, 10);
	}
	command->kind = COMMAND_MIX;
	command->mix = (struct rows){ rows, count };
	return true;
}

/* Tenants that are known, are not, or pay themselves. */
static bool generate_charge(struct generator *generator, struct command *command)
{
	uint64_t *random = &generator->random;
	int64_t count = between(random, 0, 3);
	int64_t *rows =
	    arena_alloc(&generator->arena, (size_t)(count + 1) * CHARGE_WIDTH * sizeof(*rows));

	for (int64_t i = 0; i < count * CHARGE_WIDTH; i += CHARGE_WIDTH) {
		rows[i + CHARGE_TENANT] = between(random, 0, 12);
		rows[i + CHARGE_MODEL_TENANT] = between(random, 0, 12);
		rows[i + CHARGE_AMOUNT] =
		    chance(random, 5) ? -1 : between(random, 0, 3 * INT64_C(1000000));
	}
	command->kind = COMMAND_CHARGE;
	command->charges = (struct rows){ rows, count };
	return true;
}

static const char *any_machine_name(struct generator *generator)
{
	size_t count = keeper_node_count(generator->keeper);

	return count == 0
	           ? "none"
	           : keeper_node(generator->keeper, random_below(&generator->random, count))->name;
}

/* Windows soon and later, on nodes or on some GPUs, for all kinds of jobs; or one goes. */
static bool generate_window(struct generator *generator, struct command *command)
{
	static const char *const names[] = { "w1", "w2", "w3" };
	uint64_t *random = &generator->random;
	size_t tenants = keeper_tenant_count(generator->keeper);
	size_t windows = keeper_window_count(generator->keeper);

	if (windows > 0 && chance(random, 40)) {
		command->kind = COMMAND_REMOVE_WINDOW;
		command->id = keeper_window(generator->keeper, random_below(random, windows))->id;
		return true;
	}
	bool chosen = chance(random, 30);
	struct window_record window = {
		.name = ONE_OF(random, names),
		.maintenance = chance(random, 30),
		.start_ms = max64(generator->now_ms + between(random, -600, 3600) * SECOND_MS, 1),
		.length_ms = between(random, 60, 7200) * SECOND_MS,
		.repeat = (int32_t)between(random, WINDOW_ONCE, WINDOW_WEEKLY),
		.nodes = chosen ? "" : any_machine_name(generator),
		.gpus = "",
		.reason = "",
		.user = "",
		.lead_ms = between(random, 0, 3600) * SECOND_MS,
		.evict = chance(random, 50),
		.grace_ms = between(random, 0, 600) * SECOND_MS,
	};
	if (tenants > 0 && !window.maintenance && chance(random, 50))
		window.tenant_id =
		    keeper_tenant(generator->keeper, random_below(random, tenants))->id;
	command->kind = COMMAND_PUT_WINDOW;
	command->window =
	    (struct window_command){ .window = window,
		                     .gpu_count = chosen ? between(random, 1, 4) : 0 };
	return true;
}

static bool generate_eviction(struct generator *generator, struct command *command)
{
	uint64_t *random = &generator->random;
	size_t models = keeper_model_count(generator->keeper);

	if (models == 0)
		return false;
	command->kind = COMMAND_EVICT_MODEL;
	command->evict.model_id = keeper_model(generator->keeper, random_below(random, models))->id;
	command->evict.node = chance(random, 30) ? any_machine_name(generator) : "";
	command->evict.now = chance(random, 40);
	return true;
}

/* Mostly little time goes by; now and then much; and a clock may be behind. */
static int64_t next_time(struct generator *generator)
{
	uint64_t *random = &generator->random;

	if (chance(random, 50))
		generator->now_ms += between(random, 0, generator->flavour.step_ms);
	if (rarely(random, 2))
		generator->now_ms += between(random, 0, 3600) * SECOND_MS;
	if (rarely(random, 1) && chance(random, 5))
		generator->now_ms += between(random, 0, 20) * DAY_MS;
	return rarely(random, 10) ? generator->now_ms - between(random, 0, 5000)
	                          : generator->now_ms;
}

struct command generator_next(struct generator *generator)
{
	static const struct {
		int weight; /* of a thousand */
		bool (*generate)(struct generator *generator, struct command *command);
	} table[] = {
		{ 120, generate_pass },       { 20, generate_time },   { 150, generate_job },
		{ 539, generate_progress },   { 60, generate_report }, { 40, generate_gpu_report },
		{ 10, generate_node_change }, { 44, generate_wish },   { 7, generate_tenant },
		{ 1, generate_configure },    { 1, generate_start },   { 1, generate_mix },
		{ 1, generate_clock },        { 2, generate_charge },  { 3, generate_window },
		{ 1, generate_eviction },
	};
	int64_t now_ms = next_time(generator);
	struct command command = { .kind = COMMAND_PASS, .now_ms = now_ms };

	arena_reset(&generator->arena);
	for (int tries = 0; tries < 20; tries++) {
		int64_t at = between(&generator->random, 0, 999);
		size_t i = 0;
		while ((at -= table[i].weight) >= 0)
			i++;
		bool serving = chance(&generator->random, generator->flavour.serving);
		command = (struct command){ .now_ms = now_ms };
		if (serving ? generate_serving(generator, &command)
		            : table[i].generate(generator, &command)) {
			command.now_ms = now_ms;
			return command;
		}
	}
	return (struct command){ .kind = COMMAND_PASS, .now_ms = now_ms, .units = 100000 };
}
