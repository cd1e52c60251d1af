/* models_runner.c - nodes that load, unload and report, and have only the memory they have */
#include <stdio.h>
#include <string.h>

#include "sim/scenario/models_run.h"

#define CPU_MILLI INT64_C(1000000)
#define HOST_BYTES (INT64_C(1) << 44)

enum { NAME_MAX_SIZE = 128 };

static const struct case_runner *case_runner(const struct models_run *run, int runner)
{
	return &run->models_case->runners[runner];
}

int runner_named(const struct models_run *run, const char *name)
{
	for (int i = 0; name && i < run->models_case->runner_count; i++) {
		if (strcmp(case_runner(run, i)->name, name) == 0)
			return i;
	}
	return 0;
}

int runner_of_node(const struct models_run *run, int64_t node_id)
{
	const struct node_record *node = world_find(&run->driver.world, RECORD_NODE, node_id, 0);
	INVARIANT(node);
	return runner_named(run, node->name);
}

int runner_gpu_place(const struct models_run *run, int runner, int gpu)
{
	int place = gpu;
	for (int i = 0; i < runner; i++)
		place += case_runner(run, i)->gpu_count;
	return place;
}

int runner_gpu_count(const struct models_run *run)
{
	return runner_gpu_place(run, (int)run->models_case->runner_count, 0);
}

struct instance *runner_find(struct models_run *run, int64_t id)
{
	for (size_t i = 0; i < run->instance_count; i++) {
		if (run->instances[i].id == id)
			return &run->instances[i];
	}
	return NULL;
}

void runner_forget(struct models_run *run, int64_t id)
{
	struct instance *instance = runner_find(run, id);
	if (instance)
		*instance = run->instances[--run->instance_count];
}

static int64_t part_on(const struct instance *instance, int runner, int gpu)
{
	for (int i = 0; i < instance->part_count; i++) {
		if (instance->runner == runner && instance->gpus[i] == gpu)
			return instance->mib[i];
	}
	return 0;
}

int64_t runner_used_mib(const struct models_run *run, int runner, int gpu)
{
	int64_t used = run->foreign_mib[runner_gpu_place(run, runner, gpu)];
	for (size_t i = 0; i < run->instance_count; i++)
		used += part_on(&run->instances[i], runner, gpu);
	return used;
}

/* What a report points to. */
struct report {
	struct device devices[GPUS_PER_NODE_MAX];
	char uuids[GPUS_PER_NODE_MAX][NAME_MAX_SIZE], models[GPUS_PER_NODE_MAX][16];
	char labels[NAME_MAX_SIZE];
	struct measurement *measurements;
	struct slot_report *slots;
	int64_t *running;
	int64_t measured, slot_count, running_count;
};

static void list_devices(const struct models_run *run, int runner, struct report *report)
{
	const struct case_runner *given = case_runner(run, runner);
	for (int i = 0; i < given->gpu_count; i++) {
		snprintf(report->uuids[i], NAME_MAX_SIZE, "GPU-%s-%d", given->name, i);
		snprintf(report->models[i], sizeof(report->models[i]), "gpu-%d", i);
		report->devices[i] = (struct device){
			.uuid = report->uuids[i],
			.model = report->models[i],
			.mig_parent = "",
			.place = i,
			.capacity_mib = given->gpu_mib[i],
			.foreign_mib = run->foreign_mib[runner_gpu_place(run, runner, i)],
			.temperature_c = 40,
			.healthy = true,
		};
	}
}

static void list_instance(struct models_run *run, const struct instance *instance,
                          struct report *report)
{
	const struct sim_model *model = run_model_by_id(run, instance->model_id);
	report->running[report->running_count++] = instance->id;
	for (int p = 0; p < instance->part_count; p++)
		report->measurements[report->measured++] = (struct measurement){
			.reservation_id = instance->id,
			.uuid = report->uuids[instance->gpus[p]],
			.memory_mib = instance->mib[p],
		};
	if (instance->job_id || instance->state == INSTANCE_STOPPED)
		return;
	report->slots[report->slot_count++] = (struct slot_report){
		.reservation_id = instance->id,
		.model = instance->orphan ? instance->orphan
		         : model          ? model->name
		                          : "",
		.address = instance->state == INSTANCE_READY ? "http://runner" : "",
		.ready = instance->state == INSTANCE_READY,
	};
}

