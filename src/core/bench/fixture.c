/* fixture.c - a core with a cluster that does at once what it is told */
#define _GNU_SOURCE
#include "core/bench/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define TOLD_MAX 64             /* devices of a node */
#define CPU_PER_GPU INT64_C(16) /* cores to one GPU of a quota */
#define HOST_PER_GPU (128 * GIB)

void fixture_begin(struct fixture *fixture)
{
	*fixture = (struct fixture){ .sched = sched_new(), .now_ms = BEGIN_MS, .random = 1 };
	fixture_send(fixture, &(struct command){ .kind = COMMAND_START });
	fixture_policy(fixture, POLICY_DEFAULT);
}

void fixture_end(struct fixture *fixture)
{
	sched_free(fixture->sched);
	effects_free(&fixture->effects);
	map_free(&fixture->by_job);
	free(fixture->running);
	free(fixture->stopping);
	free(fixture->started);
	*fixture = (struct fixture){ 0 };
}

void fixture_send(struct fixture *fixture, struct command *command)
{
	struct error error;
	command->now_ms = fixture->now_ms;
	effects_clear(&fixture->effects);
	if (!sched_apply(fixture->sched, command, &fixture->effects, &error))
		panic("%s was refused: %s", command_kind_name(command->kind), error.text);
}

int64_t fixture_tenant(struct fixture *fixture, const char *name, int64_t parent_id,
                       int64_t quota_gpu, int64_t weight)
{
	struct command command = { .kind = COMMAND_PUT_TENANT };
	bool owed = quota_gpu != QUOTA_UNSET;
	command.tenant = (struct tenant_record){
		.parent_id = parent_id,
		.name = name,
		.limit_gpu = UNLIMITED,
		.limit_cpu = UNLIMITED,
		.limit_host = UNLIMITED,
		.limit_gpu_memory = UNLIMITED,
		.limit_jobs = UNLIMITED,
		.quota_gpu = quota_gpu,
		.quota_cpu = owed ? quota_gpu * CPU_PER_GPU : QUOTA_UNSET,
		.quota_host = owed ? quota_gpu / WHOLE_GPU * HOST_PER_GPU : QUOTA_UNSET,
		.weight = weight,
		.priority = 100,
		.allow_preemption = true,
		.can_preempt_others = true,
		.max_preemptions = UNLIMITED,
		.queue_max = UNLIMITED,
		.budget_per_month = UNLIMITED,
	};
	fixture_send(fixture, &command);
	return fixture->effects.reply_id;
}

void fixture_node(struct fixture *fixture, const char *name, const char *rack,
                  const struct node_kind *kind)
{
	struct device devices[TOLD_MAX];
	char uuids[TOLD_MAX][64];
	for (int i = 0; i < kind->gpus; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "GPU-%s-%d", name, i);
		devices[i] = (struct device){
			.uuid = uuids[i],
			.model = kind->model,
			.mig_parent = "",
			.place = i,
			.capacity_mib = kind->memory_mib,
			.temperature_c = 40,
			.nvlink_group = kind->gpus > 1 ? 1 : 0,
			.healthy = true,
		};
	}
	struct command command = { .kind = COMMAND_NODE_REPORT };
	command.report = (struct node_report_command){
		.name = name,
		.boot = "1",
		.zone = "",
		.rack = rack,
		.labels = "",
		.cpu_milli = kind->cpu_milli,
		.host_bytes = kind->host_bytes,
		.devices = devices,
		.device_count = kind->gpus,
		.snapshot = true,
	};
	fixture_send(fixture, &command);
}

struct command fixture_job(int64_t tenant_id, const char *name)
{
	struct command command = { .kind = COMMAND_SUBMIT };
	command.submit.job = (struct job_record){
		.tenant_id = tenant_id,
		.name = name,
		.payload = "",
		.tasks = 1,
		.min_available = 1,
		.preemptible = true,
		.gpu_models = "",
		.node_labels = "",
		.idempotency_key = "",
	};
	return command;
}

static int64_t share_of(const struct task_order *order)
{
	int64_t share = 0;
	for (int64_t i = 0; i < order->parts.count; i++)
		share += order->parts.at[i * PART_WIDTH + PART_SHARE];
	return share;
}

static struct running *fixture_find(const struct fixture *fixture, int64_t job_id)
{
	uintptr_t place = (uintptr_t)map_get(&fixture->by_job, job_id);
	return place > 0 ? &fixture->running[place - 1] : NULL;
}

