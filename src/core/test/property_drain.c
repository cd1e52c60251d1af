/* property_drain.c - when all is well again, everything that can run runs and ends */
#include "core/test/property_drain.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define MINUTE_MS 60000
#define QUIET_ROUNDS 20 /* with an empty ledger, until nothing more is expected */
#define ROUNDS 20000

static struct command at_once(const struct generator *generator, enum command_kind kind)
{
	return (struct command){ .kind = kind, .now_ms = generator->now_ms };
}

static void lift_limits(struct run *run, struct generator *generator)
{
	struct command command = at_once(generator, COMMAND_CONFIGURE);

	command.configure = config_default();
	const struct config_record *before = keeper_find(&run->keeper, RECORD_CONFIG, 1, 0);
	command.configure.policy = before->policy;
	command.configure.loads_per_gpu = before->loads_per_gpu;
	run_command(run, &command);
	for (size_t i = 0; i < keeper_tenant_count(&run->keeper); i++) {
		const struct tenant_record *old = keeper_tenant(&run->keeper, i);
		command = at_once(generator, COMMAND_PUT_TENANT);
		command.tenant = (struct tenant_record){
			.id = old->id,
			.parent_id = old->parent_id,
			.name = old->name,
			.limit_gpu = UNLIMITED,
			.limit_cpu = UNLIMITED,
			.limit_host = UNLIMITED,
			.limit_gpu_memory = UNLIMITED,
			.limit_jobs = UNLIMITED,
			.quota_gpu = UNLIMITED,
			.quota_cpu = UNLIMITED,
			.quota_host = UNLIMITED,
			.weight = 1000,
			.can_preempt_others = true,
			.max_preemptions = UNLIMITED,
			.queue_max = UNLIMITED,
			.budget_per_month = UNLIMITED,
		};
		run_command(run, &command);
	}
}

/* Chips may have been traded, and are known on their old node until that reports. */
static void heal_machines(struct run *run, struct generator *generator)
{
	for (int i = 0; i < 4 * MACHINES; i++) {
		struct machine *machine = &generator->world.machines[i % MACHINES];
		if (!machine_record(machine, &run->keeper))
			continue;
		machine_heal(machine);
		struct command command = generator_report(generator, machine, true);
		command.report.snapshot = true;
		run_command(run, &command);
		command = at_once(generator, COMMAND_NODE_DRAIN);
		command.drain.name = machine->name;
		run_command(run, &command);
	}
}

static void release_holds(struct run *run, struct generator *generator)
{
	for (size_t i = 0; i < keeper_job_state_count(&run->keeper); i++) {
		const struct job_state_record *job = keeper_job_state(&run->keeper, i);
		bool parked = job->parked && job->state == JOB_SUSPENDED;
		if ((!job->held && !parked) || job_state_is_final((enum job_state)job->state))
			continue;
		struct command command =
		    at_once(generator, parked ? COMMAND_RESUME : COMMAND_UNHOLD);
		command.id = job->id;
		run_command(run, &command);
	}
}

/* Nothing is kept loaded but for those who ask. */
static void calm_models(struct run *run, struct generator *generator)
{
	for (size_t i = 0; i < keeper_model_count(&run->keeper); i++) {
		const struct model_record *old = keeper_model(&run->keeper, i);
		struct command command = at_once(generator, COMMAND_PUT_MODEL);
		if (old->removed)
			continue;
		command.model.model = *old;
		command.model.administrator = true;
		command.model.model.pinned = command.model.model.prewarm = false;
		command.model.model.min_replicas = 0;
		run_command(run, &command);
	}
}

/* A slot goes one step on: it is ready, or its memory is back. */
static void go_on_with_slot(struct run *run, struct generator *generator, int64_t id)
{
	const struct slot_record *slot = keeper_find(&run->keeper, RECORD_SLOT, id, 0);
	struct command command = at_once(generator, COMMAND_SLOT_READY);

	bool moves = slot && (slot->state == SLOT_SLEEPING || slot->state == SLOT_WAKING);

	if (!slot || (slot->state != SLOT_LOADING && slot->state != SLOT_STOPPING && !moves))
		return;
	if (moves) {
		command.kind =
		    slot->state == SLOT_SLEEPING ? COMMAND_TASK_SUSPENDED : COMMAND_TASK_RESUMED;
		command.task.reservation_id = id;
		command.task.released = true;
		command.task.message = "";
	} else if (slot->state == SLOT_STOPPING) {
		command.kind = COMMAND_MEMORY_RELEASED;
		command.task.reservation_id = id;
		command.task.message = "";
	} else {
		command.slot.reservation_id = id;
		command.slot.address = "http://node:1";
		command.slot.message = "";
	}
	run_command(run, &command);
}

