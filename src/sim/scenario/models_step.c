/* models_step.c - what each step does, but for those in which someone asks for a model */
#include <stdlib.h>
#include <string.h>

#include "sim/scenario/models_run.h"

#define STEP_MS 1
#define ORPHAN_ID INT64_C(1000000) /* reservations that no core of the case gave out */
#define SECOND_MS INT64_C(1000)

static struct sim_model *known(struct models_run *run, const struct model_step *step)
{
	struct sim_model *model = run_model(run, step->model);
	if (!model || !model->record.id) {
		run_fail(run, "%s is not a model of the case", step->model);
		return NULL;
	}
	return model;
}

/* Ends the oldest request that is held, in this state; all of them: how many. */
static bool end_held(struct models_run *run, const struct model_step *step,
                     enum request_state state, enum request_end end, bool all)
{
	const struct sim_model *model = known(run, step);
	const struct sim_request *request;
	while (model && (request = router_oldest(run, model, state))) {
		if (!router_done(run, request->id, end))
			return false;
		if (!all)
			break;
	}
	return model && run_settle(run);
}

static bool client_gone(struct models_run *run, const struct model_step *step)
{
	const struct sim_model *model = known(run, step);
	if (!model)
		return false;
	const struct sim_request *request = router_oldest(run, model, REQUEST_WAITING);
	if (!request)
		request = router_oldest(run, model, REQUEST_FLYING);
	if (!request)
		return run_fail(run, "nobody waits for %s", step->model);
	return router_done(run, request->id, REQUEST_GONE) && run_settle(run);
}

static bool prewarm(struct models_run *run, const struct model_step *step)
{
	const char *name;
	json_t *value;
	struct json_reader reader = json_reader_of(step->json, "", NULL);
	json_t *models = json_object_get(step->json, "models");
	json_object_foreach(models, name, value)
	{
		struct sim_model *model = run_add_model(run, name);
		model->record.memory_mib = read_gib_value(&reader, value, name, ROUND_UP);
		model->record.prewarm = true;
		if (!run_put_model(run, model))
			return false;
	}
	return run_settle(run);
}

static bool foreign(struct models_run *run, const struct model_step *step)
{
	struct json_reader reader = json_reader_of(step->json, "", NULL);
	int runner = runner_named(run, step->runner);
	int gpu = (int)max64(step->gpu, 0);
	if (gpu >= run->models_case->runners[runner].gpu_count)
		return run_fail(run, "there is no GPU %d", gpu);
	run->foreign_mib[runner_gpu_place(run, runner, gpu)] = read_gib(&reader, "gib", ROUND_UP);
	return runner_report(run, runner, false) && run_settle(run);
}

/* Evenly over `count` GPUs, starting with the given one. */
static bool orphan(struct models_run *run, const struct model_step *step)
{
	int64_t count = max64(step->gpus, 1), first = max64(step->gpu, 0);
	int runner = runner_named(run, step->runner);
	struct instance instance = {
		.id = ORPHAN_ID + ++run->orphans,
		.orphan = step->model,
		.runner = runner,
		.state = INSTANCE_READY,
		.part_count = (int)count,
	};
	if (first + count > run->models_case->runners[runner].gpu_count)
		return run_fail(run, "there is no GPU %lld", (long long)(first + count - 1));
	for (int i = 0; i < count; i++) {
		instance.gpus[i] = (int)first + i;
		instance.mib[i] = (step->memory_mib + count - 1) / count;
	}
	array_reserve(run->instances, run->instance_capacity, run->instance_count + 1);
	run->instances[run->instance_count++] = instance;
	return runner_report(run, runner, true) && run_settle(run);
}

/* What was told to stop and did not confirm, of a model or all. */
static bool confirm(struct models_run *run, const struct model_step *step)
{
	const struct sim_model *model = step->model ? known(run, step) : NULL;
	if (step->model && !model)
		return false;
	for (size_t i = 0; i < run->instance_count; i++) {
		const struct instance *instance = &run->instances[i];
		if (instance->state == INSTANCE_STOPPED &&
		    (!model || instance->model_id == model->record.id))
			run_later(run, PENDING_RELEASED, instance->id);
	}
	return run_settle(run);
}

