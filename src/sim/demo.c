/* demo.c - a small demonstration of the core: five requests for one GPU that has room for four */
#include "sim/demo.h"

#include <stdio.h>

#include "core/state.h"
#include "core/why/why.h"
#include "sim/world/driver.h"

#define BEGIN_MS INT64_C(1767225600000) /* the first of January 2026 */
#define GPU_UUID "GPU-5f0c3a1e"
#define CAPACITY_MIB INT64_C(32600)
#define ASKED_MIB INT64_C(8000)
#define PASS_UNITS INT64_C(1000)
enum { DEVICES = 100, JOBS = 5 };

/* Sends the command a second after the last one; says why if the core refuses. */
static bool demo_send(struct driver *driver, struct command command)
{
	struct error error = { 0 };
	driver->now_ms += 1000;
	if (driver_send(driver, command, &error))
		return true;
	fprintf(stderr, "gpu-sim: the core refused %s: %s\n", command_kind_name(command.kind),
	        error.text);
	return false;
}

static bool demo_report_node(struct driver *driver)
{
	struct device devices[DEVICES];
	for (int i = 0; i < DEVICES; i++) {
		devices[i] = (struct device){
			.uuid = GPU_UUID,
			.model = "V100",
			.mig_parent = "",
			.capacity_mib = CAPACITY_MIB,
			.temperature_c = 40,
			.healthy = true,
		};
	}
	struct command command = { .kind = COMMAND_NODE_REPORT };
	command.report = (struct node_report_command){
		.name = "node-a",
		.boot = "1",
		.zone = "",
		.rack = "",
		.labels = "",
		.cpu_milli = 64000,
		.host_bytes = INT64_C(1) << 38,
		.devices = devices,
		.device_count = DEVICES,
		.snapshot = true,
	};
	return demo_send(driver, command);
}

static bool demo_put_tenant(struct driver *driver)
{
	struct command command = { .kind = COMMAND_PUT_TENANT };
	command.tenant = tenant_default("lab");
	command.tenant.priority = 100;
	command.tenant.allow_preemption = command.tenant.can_preempt_others = true;
	return demo_send(driver, command);
}

/* Its id is `number`: ids count from 1. */
static bool demo_submit(struct driver *driver, int64_t tenant_id, int64_t number)
{
	char name[32];
	snprintf(name, sizeof(name), "train-%lld", (long long)number);
	struct command command = { .kind = COMMAND_SUBMIT };
	command.submit.job = (struct job_record){
		.tenant_id = tenant_id,
		.name = name,
		.payload = "",
		.priority = config_default().default_priority,
		.gpu_kind = GPU_MEMORY,
		.gpu_count = 1,
		.memory_mib = ASKED_MIB,
		.cpu_milli = 4000,
		.host_bytes = INT64_C(1) << 33,
		.tasks = 1,
		.min_available = 1,
		.preemptible = true,
		.gpu_models = "",
		.node_labels = "",
		.idempotency_key = "",
	};
	return demo_send(driver, command);
}

/* Text of several lines, a little to the right. */
static void print_indented(const struct buffer *text)
{
	bool at_start = true;
	for (size_t i = 0; i < text->size; i++) {
		if (at_start)
			fputs("    ", stdout);
		putchar(text->data[i]);
		at_start = text->data[i] == '\n';
	}
	if (!at_start)
		putchar('\n');
}

/* Prints the decisions of the last command, with their arithmetic. */
static void explain_decisions(struct driver *driver)
{
	for (size_t i = 0; i < driver->effects.count; i++) {
		const struct effect *effect = &driver->effects.at[i];
		if (effect->kind != EFFECT_PUT || effect->record_kind != RECORD_DECISION)
			continue;
		buffer_clear(&driver->text);
		why_print_decision(driver->sched, effect->record, 0, &driver->text);
		print_indented(&driver->text);
	}
}

static void explain_job(struct driver *driver, int64_t id)
{
	struct job *job = map_get(&driver->sched->jobs, id);
	buffer_clear(&driver->text);
	if (job)
		why_print(driver->sched, job, 0, &driver->text);
	print_indented(&driver->text);
}