/* All requests in flight end; what waited may be in flight then. */
static void end_flying(struct run *run, struct generator *generator)
{
	size_t count = run->router.count;
	int64_t *ids = memory_alloc((count + 1) * sizeof(*ids));

	for (size_t i = 0; i < count; i++)
		ids[i] = run->router.at[i].slot_id ? run->router.at[i].id : 0;
	for (size_t i = 0; i < count; i++) {
		struct command command = at_once(generator, COMMAND_REQUEST_DONE);
		if (!ids[i])
			continue;
		command.done.request_id = ids[i];
		run_command(run, &command);
	}
	free(ids);
}

/* Each goes one step on: starts, ends, gives its memory back. */
static void property_drain_go_on(struct run *run, struct generator *generator)
{
	size_t count = keeper_reservation_count(&run->keeper);
	struct reservation_record *all = memory_alloc((count + 1) * sizeof(*all));

	for (size_t i = 0; i < count; i++)
		all[i] = *keeper_reservation(&run->keeper, i);
	for (size_t i = 0; i < count; i++) {
		struct command command = at_once(generator, COMMAND_MEMORY_RELEASED);
		if (all[i].phase == PHASE_CLAIM || all[i].phase == PHASE_SUSPENDED ||
		    all[i].phase == PHASE_WAKING)
			continue;
		if (all[i].job_id == 0) {
			go_on_with_slot(run, generator, all[i].id);
			continue;
		}
		if (all[i].phase == PHASE_GRANTED)
			command.kind = COMMAND_TASK_STARTED;
		if (all[i].phase == PHASE_SUSPENDING)
			command.kind = COMMAND_TASK_SUSPENDED;
		if (all[i].phase == PHASE_RESUMING)
			command.kind = COMMAND_TASK_RESUMED;
		if (all[i].phase == PHASE_LIVE)
			command.kind = COMMAND_TASK_EXITED;
		command.task.reservation_id = all[i].id;
		command.task.released = true;
		command.task.message = "";
		run_command(run, &command);
	}
	free(all);
}

/* Whether the job's GPUs must all be linked to one another. */
static bool is_linked(const struct job_record *job, int64_t each)
{
	return job->closeness == CLOSE_NVLINK && job->closeness_required && job->split_gpus == 0 &&
	       (each > 1 || job->min_available > 1);
}

/* GPUs of the node that could take a part, if all were empty: how many tasks of
 * `each` that makes, with no GPU shared. */
static int64_t count_tasks(const struct keeper *keeper, const struct node_record *node,
                           const struct job_record *job, int64_t each)
{
	int64_t groups[64] = { 0 }, need = max64(job->memory_mib, 1), tasks = 0;
	bool linked = is_linked(job, each);

	for (int64_t i = 0; i < job->uneven.count; i++)
		need = max64(need, job->uneven.at[i]);
	for (size_t i = 0; i < keeper_gpu_count(keeper); i++) {
		const struct gpu_record *gpu = keeper_gpu(keeper, i);
		bool allowed = !*job->gpu_models || strcmp(job->gpu_models, gpu->model) == 0;
		if (gpu->node_id != node->id || !gpu->present || gpu->mig_mode || !allowed ||
		    gpu->hot || !gpu->healthy ||
		    gpu->capacity_mib - gpu->overhead_mib - gpu->foreign_mib < need)
			continue;
		if (!linked)
			groups[1]++;
		else if (gpu->nvlink_group > 0)
			groups[gpu->nvlink_group % 64]++;
	}
	for (int i = 1; i < 64; i++)
		tasks = max64(tasks, groups[i] / each);
	return tasks;
}

static bool has_labels(const struct node_record *node, const char *labels)
{
	for (; *labels; labels += strcspn(labels, "\n"), labels += *labels == '\n') {
		size_t length = strcspn(labels, "\n");
		const char *found = node->labels;
		while (*found &&
		       (strncmp(found, labels, length) != 0 || strcspn(found, "\n") != length)) {
			found += strcspn(found, "\n");
			found += *found == '\n';
		}
		if (!*found)
			return false;
	}
	return true;
}

static bool gives_compute(const struct keeper *keeper, const struct node_record *node)
{
	for (size_t i = 0; i < keeper_gpu_count(keeper); i++) {
		const struct gpu_record *gpu = keeper_gpu(keeper, i);
		if (gpu->node_id == node->id && *gpu->mig_parent)
			return false;
	}
	return has_labels(node, NODE_COMPUTE_SHARES "=mps");
}