static bool restart(struct models_run *run)
{
	struct error error = { 0 };
	for (int place = 0; place < runner_gpu_count(run); place++)
		run->before_mib[place] = books_reserved_mib(run, place);
	run->restarted = true;
	sched_free(run->driver.sched);
	run->driver.sched = NULL;
	if (!driver_load(&run->driver, &error))
		return run_fail(run, "the core refused its records: %s", error.text);
	if (!run_send(run, (struct command){ .kind = COMMAND_START }))
		return false;
	for (int i = 0; i < run->models_case->runner_count; i++) {
		if (!run->silent[i] && !runner_report(run, i, true))
			return false;
	}
	return router_again(run) && run_settle(run);
}

static void models_step_describe(struct models_run *run, struct sim_model *model,
                                 const json_t *json)
{
	struct json_reader reader = json_reader_of(json, "", NULL);
	struct model_record *record = &model->record;
	record->memory_mib = read_gib_or(&reader, "memory_gib", ROUND_UP, record->memory_mib);
	record->priority = json_get_integer(&reader, "priority", 0, INT64_MAX, record->priority);
	model->own_min =
	    json_get_integer(&reader, "min_replicas", 0, INT64_MAX, record->min_replicas);
	record->min_replicas = model->own_min;
	record->max_replicas =
	    json_get_integer(&reader, "max_replicas", 0, INT64_MAX, record->max_replicas);
	record->concurrency =
	    json_get_integer(&reader, "concurrency", 0, INT64_MAX, record->concurrency);
	record->prewarm = json_get_flag(&reader, "prewarm", record->prewarm);
	record->pinned = json_get_flag(&reader, "pinned", record->pinned);
	record->uneven = json_get_flag(&reader, "uneven", record->uneven);
	record->shared = json_get_flag(&reader, "shared", record->shared);
	if (member_has(json, "idle_ttl_seconds"))
		record->idle_ttl_ms =
		    SECOND_MS * json_need_integer(&reader, "idle_ttl_seconds", 0, INT64_MAX);
	if (member_has(json, "load_timeout_seconds"))
		record->load_timeout_ms =
		    SECOND_MS * json_need_integer(&reader, "load_timeout_seconds", 0, INT64_MAX);
	const json_t *counts = json_object_get(json, "gpu_counts");
	for (size_t i = 0; i < json_array_size(counts) && i < SPLITS_MAX; i++) {
		model->splits[MODEL_SPLIT_WIDTH * i] =
		    json_integer_value(json_array_get(counts, i));
		model->splits[MODEL_SPLIT_WIDTH * i + 1] = 0;
		record->splits.count = (int64_t)i + 1;
	}
	const json_t *users = json_object_get(json, "users");
	for (size_t i = 0; i < json_array_size(users) && i < USERS_MAX; i++) {
		model->users[i] = run_tenant(run, json_string_value(json_array_get(users, i)));
		record->users.count = (int64_t)i + 1;
	}
}

static bool models_step_put_model(struct models_run *run, const struct model_step *step)
{
	struct sim_model *model = run_add_model(run, step->model);
	if (step->tenant)
		model->record.tenant_id = run_tenant(run, step->tenant);
	models_step_describe(run, model, step->json);
	return run_put_model(run, model) && run_settle(run);
}

static bool remove_model(struct models_run *run, const struct model_step *step)
{
	struct sim_model *model = known(run, step);
	struct command command = { .kind = COMMAND_REMOVE_MODEL };
	if (!model)
		return false;
	command.id = model->record.id;
	return run_send(run, command) && run_settle(run);
}

static bool models_step_put_tenant(struct models_run *run, const struct model_step *step)
{
	struct json_reader reader = json_reader_of(step->json, "", NULL);
	int64_t id = run_tenant(run, step->tenant);
	const struct tenant_record *kept = world_find(&run->driver.world, RECORD_TENANT, id, 0);
	struct command command = { .kind = COMMAND_PUT_TENANT };
	if (!kept)
		return false;
	command.tenant = *kept;
	command.tenant.name = step->tenant;
	command.tenant.quota_gpu =
	    read_thousandths_or(&reader, "quota_gpus", 1000000, kept->quota_gpu);
	command.tenant.limit_gpu =
	    read_thousandths_or(&reader, "limit_gpus", 1000000, kept->limit_gpu);
	command.tenant.can_preempt_others =
	    json_get_flag(&reader, "can_preempt", kept->can_preempt_others);
	return run_send(run, command) && run_settle(run);
}