/* The reservations of a job follow each other, if not in the order of its tasks. */
static void note_start(struct fixture *fixture, const struct task_order *order)
{
	struct running *job = fixture_find(fixture, order->job_id);
	if (!job) {
		array_reserve(fixture->running, fixture->running_capacity,
		              fixture->running_count + 1);
		job = &fixture->running[fixture->running_count++];
		*job = (struct running){ order->job_id, order->reservation_id, 0, 0 };
		map_put(&fixture->by_job, job->job_id, (void *)(uintptr_t)fixture->running_count);
		array_reserve(fixture->started, fixture->started_capacity,
		              fixture->started_count + 1);
		fixture->started[fixture->started_count++] = job->job_id;
	}
	int64_t share = share_of(order);
	job->first_reservation = min64(job->first_reservation, order->reservation_id);
	job->tasks++;
	job->share += share;
	fixture->share += share;
}

static void fixture_forget(struct fixture *fixture, size_t at)
{
	struct running *last = &fixture->running[--fixture->running_count];
	map_remove(&fixture->by_job, fixture->running[at].job_id);
	fixture->share -= fixture->running[at].share;
	fixture->running[at] = *last;
	if (at < fixture->running_count)
		map_put(&fixture->by_job, last->job_id, (void *)(uintptr_t)(at + 1));
}

static void note_stop(struct fixture *fixture, const struct task_order *order)
{
	const struct running *job = fixture_find(fixture, order->job_id);
	array_reserve(fixture->stopping, fixture->stopping_capacity, fixture->stopping_count + 1);
	fixture->stopping[fixture->stopping_count++] = order->reservation_id;
	fixture->stop_orders++;
	if (job)
		fixture_forget(fixture, (size_t)(job - fixture->running));
}

/* Notes what the last command did. True if it left something to another pass. */
static bool fixture_note_effects(struct fixture *fixture)
{
	bool more = false;
	for (size_t i = 0; i < fixture->effects.count; i++) {
		const struct effect *effect = &fixture->effects.at[i];
		if (effect->kind == EFFECT_START)
			note_start(fixture, &effect->order);
		else if (effect->kind == EFFECT_STOP)
			note_stop(fixture, &effect->order);
		more = more || effect->kind == EFFECT_MORE;
	}
	return more;
}

double fixture_pass_within(struct fixture *fixture, int64_t units)
{
	struct command command = { .kind = COMMAND_PASS, .units = units };
	double longest = 0;
	bool more = true;
	fixture->started_count = 0;
	fixture->stop_orders = 0;
	while (more) {
		double begun = clock_seconds();
		fixture_send(fixture, &command);
		double took = clock_seconds() - begun;
		longest = took > longest ? took : longest;
		more = fixture_note_effects(fixture);
	}
	return longest;
}

void fixture_pass(struct fixture *fixture)
{
	fixture_pass_within(fixture, INT64_MAX);
}

void fixture_policy(struct fixture *fixture, enum policy policy)
{
	struct command command = { .kind = COMMAND_CONFIGURE, .configure = config_default() };
	command.configure.policy = (int32_t)policy;
	command.configure.queue_max = INT64_C(1) << 32; /* tasks: more than any benchmark has */
	fixture_send(fixture, &command);
}

static void send_task(struct fixture *fixture, enum command_kind kind, int64_t reservation_id)
{
	struct command command = { .kind = kind };
	command.task.reservation_id = reservation_id;
	command.task.released = true;
	command.task.message = "";
	fixture_send(fixture, &command);
}

void fixture_confirm(struct fixture *fixture)
{
	for (size_t i = 0; i < fixture->started_count; i++) {
		const struct running *job = fixture_find(fixture, fixture->started[i]);
		for (int64_t task = 0; job && task < job->tasks; task++)
			send_task(fixture, COMMAND_TASK_STARTED, job->first_reservation + task);
	}
	for (size_t i = 0; i < fixture->stopping_count; i++)
		send_task(fixture, COMMAND_MEMORY_RELEASED, fixture->stopping[i]);
	fixture->started_count = fixture->stopping_count = 0;
}

void fixture_finish(struct fixture *fixture, size_t at)
{
	const struct running job = fixture->running[at];
	for (int64_t task = 0; task < job.tasks; task++)
		send_task(fixture, COMMAND_TASK_EXITED, job.first_reservation + task);
	fixture_forget(fixture, at);
}

double clock_seconds(void)
{
	return clock_s(CLOCK_PROCESS_CPUTIME_ID);
}

double memory_resident_mib(void)
{
	char line[256];
	double kib = 0;
	FILE *file = fopen("/proc/self/status", "r");
	if (!file)
		panic("/proc/self/status cannot be read");
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "VmRSS:", 6) == 0)
			kib = strtod(line + 6, NULL);
	}
	fclose(file);
	return kib / 1024;
}