/* How many of the job's tasks, or of its GPUs where it is split, surely fit the
 * empty node. */
static int64_t count_fits(const struct keeper *keeper, const struct node_record *node,
                          const struct job_record *job)
{
	int64_t by_cpu = INT64_MAX, by_host = INT64_MAX, fits;

	if (node->state != NODE_ONLINE || !node->reported || node->draining ||
	    !has_labels(node, job->node_labels))
		return 0;
	if (job->cpu_milli > 0)
		by_cpu = node->cpu_milli / job->cpu_milli;
	if (job->host_bytes > 0)
		by_host = node->host_bytes / job->host_bytes;
	if (job->split_gpus > 0)
		return by_cpu > 0 && by_host > 0 ? count_tasks(keeper, node, job, 1) : 0;
	fits = min64(min64(by_cpu, by_host), job->tasks);
	if (job->compute > 0) /* one, at the least, where all GPUs give shares */
		fits = gives_compute(keeper, node) ? min64(fits, 1) : 0;
	if (job->gpu_kind != GPU_NONE)
		fits = min64(fits, count_tasks(keeper, node, job, job->gpu_count));
	else if (*job->gpu_models && count_tasks(keeper, node, job, 1) == 0)
		return 0;
	return fits;
}

static bool surely_fits(const struct keeper *keeper, const struct job_record *job)
{
	int64_t most = 0, all = 0;
	int64_t need = job->split_gpus > 0 ? job->split_gpus : job->min_available;
	bool together =
	    job->closeness_required && job->closeness != CLOSE_ANY && job->min_available > 1;

	for (size_t i = 0; i < keeper_node_count(keeper); i++) {
		int64_t fits = count_fits(keeper, keeper_node(keeper, i), job);
		if (job->closeness == CLOSE_RACK && !*keeper_node(keeper, i)->rack && together)
			continue;
		all += fits;
		most = max64(most, fits);
	}
	return (together ? most : all) >= need;
}

static bool waits_for_another(const struct keeper *keeper, const struct job_record *job)
{
	for (int64_t i = 0; i < job->depends.count; i++) {
		const struct job_state_record *other =
		    keeper_find(keeper, RECORD_JOB_STATE, job->depends.at[2 * i], 0);
		if (other && !job_state_is_final((enum job_state)other->state))
			return true;
	}
	return false;
}

/* Where the clock went back, a job may still have to wait for its time to begin. */
static void check_drained(const struct run *run, int64_t now_ms)
{
	const struct keeper *keeper = &run->keeper;

	if (keeper_reservation_count(keeper) > 0) {
		struct buffer text = { 0 };
		record_print(&text, RECORD_RESERVATION, keeper_reservation(keeper, 0));
		panic("%zu reservations are stuck: %s", keeper_reservation_count(keeper),
		      text.data);
	}
	for (size_t i = 0; i < keeper_job_count(keeper); i++) {
		const struct job_record *job = keeper_job(keeper, i);
		const struct job_state_record *state =
		    keeper_find(keeper, RECORD_JOB_STATE, job->id, 0);
		if (job_state_is_final((enum job_state)state->state) || job->begin_ms > now_ms ||
		    *job->window || waits_for_another(keeper, job) || !surely_fits(keeper, job))
			continue;
		struct buffer text = { 0 };
		struct error error;
		record_print(&text, RECORD_JOB, job);
		buffer_text(&text, "\n");
		record_print(&text, RECORD_JOB_STATE, state);
		buffer_text(&text, "\n");
		sched_why(run->sched, job->id, 0, &text, &error);
		panic("a job waits that would fit: %s", text.data);
	}
}

/* Whether a GPU of the node has the memory, the rest of it being empty. */
static bool is_large(const struct gpu_record *gpu, const struct node_record *node,
                     const struct model_record *model, int64_t mib)
{
	bool allowed = !*model->gpu_models || strcmp(model->gpu_models, gpu->model) == 0;

	return gpu->node_id == node->id && gpu->present && gpu->healthy && !gpu->mig_mode &&
	       allowed && gpu->capacity_mib - gpu->overhead_mib - gpu->foreign_mib >= mib;
}