/* Lets the core decide and the node start what it is told to. */
static bool demo_decide(struct driver *driver, bool explain)
{
	int64_t started[JOBS];
	int count = 0;
	if (!demo_send(driver, (struct command){ .kind = COMMAND_PASS, .units = PASS_UNITS }))
		return false;
	if (explain)
		explain_decisions(driver);
	for (size_t i = 0; i < driver->effects.count && count < JOBS; i++) {
		if (driver->effects.at[i].kind == EFFECT_START)
			started[count++] = driver->effects.at[i].order.reservation_id;
	}
	for (int i = 0; i < count; i++) {
		struct command command = { .kind = COMMAND_TASK_STARTED };
		command.task.reservation_id = started[i];
		command.task.message = "";
		if (!demo_send(driver, command))
			return false;
	}
	return true;
}

/* The reservation that the job's only task has, or NULL. */
static const struct reservation_record *reservation_of(const struct world *world, int64_t job_id)
{
	const struct task_record *task = world_find(world, RECORD_TASK, job_id, 0);
	return task ? world_find(world, RECORD_RESERVATION, task->reservation_id, 0) : NULL;
}

/* What the records say, as a store has them. */
static void demo_print_state(const struct world *world)
{
	int64_t reserved_mib = 0;
	for (int64_t id = 1; id <= JOBS; id++) {
		const struct job_state_record *state = world_find(world, RECORD_JOB_STATE, id, 0);
		const struct reservation_record *reservation = reservation_of(world, id);
		int64_t mib = reservation ? reservation->parts.at[PART_MIB] : 0;
		reserved_mib += mib;
		printf("    job-%lld  %-10s %6lld MiB\n", (long long)id,
		       state ? word_of(&job_state_words, state->state) : "?", (long long)mib);
	}
	printf("    of %lld MiB, %lld are reserved and %lld free\n", (long long)CAPACITY_MIB,
	       (long long)reserved_mib, (long long)(CAPACITY_MIB - reserved_mib));
}

static bool fill_gpu(struct driver *driver)
{
	if (!demo_send(driver, (struct command){ .kind = COMMAND_START }) ||
	    !demo_report_node(driver))
		return false;
	printf("A node advertises %d devices, all with the UUID %s: that is one GPU.\n", DEVICES,
	       GPU_UUID);
	printf("Five jobs ask for %lld MiB of GPU memory each:\n", (long long)ASKED_MIB);
	if (!demo_put_tenant(driver))
		return false;
	int64_t tenant_id = driver->effects.reply_id;
	for (int64_t number = 1; number <= JOBS; number++) {
		if (!demo_submit(driver, tenant_id, number))
			return false;
	}
	if (!demo_decide(driver, false))
		return false;
	demo_print_state(&driver->world);
	printf("\nWhy does job-%d wait?\n", JOBS);
	explain_job(driver, JOBS);
	return true;
}

/* The memory of a task that has ended is not free before the node says so. */
static bool end_first(struct driver *driver)
{
	const struct reservation_record *reservation = reservation_of(&driver->world, 1);
	if (!reservation) {
		fprintf(stderr, "gpu-sim: job-1 should run and does not\n");
		return false;
	}
	struct command command = { .kind = COMMAND_TASK_EXITED };
	command.task.reservation_id = reservation->id;
	command.task.message = "";
	puts("\njob-1 ends, but its node has not measured its memory as back yet:");
	if (!demo_send(driver, command) || !demo_decide(driver, true))
		return false;
	printf("\nWhy does job-%d still wait?\n", JOBS);
	explain_job(driver, JOBS);

	command.kind = COMMAND_MEMORY_RELEASED;
	puts("\nThe node confirms that the memory is back:");
	if (!demo_send(driver, command) || !demo_decide(driver, true))
		return false;
	demo_print_state(&driver->world);
	return true;
}

int demo_main(int argc, char **argv)
{
	if (argc > 1) {
		fprintf(stderr, "gpu-sim: demo takes no argument, not '%s'\n", argv[1]);
		return 2;
	}
	struct driver driver = { .now_ms = BEGIN_MS, .check = true };
	driver_start(&driver);
	bool fine = fill_gpu(&driver) && end_first(&driver);
	driver_free(&driver);
	return fine ? 0 : 1;
}
