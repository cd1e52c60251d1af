/* property_drain.c - when all is well again, everything that can run runs and ends */
#include "core/test/property_drain.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define MINUTE_MS 60000
#define QUIET_ROUNDS 20 /* without anything in the books, until nothing more is expected */
#define ROUNDS 20000

static struct command at_once(const struct generator *generator, enum command_kind kind)
{
	return (struct command){ .kind = kind, .now_ms = generator->now_ms };
}

static void lift_limits(struct run *run, struct generator *generator)
{
	struct command command = at_once(generator, COMMAND_CONFIGURE);

	command.configure = config_default();
	command.configure.policy =
	    ((const struct config_record *)keeper_find(&run->keeper, RECORD_CONFIG, 1, 0))->policy;
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
		if (!job->held || job_state_is_final((enum job_state)job->state))
			continue;
		struct command command = at_once(generator, COMMAND_RELEASE);
		command.id = job->id;
		run_command(run, &command);
	}
}

/* Each goes one step on: starts, ends, gives its memory back. */
static void go_on(struct run *run, struct generator *generator)
{
	size_t count = keeper_reservation_count(&run->keeper);
	struct reservation_record *all = memory_alloc((count + 1) * sizeof(*all));

	for (size_t i = 0; i < count; i++)
		all[i] = *keeper_reservation(&run->keeper, i);
	for (size_t i = 0; i < count; i++) {
		struct command command = at_once(generator, COMMAND_MEMORY_RELEASED);
		if (all[i].phase == PHASE_CLAIM)
			continue;
		if (all[i].phase == PHASE_HELD)
			command.kind = COMMAND_TASK_STARTED;
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

static void check_drained(const struct keeper *keeper)
{
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
		if (job_state_is_final((enum job_state)state->state) ||
		    waits_for_another(keeper, job) || !surely_fits(keeper, job))
			continue;
		struct buffer text = { 0 };
		record_print(&text, RECORD_JOB, job);
		buffer_text(&text, "\n");
		record_print(&text, RECORD_JOB_STATE, state);
		panic("a job waits that would fit: %s", text.data);
	}
}

void drain(struct run *run, struct generator *generator)
{
	int quiet = 0;

	lift_limits(run, generator);
	heal_machines(run, generator);
	release_holds(run, generator);
	for (int round = 0; round < ROUNDS && quiet < QUIET_ROUNDS; round++) {
		struct command pass = at_once(generator, COMMAND_PASS);
		pass.units = INT64_MAX;
		run_command(run, &pass);
		go_on(run, generator);
		bool empty = keeper_reservation_count(&run->keeper) == 0;
		quiet = empty ? quiet + 1 : 0;
		generator->now_ms += empty ? 5 * MINUTE_MS : 1000;
	}
	check_drained(&run->keeper);
}