static struct job_record models_step_job_of(struct models_run *run, const struct model_step *step)
{
	struct json_reader reader = json_reader_of(step->json, "", NULL);
	int64_t tenant_id = step->tenant ? run_tenant(run, step->tenant) : run->tenants[0].id;
	return (struct job_record){
		.tenant_id = tenant_id,
		.name = step->job,
		.payload = "",
		.priority = json_get_integer(&reader, "priority", 0, INT64_MAX,
		                             config_default().default_priority),
		.gpu_kind = step->memory_mib > 0 ? GPU_MEMORY : GPU_WHOLE,
		.gpu_count = (int32_t)max64(step->gpus, 1),
		.memory_mib = max64(step->memory_mib, 0),
		.tasks = 1,
		.min_available = 1,
		.preemptible = json_get_flag(&reader, "preemptible", true),
		.gpu_models = "",
		.node_labels = "",
		.idempotency_key = "",
	};
}

static bool job_runs(const struct models_run *run, int64_t job_id)
{
	for (size_t i = 0; i < run->instance_count; i++) {
		if (run->instances[i].job_id == job_id &&
		    run->instances[i].state != INSTANCE_STOPPED)
			return true;
	}
	return false;
}

static bool models_step_submit(struct models_run *run, const struct model_step *step)
{
	struct command command = { .kind = COMMAND_SUBMIT };
	if (run_job(run, step->job))
		return run_fail(run, "there are two jobs '%s'", step->job);
	command.submit.job = models_step_job_of(run, step);
	if (!run_send(run, command))
		return false;
	int64_t id = run->driver.effects.reply_id;
	array_reserve(run->jobs, run->job_capacity, run->job_count + 1);
	run->jobs[run->job_count++] = (struct sim_job){ step->job, id };
	if (!run_settle(run))
		return false;
	enum expectation found = job_runs(run, id) ? EXPECT_RUNNING : EXPECT_WAITING;
	if (step->expect != EXPECT_NOTHING && step->expect != found)
		return run_fail(run, "job %s should be %s and is %s", step->job,
		                expectation_word(step->expect), expectation_word(found));
	if (step->evicted >= 0 && step->evicted != run->evicted)
		return run_fail(run, "%lld slots should have gone for job %s, and %lld did",
		                (long long)step->evicted, step->job, (long long)run->evicted);
	if (step->preempted >= 0 && step->preempted != run->preempted)
		return run_fail(run, "%lld tasks should have gone for job %s, and %lld did",
		                (long long)step->preempted, step->job, (long long)run->preempted);
	return true;
}

/* The job's task exits, and its memory is back. */
static bool models_step_end(struct models_run *run, const struct model_step *step)
{
	const struct sim_job *job = run_job(run, step->job);
	struct command command = { .kind = COMMAND_TASK_EXITED };
	for (size_t i = 0; job && i < run->instance_count; i++) {
		if (run->instances[i].job_id != job->id)
			continue;
		command.task.reservation_id = run->instances[i].id;
		command.task.released = true;
		command.task.message = "";
		runner_forget(run, command.task.reservation_id);
		return run_send(run, command) && run_settle(run);
	}
	return run_fail(run, "job %s does not run", step->job);
}

static bool wait(struct models_run *run, const struct model_step *step)
{
	run->driver.now_ms += step->wait_ms;
	return run_send(run, (struct command){ .kind = COMMAND_TIME }) && run_settle(run);
}

/* What was left starting is ready now. */
static bool ready(struct models_run *run, const struct model_step *step)
{
	struct sim_model *model = known(run, step);
	if (!model)
		return false;
	model->left = false;
	model->answer = ANSWER_READY;
	for (size_t i = 0; i < run->instance_count; i++) {
		if (run->instances[i].model_id == model->record.id &&
		    run->instances[i].state == INSTANCE_STARTING)
			run_later(run, PENDING_LOAD, run->instances[i].id);
	}
	return run_settle(run);
}