/* What the core has taken for a slot of its own is one from now on. */
static void note_adopted(struct models_run *run)
{
	for (size_t i = 0; i < run->instance_count; i++) {
		struct instance *instance = &run->instances[i];
		const struct slot_record *slot =
		    instance->orphan ? books_slot(run, instance->id) : NULL;
		if (!slot)
			continue;
		instance->model_id = slot->model_id;
		instance->orphan = NULL;
	}
}

bool runner_report(struct models_run *run, int runner, bool snapshot)
{
	const struct case_runner *given = case_runner(run, runner);
	struct arena arena = { 0 };
	struct report *report = arena_alloc(&arena, sizeof(*report));
	size_t most = run->instance_count + 1;
	*report = (struct report){
		.measurements = arena_alloc(&arena, most * PARTS_MAX * sizeof(struct measurement)),
		.slots = arena_alloc(&arena, most * sizeof(struct slot_report)),
		.running = arena_alloc(&arena, most * sizeof(int64_t)),
	};
	list_devices(run, runner, report);
	for (size_t i = 0; i < run->instance_count; i++) {
		if (run->instances[i].runner == runner)
			list_instance(run, &run->instances[i], report);
	}
	snprintf(report->labels, sizeof(report->labels), "runner=%s", given->name);
	struct command command = { .kind = COMMAND_NODE_REPORT };
	command.report = (struct node_report_command){
		.name = given->name,
		.boot = "1",
		.zone = "",
		.rack = "",
		.labels = report->labels,
		.cpu_milli = CPU_MILLI,
		.host_bytes = HOST_BYTES,
		.devices = report->devices,
		.device_count = given->gpu_count,
		.measurements = report->measurements,
		.measurement_count = report->measured,
		.running = report->running,
		.running_count = report->running_count,
		.snapshot = snapshot,
		.slots = report->slots,
		.slot_count = report->slot_count,
	};
	bool fine = run_send(run, command);
	note_adopted(run);
	arena_free(&arena);
	return fine;
}

/* The GPU has the memory, and nothing else is being loaded onto it. */
static bool check_start(struct models_run *run, const struct instance *started)
{
	const struct case_runner *given = case_runner(run, started->runner);
	for (int p = 0; p < started->part_count; p++) {
		int gpu = started->gpus[p];
		int64_t used = runner_used_mib(run, started->runner, gpu);
		if (used + started->mib[p] > given->gpu_mib[gpu])
			return run_fail(run,
			                "%s was told to put %lld MiB on GPU %d, which has %lld "
			                "of %lld MiB in use",
			                given->name, (long long)started->mib[p], gpu,
			                (long long)used, (long long)given->gpu_mib[gpu]);
		for (size_t i = 0; i < run->instance_count; i++) {
			const struct instance *other = &run->instances[i];
			if (started->model_id && other->model_id &&
			    other->state == INSTANCE_STARTING &&
			    part_on(other, started->runner, gpu))
				return run_fail(
				    run, "%s was told to load two models onto GPU %d at once",
				    given->name, gpu);
		}
	}
	return true;
}

static bool add_instance(struct models_run *run, struct instance instance, int64_t node_id,
                         const struct rows *parts)
{
	instance.runner = runner_of_node(run, node_id);
	for (int64_t p = 0; p < parts->count; p++) {
		const int64_t *part = parts->at + p * PART_WIDTH;
		int place = books_gpu_place(run, part[PART_GPU]);
		instance.gpus[p] = place - runner_gpu_place(run, instance.runner, 0);
		instance.mib[p] = part[PART_MIB];
	}
	instance.part_count = (int)parts->count;
	/* What it was told before, or cannot hear. */
	if (runner_find(run, instance.id) || run->silent[instance.runner])
		return true;
	if (!check_start(run, &instance))
		return false;
	array_reserve(run->instances, run->instance_capacity, run->instance_count + 1);
	run->instances[run->instance_count++] = instance;
	run_later(run, instance.job_id ? PENDING_STARTED : PENDING_LOAD, instance.id);
	return true;
}

