/* queues.c - runs cases of quota, fair share, making room, gangs and fractions */
#include "sim/scenario/queues.h"

#include <stdlib.h>
#include <string.h>

#include "sim/scenario/queue_case.h"
#include "sim/world/driver.h"

#define ROUND_MS INT64_C(1000)
#define PASS_UNITS INT64_C(1000000000)
enum { PASSES_MAX = 1000 };

/* Reservations, in the order in which something happened to them. */
struct id_list {
	int64_t *at;
	size_t count, capacity;
};

/* Which GPU a group is, as found out by the first task that was expected in it.
 * It stays that for the rest of the case, and no other group is that GPU. */
struct binding {
	int64_t node_id, gpu_id;
	const char *group;
};

/* A case on its way. */
struct run {
	const struct queue_case *queue_case;
	struct driver driver;
	struct id_list started; /* ordered in this round, to be acknowledged */
	struct id_list stopped; /* to be confirmed as gone at the end of this round */
	struct id_list kept;    /* late, or of jobs that are being deleted: never confirmed */
	struct binding *bindings;
	size_t binding_count, binding_capacity;
	struct buffer *reason; /* what is wrong, if anything is */
};

/* How a task was found. */
struct finding {
	enum task_status status;
	const char *ended; /* "ended" if it has ended, or what else is wrong; NULL: `status` holds
	                    */
	const char *node;  /* where it runs or stops, or is promised room; NULL: nowhere */
	bool claims;       /* it is pending, and promised room */
	const struct reservation_record *reservation; /* that it runs or stops under; NULL */
};

static void id_list_add(struct id_list *list, int64_t id)
{
	array_reserve(list->at, list->capacity, list->count + 1);
	list->at[list->count++] = id;
}

static bool id_list_has(const struct id_list *list, int64_t id)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->at[i] == id)
			return true;
	}
	return false;
}

/* Starts and stops that the last command ordered. */
static void note_orders(struct run *run)
{
	for (size_t i = 0; i < run->driver.effects.count; i++) {
		const struct effect *effect = &run->driver.effects.at[i];
		if (effect->kind == EFFECT_START)
			id_list_add(&run->started, effect->order.reservation_id);
		else if (effect->kind == EFFECT_STOP)
			id_list_add(&run->stopped, effect->order.reservation_id);
	}
}

static bool has_more(const struct effects *effects)
{
	for (size_t i = 0; i < effects->count; i++) {
		if (effects->at[i].kind == EFFECT_MORE)
			return true;
	}
	return false;
}

static bool queues_send(struct run *run, struct command command)
{
	struct error error = { 0 };
	if (!driver_send(&run->driver, command, &error)) {
		buffer_print(run->reason, "the core refused %s: %s",
		             command_kind_name(command.kind), error.text);
		return false;
	}
	note_orders(run);
	return true;
}

static bool send_about(struct run *run, enum command_kind kind, int64_t reservation_id)
{
	struct command command = { .kind = kind };
	command.task.reservation_id = reservation_id;
	command.task.message = "";
	return queues_send(run, command);
}

static bool send_passes(struct run *run)
{
	for (int i = 0; i < PASSES_MAX; i++) {
		if (!queues_send(run,
		                 (struct command){ .kind = COMMAND_PASS, .units = PASS_UNITS }))
			return false;
		if (!has_more(&run->driver.effects))
			return true;
	}
	buffer_print(run->reason, "a pass is not done after %d times", PASSES_MAX);
	return false;
}

static const struct reservation_record *find_reservation(const struct run *run, int64_t id)
{
	return world_find(&run->driver.world, RECORD_RESERVATION, id, 0);
}

/* The node says that what it was told to start runs, unless it was told to stop
 * it again since. */
static bool acknowledge_starts(struct run *run)
{
	for (size_t i = 0; i < run->started.count; i++) {
		int64_t id = run->started.at[i];
		const struct reservation_record *reservation = find_reservation(run, id);
		if (!reservation || reservation->phase != PHASE_GRANTED)
			continue;
		if (!send_about(run, COMMAND_TASK_STARTED, id))
			return false;
	}
	run->started.count = 0;
	return true;
}

static bool confirm_releases(struct run *run)
{
	for (size_t i = 0; i < run->stopped.count; i++) {
		int64_t id = run->stopped.at[i];
		if (id_list_has(&run->kept, id) || !find_reservation(run, id))
			continue;
		if (!send_about(run, COMMAND_MEMORY_RELEASED, id))
			return false;
	}
	run->stopped.count = 0;
	return true;
}