/* The model's oldest instance ends by itself, or is just not there any more. */
static bool lose(struct models_run *run, const struct model_step *step, bool reported)
{
	const struct sim_model *model = known(run, step);
	const struct instance *oldest = NULL;
	for (size_t i = 0; model && i < run->instance_count; i++) {
		const struct instance *instance = &run->instances[i];
		if (instance->model_id == model->record.id &&
		    (!oldest || instance->id < oldest->id))
			oldest = instance;
	}
	if (!oldest)
		return model && run_fail(run, "%s has no slot", step->model);
	struct command command = { .kind = COMMAND_SLOT_EXITED };
	command.slot.reservation_id = oldest->id;
	command.slot.message = "it died";
	command.slot.address = "";
	command.slot.released = true;
	int runner = oldest->runner;
	runner_forget(run, oldest->id);
	bool fine = reported ? run_send(run, command) : runner_report(run, runner, true);
	return fine && run_settle(run);
}

static bool silent(struct models_run *run, const struct model_step *step)
{
	struct command command = { .kind = COMMAND_NODE_STATE };
	int runner = runner_named(run, step->runner);
	const char *name = run->models_case->runners[runner].name;
	const char *state = json_string_value(json_object_get(step->json, "state"));
	run->silent[runner] = true;
	if (strcmp(state, "dead") == 0) {
		command.kind = COMMAND_NODE_DEAD;
		command.node = name;
	} else {
		command.node_state.name = name;
		command.node_state.state = strcmp(state, "lost") == 0 ? NODE_LOST : NODE_UNKNOWN;
	}
	return run_send(run, command) && run_settle(run);
}

static bool come_back(struct models_run *run, const struct model_step *step)
{
	int runner = runner_named(run, step->runner);
	run->silent[runner] = false;
	for (size_t i = run->instance_count; i-- > 0;) {
		if (json_is_true(json_object_get(step->json, "empty")) &&
		    run->instances[i].runner == runner)
			runner_forget(run, run->instances[i].id);
	}
	return runner_report(run, runner, true) && run_settle(run);
}

static bool run_one(struct models_run *run, const struct model_step *step)
{
	struct sim_model *model;
	switch (step->kind) {
	case STEP_REQUEST:
		return step_request(run, step);
	case STEP_BUSY:
		return step_busy(run, step);
	case STEP_FINISH:
		return end_held(run, step, REQUEST_FLYING, REQUEST_SUCCEEDED, true);
	case STEP_IDLE:
		return step_idle(run, step);
	case STEP_DISPATCH:
		return step_dispatch(run, step);
	case STEP_RELEASE:
		return end_held(run, step, REQUEST_FLYING, REQUEST_SUCCEEDED, false);
	case STEP_PREWARM:
		return prewarm(run, step);
	case STEP_FOREIGN:
		return foreign(run, step);
	case STEP_ORPHAN:
		return orphan(run, step);
	case STEP_CONFIRM:
		return confirm(run, step);
	case STEP_RESTART:
		return restart(run);
	case STEP_SETTLE:
	case STEP_CHECK:
		return run_settle(run);
	case STEP_MODEL:
		return models_step_put_model(run, step);
	case STEP_REMOVE:
		return remove_model(run, step);
	case STEP_TENANT:
		return models_step_put_tenant(run, step);
	case STEP_SUBMIT:
		return models_step_submit(run, step);
	case STEP_END:
		return models_step_end(run, step);
	case STEP_WAIT:
		return wait(run, step);
	case STEP_LOADS:
		model = run_add_model(run, step->model);
		model->answer = step->answer;
		return true;
	case STEP_READY:
		return ready(run, step);
	case STEP_DIE:
		return lose(run, step, true);
	case STEP_VANISH:
		return lose(run, step, false);
	case STEP_CLIENT_GONE:
		return client_gone(run, step);
	case STEP_SILENT:
		return silent(run, step);
	case STEP_RETURN:
		return come_back(run, step);
	case STEP_KINDS:
		break;
	}
	return run_fail(run, "there is no such step");
}

bool step_run(struct models_run *run, const struct model_step *step)
{
	run->driver.now_ms += STEP_MS;
	run->withhold = step->withhold;
	run->evicted = run->preempted = 0;
	return run_one(run, step) && check_step(run, step);
}
