/* models_run.c - the core between simulated runners and routers, until nothing changes */
#include "sim/scenario/models_run.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN_MS INT64_C(1000000)
#define PASS_UNITS INT64_C(1000000000)
enum { ROUNDS_MAX = 10000 };

bool run_fail(struct models_run *run, const char *format, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	buffer_print(run->reason, "%s%s", run->reason->size > 0 ? "; " : "", text);
	return false;
}

void run_later(struct models_run *run, enum pending_kind kind, int64_t id)
{
	array_reserve(run->pending, run->pending_capacity, run->pending_count + 1);
	run->pending[run->pending_count++] = (struct pending){ kind, id };
}

static bool models_run_note_effects(struct models_run *run)
{
	for (size_t i = 0; i < run->driver.effects.count; i++) {
		const struct effect *effect = &run->driver.effects.at[i];
		bool order = effect->kind == EFFECT_LOAD || effect->kind == EFFECT_STOP ||
		             effect->kind == EFFECT_START;
		if (order && !runner_ordered(run, effect))
			return false;
		if (effect->kind == EFFECT_ROUTE && !router_told(run, &effect->route))
			return false;
	}
	return true;
}

bool run_send(struct models_run *run, struct command command)
{
	struct error error = { 0 };
	if (!driver_send(&run->driver, command, &error))
		return run_fail(run, "the core refused %s: %s", command_kind_name(command.kind),
		                error.text);
	return models_run_note_effects(run);
}

/* What runners and routers have to say, and what follows from that. */
static bool answer_pending(struct models_run *run)
{
	for (size_t i = 0; i < run->pending_count; i++) {
		struct pending pending = run->pending[i];
		bool fine = pending.kind == PENDING_DONE
		                ? router_done(run, pending.id, REQUEST_SUCCEEDED)
		                : runner_answer(run, pending);
		if (!fine)
			return false;
	}
	run->pending_count = 0;
	return true;
}

/* One pass, of which the units do not run out. */
static bool pass(struct models_run *run, bool *changed)
{
	if (!run_send(run, (struct command){ .kind = COMMAND_PASS, .units = PASS_UNITS }))
		return false;
	*changed = run->driver.effects.count > 0;
	return true;
}

/* A minimum that was only to bring one more slot about ends when that is there. */
static bool relax_minimum(struct models_run *run, bool *changed)
{
	for (size_t i = 0; i < run->model_count; i++) {
		struct sim_model *model = &run->models[i];
		if (model->wanted == 0 || books_slots(run, model, false) < model->wanted)
			continue;
		model->wanted = 0;
		model->record.min_replicas = model->own_min;
		*changed = true;
		if (!run_put_model(run, model))
			return false;
	}
	return true;
}

bool run_settle(struct models_run *run)
{
	for (int round = 0; round < ROUNDS_MAX; round++) {
		bool changed;
		if (!answer_pending(run) || !pass(run, &changed))
			return false;
		changed = changed || run->pending_count > 0;
		if (!changed && !relax_minimum(run, &changed))
			return false;
		if (!changed)
			return true;
	}
	return run_fail(run, "it does not settle: something changes after %d passes", ROUNDS_MAX);
}

struct sim_model *run_model(struct models_run *run, const char *name)
{
	for (size_t i = 0; i < run->model_count; i++) {
		if (strcmp(run->models[i].name, name) == 0)
			return &run->models[i];
	}
	return NULL;
}

struct sim_model *run_model_by_id(struct models_run *run, int64_t id)
{
	for (size_t i = 0; id && i < run->model_count; i++) {
		if (run->models[i].record.id == id)
			return &run->models[i];
	}
	return NULL;
}

struct sim_model *run_add_model(struct models_run *run, const char *name)
{
	struct sim_model *model = run_model(run, name);
	if (model)
		return model;
	array_reserve(run->models, run->model_capacity, run->model_count + 1);
	model = &run->models[run->model_count++];
	*model = (struct sim_model){
		.name = name,
		.record = {
			.tenant_id = run->tenants[0].id,
			.name = name,
			.runtime = RUNTIME_VLLM,
			.command = "",
			.payload = "",
			.kv_cache = "",
			.priority = config_default().default_priority,
			.policy = (int32_t)run->models_case->policy,
			.message = "",
			.shared = true,
		},
	};
	return model;
}

bool run_put_model(struct models_run *run, struct sim_model *model)
{
	struct command command = { .kind = COMMAND_PUT_MODEL };
	model->record.splits.at = model->splits;
	model->record.users.at = model->users;
	model->record.node_labels = model->labels;
	model->record.gpu_models = model->gpu_models;
	model->record.max_replicas = max64(model->record.max_replicas, model->record.min_replicas);
	command.model.model = model->record;
	if (!run_send(run, command))
		return false;
	if (run->driver.effects.reply_id)
		model->record.id = run->driver.effects.reply_id;
	return true;
}

static struct tenant_record plain_tenant(const char *name)
{
	return (struct tenant_record){
		.name = name,
		.limit_gpu = UNLIMITED,
		.limit_cpu = UNLIMITED,
		.limit_host = UNLIMITED,
		.limit_gpu_memory = UNLIMITED,
		.limit_jobs = UNLIMITED,
		.quota_gpu = UNLIMITED,
		.quota_cpu = UNLIMITED,
		.quota_host = UNLIMITED,
		.weight = 1000,
		.priority = 100,
		.allow_preemption = true,
		.can_preempt_others = true,
		.max_preemptions = UNLIMITED,
		.queue_max = UNLIMITED,
		.budget_per_month = UNLIMITED,
	};
}

int64_t run_tenant(struct models_run *run, const char *name)
{
	for (size_t i = 0; i < run->tenant_count; i++) {
		if (strcmp(run->tenants[i].name, name) == 0)
			return run->tenants[i].id;
	}
	struct command command = { .kind = COMMAND_PUT_TENANT };
	command.tenant = plain_tenant(name);
	if (!run_send(run, command))
		return 0;
	array_reserve(run->tenants, run->tenant_capacity, run->tenant_count + 1);
	run->tenants[run->tenant_count++] =
	    (struct sim_tenant){ name, run->driver.effects.reply_id };
	return run->driver.effects.reply_id;
}

struct sim_job *run_job(struct models_run *run, const char *name)
{
	for (size_t i = 0; i < run->job_count; i++) {
		if (strcmp(run->jobs[i].name, name) == 0)
			return &run->jobs[i];
	}
	return NULL;
}

bool run_begin(struct models_run *run)
{
	size_t gpus = (size_t)runner_gpu_count(run) + 1;
	run->driver.now_ms = BEGIN_MS;
	run->driver.check = true;
	driver_start(&run->driver);
	run->silent = memory_zero((size_t)run->models_case->runner_count + 1, sizeof(bool));
	run->foreign_mib = memory_zero(gpus, sizeof(int64_t));
	run->before_mib = memory_zero(gpus, sizeof(int64_t));
	if (!run_send(run, (struct command){ .kind = COMMAND_START }) || !run_tenant(run, "house"))
		return false;
	for (int i = 0; i < run->models_case->runner_count; i++) {
		if (!runner_report(run, i, true))
			return false;
	}
	return true;
}

void run_free(struct models_run *run)
{
	driver_free(&run->driver);
	free(run->models);
	free(run->tenants);
	free(run->jobs);
	free(run->instances);
	free(run->requests);
	free(run->pending);
	free(run->silent);
	free(run->foreign_mib);
	free(run->before_mib);
}