/* Time passes, the core decides, and what it ordered is done. */
static bool run_round(struct run *run, int64_t round)
{
	run->driver.now_ms = CASE_BEGIN_MS + round * ROUND_MS;
	if (run->driver.trace)
		fprintf(run->driver.trace, "  round %lld\n", (long long)round);
	return queues_send(run, (struct command){ .kind = COMMAND_TIME }) && send_passes(run) &&
	       acknowledge_starts(run) && confirm_releases(run);
}

static const char *node_name(const struct run *run, int64_t id)
{
	const struct node_record *node = world_find(&run->driver.world, RECORD_NODE, id, 0);
	return node ? node->name : "a node that is gone";
}

static struct finding find_right(const struct run *run, int64_t reservation_id)
{
	const struct reservation_record *reservation = find_reservation(run, reservation_id);
	if (!reservation)
		return (struct finding){ .ended = "under a reservation that is gone" };
	bool releasing = reservation->phase == PHASE_RELEASING;
	return (struct finding){
		.status = !releasing          ? STATUS_RUNNING
		          : reservation->late ? STATUS_STUCK
		                              : STATUS_RELEASING,
		.node = node_name(run, reservation->node_id),
		.reservation = reservation,
	};
}

/* From what a store would have: a task that was never placed has no record. */
static struct finding find_task(const struct run *run, int64_t job_id, int64_t place)
{
	const struct world *world = &run->driver.world;
	const struct task_record *task = world_find(world, RECORD_TASK, job_id, place);
	if (!task)
		return (struct finding){ .status = STATUS_PENDING };
	if (task->reservation_id)
		return find_right(run, task->reservation_id);
	if (task->state == TASK_ENDED)
		return (struct finding){ .ended = "ended" };
	struct finding finding = { .status = STATUS_PENDING };
	const struct reservation_record *claim = find_reservation(run, task->claim_id);
	if (claim) {
		finding.claims = true;
		finding.node = node_name(run, claim->node_id);
	}
	return finding;
}

/* True if the group may be this GPU: it is already, or neither is anything yet. */
static bool bind(struct run *run, const char *group, int64_t node_id, int64_t gpu_id)
{
	for (size_t i = 0; i < run->binding_count; i++) {
		const struct binding *binding = &run->bindings[i];
		bool same_group = binding->node_id == node_id && strcmp(binding->group, group) == 0;
		if (same_group || binding->gpu_id == gpu_id)
			return same_group && binding->gpu_id == gpu_id;
	}
	array_reserve(run->bindings, run->binding_capacity, run->binding_count + 1);
	run->bindings[run->binding_count++] = (struct binding){ node_id, gpu_id, group };
	return true;
}

/* The first expected group that none of the task's GPUs can be; NULL: all fit. */
static const char *wrong_group(struct run *run, const struct standing *expected,
                               const struct reservation_record *found)
{
	for (int g = 0; g < expected->group_count; g++) {
		bool bound = false;
		for (int64_t p = 0; p < found->parts.count && !bound; p++) {
			int64_t gpu_id = found->parts.at[p * PART_WIDTH + PART_GPU];
			bound = bind(run, expected->groups[g], found->node_id, gpu_id);
		}
		if (!bound)
			return expected->groups[g];
	}
	return NULL;
}

static bool is_as_expected(const struct standing *expected, const struct finding *finding)
{
	if (finding->ended || finding->status != expected->status)
		return false;
	if (expected->status == STATUS_PENDING || !expected->node)
		return true;
	return strcmp(expected->node, finding->node) == 0;
}

static void print_expected(struct buffer *buffer, const struct standing *expected)
{
	buffer_text(buffer, word_of(&task_status_words, expected->status));
	if (expected->status != STATUS_PENDING && expected->node)
		buffer_print(buffer, " on %s", expected->node);
}

static void print_found(struct buffer *buffer, const struct finding *finding)
{
	buffer_text(buffer,
	            finding->ended ? finding->ended : word_of(&task_status_words, finding->status));
	if (finding->claims)
		buffer_print(buffer, " with room promised on %s", finding->node);
	else if (finding->node)
		buffer_print(buffer, " on %s", finding->node);
}

static void print_gpus(struct run *run, const struct reservation_record *found)
{
	if (found->parts.count == 0)
		buffer_text(run->reason, "no GPU");
	for (int64_t p = 0; p < found->parts.count; p++) {
		int64_t gpu_id = found->parts.at[p * PART_WIDTH + PART_GPU];
		const struct gpu_record *gpu =
		    world_find(&run->driver.world, RECORD_GPU, gpu_id, 0);
		buffer_print(run->reason, "%s%s", p > 0 ? " and " : "", gpu ? gpu->uuid : "none");
	}
}