static bool models_runner_stop(struct models_run *run, const struct task_order *order)
{
	struct instance *instance = runner_find(run, order->reservation_id);
	if (run->silent[runner_of_node(run, order->node_id)])
		return true;
	if (!instance) {
		run_later(run, PENDING_RELEASED, order->reservation_id);
		return true;
	}
	if (instance->state != INSTANCE_STOPPED) {
		run->evicted += instance->model_id != 0;
		run->preempted += instance->job_id != 0;
		instance->state = INSTANCE_STOPPED;
		if (!run->withhold)
			run_later(run, PENDING_RELEASED, instance->id);
	}
	return true;
}

bool runner_ordered(struct models_run *run, const struct effect *effect)
{
	const struct load_order *load = &effect->load;
	const struct task_order *order = &effect->order;
	if (effect->kind == EFFECT_LOAD)
		return add_instance(
		    run,
		    (struct instance){ .id = load->reservation_id, .model_id = load->model_id },
		    load->node_id, &load->parts);
	if (effect->kind == EFFECT_START)
		return add_instance(
		    run, (struct instance){ .id = order->reservation_id, .job_id = order->job_id },
		    order->node_id, &order->parts);
	return models_runner_stop(run, order);
}

static bool tell_of_slot(struct models_run *run, enum command_kind kind, int64_t id)
{
	struct command command = { .kind = kind };
	command.slot.reservation_id = id;
	command.slot.address = "http://runner";
	command.slot.message = "CUDA error: the model cannot be loaded";
	command.slot.released = true;
	return run_send(run, command);
}

/* Answers an order to load. */
static bool loaded(struct models_run *run, int64_t id)
{
	struct instance *instance = runner_find(run, id);
	if (!instance || instance->state != INSTANCE_STARTING)
		return true;
	const struct sim_model *model = run_model_by_id(run, instance->model_id);
	enum load_answer answer = model->left ? ANSWER_STARTING : model->answer;
	if (answer == ANSWER_FAIL) {
		runner_forget(run, id);
		return tell_of_slot(run, COMMAND_SLOT_EXITED, id);
	}
	if (!tell_of_slot(run, COMMAND_SLOT_LOADING, id))
		return false;
	if (answer == ANSWER_STARTING)
		return true;
	runner_find(run, id)->state = INSTANCE_READY;
	return tell_of_slot(run, COMMAND_SLOT_READY, id);
}

static bool tell_of_task(struct models_run *run, enum command_kind kind, int64_t id)
{
	struct command command = { .kind = kind };
	command.task.reservation_id = id;
	command.task.message = "";
	return run_send(run, command);
}

static bool released(struct models_run *run, int64_t id)
{
	const struct instance *instance = runner_find(run, id);
	/* What the core does not know it only learns of by a report. */
	bool orphan = instance && instance->orphan;
	int runner = instance ? instance->runner : 0;
	runner_forget(run, id);
	if (orphan)
		return runner_report(run, runner, true);
	return !books_reservation(run, id) || tell_of_task(run, COMMAND_MEMORY_RELEASED, id);
}

bool runner_answer(struct models_run *run, struct pending pending)
{
	const struct instance *instance;
	switch (pending.kind) {
	case PENDING_LOAD:
		return loaded(run, pending.id);
	case PENDING_RELEASED:
		return released(run, pending.id);
	case PENDING_STARTED:
		instance = runner_find(run, pending.id);
		if (!instance || instance->state != INSTANCE_STARTING)
			return true;
		runner_find(run, pending.id)->state = INSTANCE_READY;
		return tell_of_task(run, COMMAND_TASK_STARTED, pending.id);
	case PENDING_REPORT:
		return runner_report(run, (int)pending.id, true);
	default:
		return true;
	}
}