/* Whether an empty node takes a slot of the model on one GPU, or divided. */
static bool model_fits(const struct keeper *keeper, const struct node_record *node,
                       const struct model_record *model)
{
	if (node->state != NODE_ONLINE || !node->reported || node->draining ||
	    !has_labels(node, model->node_labels) || node->cpu_milli < model->cpu_milli ||
	    node->host_bytes < model->host_bytes)
		return false;
	for (int64_t count = 1; count <= PARTS_MAX; count++) {
		int64_t each = model_each_mib(model, count), found = 0;
		for (size_t i = 0; each > 0 && i < keeper_gpu_count(keeper); i++)
			found += is_large(keeper_gpu(keeper, i), node, model, each);
		if (each > 0 && found >= count)
			return true;
	}
	return false;
}

/* Whether a slot of the model is out of reach: it counts until its node is lost. */
static bool is_out_of_reach(const struct keeper *keeper, int64_t model_id)
{
	for (size_t i = 0; i < keeper_reservation_count(keeper); i++) {
		const struct reservation_record *right = keeper_reservation(keeper, i);
		const struct node_record *node =
		    keeper_find(keeper, RECORD_NODE, right->node_id, 0);
		if (right->model_id == model_id && (node->state != NODE_ONLINE || !node->reported))
			return true;
	}
	return false;
}

/* A request that still waits, and whose model would fit; NULL: there is none. */
static const struct model_record *find_waiting(const struct run *run)
{
	for (size_t i = 0; i < run->router.count; i++) {
		const struct model_record *model =
		    keeper_find(&run->keeper, RECORD_MODEL, run->router.at[i].model_id, 0);
		if (run->router.at[i].slot_id)
			return model;
		if (is_out_of_reach(&run->keeper, model->id))
			continue;
		for (size_t n = 0; n < keeper_node_count(&run->keeper); n++)
			if (model_fits(&run->keeper, keeper_node(&run->keeper, n), model))
				return model;
	}
	return NULL;
}

/* Everyone who asks for something that fits is served; then all models go. */
static void serve_all(struct run *run, struct generator *generator)
{
	const struct model_record *waiting = NULL;

	calm_models(run, generator);
	for (int round = 0; round < ROUNDS && (round == 0 || (waiting = find_waiting(run)));
	     round++) {
		struct command pass = at_once(generator, COMMAND_PASS);
		pass.units = INT64_MAX;
		run_command(run, &pass);
		property_drain_go_on(run, generator);
		end_flying(run, generator);
		generator->now_ms += 1000;
	}
	if (waiting) {
		struct buffer text = { 0 };
		struct error error;
		record_print(&text, RECORD_MODEL, waiting);
		buffer_text(&text, "\n");
		sched_why_model(run->sched, waiting->id, 0, &text, &error);
		panic("a request waits for a model that would fit: %s", text.data);
	}
	while (keeper_model_count(&run->keeper) > 0) {
		struct command command = at_once(generator, COMMAND_REMOVE_MODEL);
		command.id = keeper_model(&run->keeper, 0)->id;
		if (!keeper_model(&run->keeper, 0)->removed)
			run_command(run, &command);
		property_drain_go_on(run, generator);
	}
	if (run->router.count > 0)
		panic("%zu requests are left, and no models", run->router.count);
}

static void delete_windows(struct run *run, struct generator *generator)
{
	while (keeper_window_count(&run->keeper) > 0) {
		struct command command = at_once(generator, COMMAND_REMOVE_WINDOW);
		size_t before = keeper_window_count(&run->keeper);
		command.id = keeper_window(&run->keeper, 0)->id;
		run_command(run, &command);
		if (keeper_window_count(&run->keeper) == before)
			panic("window %lld cannot be deleted", (long long)command.id);
	}
}

void drain(struct run *run, struct generator *generator)
{
	bool healed = false;
	int quiet = 0;

	lift_limits(run, generator);
	heal_machines(run, generator);
	release_holds(run, generator);
	delete_windows(run, generator);
	serve_all(run, generator);
	for (int round = 0; round < ROUNDS && quiet < QUIET_ROUNDS; round++) {
		struct command pass = at_once(generator, COMMAND_PASS);
		pass.units = INT64_MAX;
		run_command(run, &pass);
		property_drain_go_on(run, generator);
		bool empty = keeper_reservation_count(&run->keeper) == 0;
		/* A suspended task had a right to a chip that was traded: its new node's reports
		 * were refused until now. */
		if (empty && !healed)
			heal_machines(run, generator);
		healed = healed || empty;
		quiet = empty ? quiet + 1 : 0;
		generator->now_ms += empty ? 5 * MINUTE_MS : 1000;
	}
	check_drained(run, generator->now_ms);
}