/* Says what is different about the task, if anything is. */
static bool check_task(struct run *run, const struct case_job *job, int64_t place, int64_t round)
{
	const struct case_task *task = &job->tasks[place];
	struct finding finding = find_task(run, job->record.id, place);
	bool fits = is_as_expected(&task->expected, &finding);
	bool grouped = fits && finding.reservation;
	const char *wrong = grouped ? wrong_group(run, &task->expected, finding.reservation) : NULL;
	if (fits && !wrong)
		return true;
	if (run->reason->size > 0)
		buffer_text(run->reason, "; ");
	else
		buffer_print(run->reason, "after round %lld: ", (long long)round);
	buffer_print(run->reason, "%s-%lld ", job->record.name, (long long)task->index);
	if (wrong) {
		buffer_text(run->reason, "is on ");
		print_gpus(run, finding.reservation);
		buffer_print(run->reason, ", which cannot be group '%s'", wrong);
		return false;
	}
	buffer_text(run->reason, "should be ");
	print_expected(run->reason, &task->expected);
	buffer_text(run->reason, " and is ");
	print_found(run->reason, &finding);
	return false;
}

/* Compares every task of which something is expected. */
static bool check_tasks(struct run *run, int64_t round)
{
	bool fine = true;
	for (int64_t j = 0; j < run->queue_case->job_count; j++) {
		const struct case_job *job = &run->queue_case->jobs[j];
		for (int64_t t = 0; t < job->record.tasks; t++) {
			if (job->tasks[t].is_expected)
				fine &= check_task(run, job, t, round);
		}
	}
	return fine;
}

/* What is on its way out to begin with is gone after the first round, if it ever is. */
static void note_releasing(struct run *run)
{
	for (int64_t j = 0; j < run->queue_case->job_count; j++) {
		const struct case_job *job = &run->queue_case->jobs[j];
		for (int64_t t = 0; t < job->record.tasks; t++) {
			const struct case_task *task = &job->tasks[t];
			if (!task->reservation_id)
				continue;
			if (job->being_deleted || task->given.status == STATUS_STUCK)
				id_list_add(&run->kept, task->reservation_id);
			else if (task->given.status == STATUS_RELEASING)
				id_list_add(&run->stopped, task->reservation_id);
		}
	}
}

static void trace_records(struct run *run)
{
	struct driver *driver = &run->driver;
	for (int kind = RECORD_TENANT; kind < RECORD_KINDS; kind++) {
		struct rank_cursor cursor =
		    ranktree_seek(&driver->world.kept[kind], INT64_MIN, INT64_MIN);
		const struct rank_entry *entry;
		while ((entry = rank_cursor_next(&cursor))) {
			buffer_clear(&driver->text);
			record_print(&driver->text, (enum record_kind)kind, entry->value);
			fprintf(driver->trace, "    %s\n", driver->text.data);
		}
	}
}

static bool run_rounds(struct run *run)
{
	const struct queue_case *queue_case = run->queue_case;
	for (int64_t round = 1; round <= queue_case->rounds + queue_case->stable_rounds; round++) {
		if (!run_round(run, round))
			return false;
		if (round >= queue_case->rounds && !check_tasks(run, round))
			return false;
	}
	return true;
}

static void run_free(struct run *run)
{
	driver_free(&run->driver);
	free(run->started.at);
	free(run->stopped.at);
	free(run->kept.at);
	free(run->bindings);
}

static enum verdict run_case(const struct queue_case *queue_case, FILE *trace,
                             struct buffer *reason)
{
	struct run run = { .queue_case = queue_case, .reason = reason };
	struct error error = { 0 };
	enum verdict verdict = VERDICT_FAILED;

	run.driver.trace = trace;
	run.driver.check = true;
	if (!queue_case_records(queue_case, &run.driver.world, &error)) {
		buffer_text(reason, error.text);
		verdict = VERDICT_UNREADABLE;
		goto done;
	}
	if (trace)
		trace_records(&run);
	if (!driver_load(&run.driver, &error)) {
		buffer_print(reason, "the core refused the records: %s", error.text);
		goto done;
	}
	note_releasing(&run);
	if (run_rounds(&run))
		verdict = VERDICT_PASSED;
done:
	run_free(&run);
	return verdict;
}

enum verdict queues_run(const json_t *scenario, FILE *trace, struct buffer *reason)
{
	struct queue_case queue_case = { 0 };
	struct error error = { 0 };
	enum verdict verdict = VERDICT_UNREADABLE;
	if (queue_case_read(&queue_case, scenario, &error))
		verdict = run_case(&queue_case, trace, reason);
	else
		buffer_print(reason, "the case cannot be read: %s", error.text);
	queue_case_free(&queue_case);
	return verdict;
}
