/* workload.c - random commands for a real core, with nodes that behave */
#include "store/test/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENANTS = 3, NODES = 4, GPUS = 4 };

static const char *const tenant_names[TENANTS] = { "lab", "team b", "o'hara" };

void workload_init(struct workload *workload, struct sched *sched, uint64_t seed)
{
	*workload = (struct workload){ .sched = sched, .seed = seed, .now_ms = 1000000 };
	if (sched_meta(sched)->now_ms > workload->now_ms)
		workload->now_ms = sched_meta(sched)->now_ms;
	workload->last_job_id = sched_meta(sched)->last_job_id;
}

void workload_free(struct workload *workload)
{
	sched_free(workload->sched);
	effects_free(&workload->effects);
}

static int pick(struct workload *workload, int bound)
{
	return (int)random_below(&workload->seed, (uint64_t)bound);
}

static struct command tenant_command(const char *name)
{
	return (struct command){ .kind = COMMAND_PUT_TENANT,
		                 .tenant = { .name = name,
		                             .limit_gpu = UNLIMITED,
		                             .limit_cpu = UNLIMITED,
		                             .limit_host = UNLIMITED,
		                             .limit_gpu_memory = UNLIMITED,
		                             .limit_jobs = UNLIMITED,
		                             .quota_gpu = 4 * WHOLE_GPU,
		                             .quota_cpu = UNLIMITED,
		                             .quota_host = UNLIMITED,
		                             .weight = 1000,
		                             .priority = 500,
		                             .allow_preemption = true,
		                             .can_preempt_others = true,
		                             .max_preemptions = UNLIMITED,
		                             .queue_max = UNLIMITED,
		                             .budget_per_month = UNLIMITED } };
}

/* A tenant has another price from now on. */
static struct command price_command(struct workload *workload)
{
	int place = pick(workload, TENANTS);
	struct command command = tenant_command(tenant_names[place]);
	command.tenant.id = 1 + place;
	command.tenant.cost_per_gpu_hour = (int64_t)pick(workload, 5) * 1500000;
	return command;
}

static struct command report_command(struct workload *workload, int node)
{
	static struct device devices[GPUS];
	static char uuids[GPUS][32];
	static int64_t running[3 * WORKLOAD_RUNNING_MAX];
	int64_t count = 0;

	snprintf(workload->name, sizeof(workload->name), "node-%d", node);
	for (int i = 0; i < GPUS; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "GPU-%d-%d", node, i);
		devices[i] = (struct device){ .uuid = uuids[i],
			                      .model = "H100",
			                      .mig_parent = "",
			                      .place = i,
			                      .capacity_mib = 81920,
			                      .overhead_mib = 500,
			                      .foreign_mib = pick(workload, 4) * 100,
			                      .temperature_c = 40,
			                      .healthy = true };
	}
	for (int i = 0; i < workload->held_count; i++)
		running[count++] = workload->held[i];
	for (int i = 0; i < workload->running_count; i++)
		running[count++] = workload->running[i];
	for (int i = 0; i < workload->stopping_count; i++)
		running[count++] = workload->stopping[i];
	return (struct command){ .kind = COMMAND_NODE_REPORT,
		                 .report = { .name = workload->name,
		                             .boot = "b\xc3\xbc\xff\x01",
		                             .zone = "it's \"a\" zone\\",
		                             .rack = "r\t1",
		                             .labels = "a=b\nc=d",
		                             .cpu_milli = 64000,
		                             .host_bytes = INT64_C(1) << 40,
		                             .devices = devices,
		                             .device_count = GPUS,
		                             .running = running,
		                             .running_count = count } };
}

static struct command submit_command(struct workload *workload)
{
	static const int64_t uneven[2] = { 30000, 10000 };
	enum gpu_kind kinds[] = { GPU_WHOLE, GPU_FRACTION, GPU_MEMORY, GPU_UNEVEN };
	enum gpu_kind kind = kinds[pick(workload, 4)];
	struct command command = { .kind = COMMAND_SUBMIT };

	snprintf(workload->name, sizeof(workload->name), "train-%d", pick(workload, 10));
	snprintf(workload->key, sizeof(workload->key), "key-%lld", (long long)workload->steps);
	command.submit.job = (struct job_record){
		.tenant_id = 1 + pick(workload, TENANTS),
		.name = workload->name,
		.payload = "{\"command\":[\"python\",\"it's\\\\.py\"]}",
		.priority = pick(workload, 1000),
		.gpu_kind = (int32_t)kind,
		.gpu_count = kind == GPU_UNEVEN ? 2 : 1 + pick(workload, 2),
		.fraction = kind == GPU_FRACTION ? 500 : 0,
		.memory_mib = kind == GPU_MEMORY ? 20000 : 0,
		.cpu_milli = 1000,
		.host_bytes = INT64_C(1) << 30,
		.tasks = 1 + pick(workload, 2),
		.preemptible = pick(workload, 2) == 0,
		.gpu_models = "",
		.node_labels = pick(workload, 4) == 0 ? "a=b" : "",
		.idempotency_key = pick(workload, 2) == 0 ? workload->key : "",
	};
	if (kind == GPU_UNEVEN)
		command.submit.job.uneven = (struct rows){ uneven, 2 };
	if (pick(workload, 10) == 0) {
		command.submit.array_from = 1;
		command.submit.array_to = 3;
	}
	return command;
}

/* Takes one out of a list; 0 if there is none. */
static int64_t workload_take(struct workload *workload, int64_t *list, int *count)
{
	if (*count == 0)
		return 0;
	int place = pick(workload, *count);
	int64_t taken = list[place];
	list[place] = list[--*count];
	return taken;
}

static void workload_put(int64_t *list, int *count, int64_t id)
{
	INVARIANT(*count < WORKLOAD_RUNNING_MAX);
	list[(*count)++] = id;
}

static struct command task_command(enum command_kind kind, int64_t id)
{
	struct command command = { .kind = kind };
	command.task.reservation_id = id;
	command.task.message = "";
	command.task.released = true;
	return command;
}

/* A model of which one slot is always wanted. */
static struct command model_command(struct workload *workload)
{
	return (
	    struct command){ .kind = COMMAND_PUT_MODEL,
		             .model = { .model = { .id = sched_meta(workload->sched)->last_model_id,
		                                   .tenant_id = 1,
		                                   .name = "it's a model",
		                                   .runtime = RUNTIME_VLLM,
		                                   .memory_mib = 10000 + pick(workload, 3),
		                                   .min_replicas = 1,
		                                   .gpu_models = "",
		                                   .node_labels = "",
		                                   .kv_cache = "",
		                                   .command = "",
		                                   .message = "",
		                                   .payload = "" } } };
}

static struct command nodes_do(struct workload *workload)
{
	if (workload->loading) {
		struct command command = { .kind = COMMAND_SLOT_READY };
		command.slot.reservation_id = workload->loading;
		command.slot.address = "node:8000";
		command.slot.message = "";
		workload->loading = 0;
		return command;
	}
	int64_t id = workload_take(workload, workload->held, &workload->held_count);
	if (id) {
		workload_put(workload->running, &workload->running_count, id);
		return task_command(COMMAND_TASK_STARTED, id);
	}
	id = workload_take(workload, workload->stopping, &workload->stopping_count);
	if (id)
		return task_command(COMMAND_MEMORY_RELEASED, id);
	id = workload_take(workload, workload->running, &workload->running_count);
	if (!id)
		return (struct command){ .kind = COMMAND_TIME };
	struct command command = task_command(COMMAND_TASK_EXITED, id);
	command.task.exit_code = pick(workload, 3) == 0;
	return command;
}

static struct command workload_set_up(struct workload *workload)
{
	struct config_record config = config_default();
	config.retention_ms = 5000;
	config.default_priority = 100;
	if (workload->steps == 0)
		return (struct command){ .kind = COMMAND_START };
	if (workload->steps == 1)
		return (struct command){ .kind = COMMAND_CONFIGURE, .configure = config };
	if (workload->steps < 2 + TENANTS)
		return tenant_command(tenant_names[workload->steps - 2]);
	return report_command(workload, (int)workload->steps - 2 - TENANTS);
}

static struct command choose(struct workload *workload)
{
	if (sched_meta(workload->sched)->last_node_id < NODES)
		return workload_set_up(workload);
	if (pick(workload, 64) == 0)
		return model_command(workload);
	if (pick(workload, 64) == 0)
		return price_command(workload);
	if (pick(workload, 32) == 0)
		return (struct command){ .kind = COMMAND_REQUEUE,
			                 .id = 1 + pick(workload, (int)workload->last_job_id + 1) };
	switch (pick(workload, 12)) {
	case 0:
	case 1:
	case 2:
		return submit_command(workload);
	case 3:
		return (struct command){ .kind = COMMAND_CANCEL,
			                 .id = 1 + pick(workload, (int)workload->last_job_id + 1) };
	case 4:
		return (struct command){ .kind = COMMAND_REPRIORITISE,
			                 .reprioritise = {
					     1 + pick(workload, (int)workload->last_job_id + 1),
					     pick(workload, 1000) } };
	case 5:
		return report_command(workload, pick(workload, NODES));
	case 6:
	case 7:
	case 8:
		return nodes_do(workload);
	case 9:
		workload->now_ms += 1000;
		return (struct command){ .kind = COMMAND_TIME };
	default:
		return (struct command){ .kind = COMMAND_PASS, .units = INT64_MAX };
	}
}

static void workload_drop(int64_t *list, int *count, int64_t id)
{
	for (int i = 0; i < *count; i++)
		if (list[i] == id)
			list[i--] = list[--*count];
}

/* What nodes are told, they do. */
static void saw(struct workload *workload)
{
	for (size_t i = 0; i < workload->effects.count; i++) {
		const struct effect *effect = &workload->effects.at[i];
		int64_t id = effect->order.reservation_id;
		if (effect->kind == EFFECT_LOAD)
			workload->loading = effect->load.reservation_id;
		if (effect->kind == EFFECT_START)
			workload_put(workload->held, &workload->held_count, id);
		if (effect->kind != EFFECT_STOP)
			continue;
		workload_drop(workload->held, &workload->held_count, id);
		workload_drop(workload->running, &workload->running_count, id);
		workload_put(workload->stopping, &workload->stopping_count, id);
	}
	workload->last_job_id = sched_meta(workload->sched)->last_job_id;
}

void workload_step(struct workload *workload)
{
	struct error error;
	do {
		workload->now_ms += pick(workload, 50);
		workload->command = choose(workload);
		workload->command.now_ms = workload->now_ms;
		effects_clear(&workload->effects);
		workload->steps++;
	} while (!sched_apply(workload->sched, &workload->command, &workload->effects, &error));
	saw(workload);
}
