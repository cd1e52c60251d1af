/* suspend.c - GPU memory of running tasks that goes to host memory and comes back */
#include "node/local.h"

int64_t work_ran_ms(const struct local_node *node, const struct work *work)
{
	const struct kept_work *kept = &work->kept;
	int64_t until_ms = kept->memory == MEMORY_ON_GPU ? node->now_ms : kept->memory_ms;

	return max64(until_ms - kept->started_ms - kept->paused_ms, 0);
}

/* That it is done (no reason), or could not be. */
/* The scheduler stops a slot that does not sleep, and nobody else would hear why. */
static void suspend_warn(struct local_node *node, const struct work *work, enum change_kind kind,
                         const char *reason)
{
	struct output *output = node_output(node, OUTPUT_WARN, work->kept.reservation_id);
	struct error text = { 0 };

	error_set(&text, ERROR_CONFLICT, "this server could not be %s: %s",
	          kind == CHANGE_SUSPENDED ? "put to sleep" : "woken", reason);
	output->message = arena_string(&node->outputs->arena, text.text);
}

static void suspend_tell(struct local_node *node, struct work *work, enum change_kind kind,
                         int64_t took_ms, const char *reason)
{
	struct change change = { .kind = (int32_t)kind,
		                 .reservation_id = work->kept.reservation_id,
		                 .exit_code = reason ? 1 : 0,
		                 .message = reason ? reason : "",
		                 .address = "",
		                 .took_ms = max64(took_ms, 0) };

	if (kind == CHANGE_SUSPENDED && !reason)
		change.use.host_peak_bytes = work->copied_bytes;
	if (reason && work->kept.slot)
		suspend_warn(node, work, kind, reason);
	int64_t number = link_change(node, &change);
	work->move_change = reason ? number : 0;
	work->move_connection = node->kept.connection;
}

/* Whether the order was sent before the scheduler had stored that moving its memory failed: it may
 * be the one that was answered, sent again on a new connection. To follow it would move memory of a
 * task that the scheduler takes to be as before. */
static bool has_failed(const struct local_node *node, const struct work *work,
                       const struct message *message)
{
	return work->move_connection == node->kept.connection &&
	       work->move_change > message->acknowledged;
}

static void set_memory(struct local_node *node, struct work *work, enum work_memory memory)
{
	work->kept.memory = (int32_t)memory;
	work->asked_away = work->asked_leave = 0;
	work_write(node, work);
}

/* It has its GPU memory, and runs. */
static void is_back(struct local_node *node, struct work *work)
{
	work->kept.paused_ms += max64(node->now_ms - work->kept.memory_ms, 0);
	work->kept.memory_ms = 0;
	work->kept.accounted_ms = work->busy_ms = node->now_ms;
	set_memory(node, work, MEMORY_ON_GPU);
}

/* Host memory that is needed for what it has on GPUs by the last measurement. */
static int64_t used_mib(const struct local_node *node, const struct work *work)
{
	int64_t sum_mib = 0;

	for (const struct use *use = measure_first_use(node, work); use;
	     use = measure_next_use(node, use))
		sum_mib += use->owned_mib;
	return sum_mib;
}

static int64_t processes_on_gpus(const struct local_node *node, const struct work *work)
{
	const struct measure *measure = &node->measure;
	int64_t first = 0, others = 0;

	for (size_t i = 0; i < measure->process_count; i++) {
		const struct process_reading *process = &measure->processes[i];
		if (process->reservation_id != work->kept.reservation_id)
			continue;
		others += first != 0 && process->pid != first;
		first = first != 0 ? first : process->pid;
	}
	return first == 0 ? 0 : 1 + others;
}

/* Whether the driver would survive it. A process that has imported memory of another, of its task
 * or not, comes back broken. Its guard knows; where there is none, a task of several processes is
 * taken to share memory. False with a reason. */
static bool may_leave(const struct local_node *node, const struct work *work, int64_t copy_bytes,
                      struct error *error)
{
	if (work->kept.phase != WORK_RUNNING || work->order.part_count == 0)
		return error_set(error, ERROR_CONFLICT, "it is no running task with GPUs");
	if (work->kept.slot && !work->kept.ready)
		return error_set(error, ERROR_CONFLICT, "its server is not ready");
	if (work->kept.slot && work->active > 0)
		return error_set(error, ERROR_CONFLICT, "its server has %lld requests in flight",
		                 (long long)work->active);
	if (processes_on_gpus(node, work) > 1)
		return error_set(error, ERROR_CONFLICT,
		                 "several processes of it use GPUs, and a process that imported "
		                 "memory of another would be lost");
	if (work->imports > 0)
		return error_set(
		    error, ERROR_CONFLICT,
		    "it has imported GPU memory of another process, and would be lost");
	if (used_mib(node, work) << 20 > copy_bytes)
		return error_set(error, ERROR_NO_ROOM,
		                 "it uses %lld MiB of GPU memory, and %lld MiB of host memory are "
		                 "reserved for that",
		                 (long long)used_mib(node, work), (long long)(copy_bytes >> 20));
	return true;
}

static void output_move(struct local_node *node, const struct work *work, enum output_kind kind)
{
	struct output *output = node_output(node, kind, work->kept.reservation_id);

	struct node_order *order = node_order_copy(&node->outputs->arena, &work->order);

	if (order->host_bytes > 0)
		order->host_bytes += work->kept.copy_bytes;
	output->order = order;
}

void suspend_order(struct local_node *node, const struct message *message)
{
	const struct node_order *order = &message->order;
	struct work *work = work_find(node, order->reservation_id);
	struct error error = { 0 };

	if (!work || work->kept.phase == WORK_WAITING || work->kept.phase > WORK_RUNNING)
		return; /* its end is told, or was */
	if (has_failed(node, work, message)) {
		suspend_tell(node, work, CHANGE_SUSPENDED, 0, "it could not be suspended just now");
		return;
	}
	switch ((enum work_memory)work->kept.memory) {
	case MEMORY_ON_GPU:
		if (!may_leave(node, work, order->host_bytes, &error)) {
			suspend_tell(node, work, CHANGE_SUSPENDED, 0, error.text);
			return;
		}
		work->kept.copy_bytes = order->host_bytes;
		work->kept.memory_ms = node->now_ms;
		set_memory(node, work, MEMORY_LEAVING);
		work->asked_leave = node_ask_measure(node);
		break;
	case MEMORY_AWAY:
		suspend_tell(node, work, CHANGE_SUSPENDED, 0, NULL);
		break;
	case MEMORY_COMING:
		suspend_tell(node, work, CHANGE_SUSPENDED, 0, "it is being resumed");
		break;
	case MEMORY_LEAVING: /* told when it is done */
		break;
	}
}

void resume_order(struct local_node *node, const struct message *message)
{
	struct work *work = work_find(node, message->order.reservation_id);

	if (!work || work->kept.phase != WORK_RUNNING)
		return;
	if (work->kept.memory == MEMORY_ON_GPU)
		suspend_tell(node, work, CHANGE_RESUMED, 0, NULL);
	else if (has_failed(node, work, message))
		suspend_tell(node, work, CHANGE_RESUMED, 0, "it could not be resumed just now");
	else if (work->kept.memory == MEMORY_AWAY)
		work->asked_away = node_ask_measure(node);
}

static void suspended(struct local_node *node, struct work *work, const struct work_event *event)
{
	if (work->kept.memory != MEMORY_LEAVING)
		return;
	if (!event->failed) {
		work->moved_ms = node->now_ms;
		work->copied_bytes = max64(event->host_peak_bytes, 0);
		work->asked_away = node_ask_measure(node);
		return;
	}
	is_back(node, work);
	suspend_tell(node, work, CHANGE_SUSPENDED, 0,
	             event->message ? event->message : "it could not be suspended");
}

static void resumed(struct local_node *node, struct work *work, const struct work_event *event)
{
	if (work->kept.memory != MEMORY_COMING)
		return;
	if (event->failed) {
		set_memory(node, work, MEMORY_AWAY);
		measure_charge(node);
		suspend_tell(node, work, CHANGE_RESUMED, 0,
		             event->message ? event->message : "it could not be resumed");
		return;
	}
	is_back(node, work);
	suspend_tell(node, work, CHANGE_RESUMED, node->now_ms - work->moved_ms, NULL);
}

void suspend_event(struct local_node *node, struct work *work, enum input_kind kind,
                   const struct work_event *event)
{
	if (work->kept.phase != WORK_RUNNING)
		return;
	if (kind == INPUT_SUSPENDED)
		suspended(node, work, event);
	else
		resumed(node, work, event);
}

/* Whether its GPUs show nothing of it any more. Memory that no process explains may be what it
 * left behind, and holds it up for a while. */
static bool is_gone(const struct local_node *node, const struct work *work)
{
	bool settled = node->now_ms - work->moved_ms >= node->policy.release_settle_ms;

	for (int64_t i = 0; i < work->order.part_count; i++) {
		const struct gpu_view *gpu = measure_gpu(node, work->order.parts[i].uuid);
		const struct use *use = gpu ? measure_use(node, work, gpu) : NULL;
		if (!gpu ||
		    (!gpu->present && node->now_ms - gpu->absent_ms < node->policy.absent_ms))
			return false; /* it is not seen now, and may come back */
		if (!gpu->present)
			continue;
		int64_t left_mib = gpu->unexplained_mib - gpu->standing_mib;
		if (use && use->owned_mib > 0)
			return false;
		if (!settled && left_mib > node->policy.release_tolerance_mib)
			return false;
	}
	return true;
}

static void check_away(struct local_node *node, struct work *work)
{
	if (!is_gone(node, work)) {
		work->asked_away = node->measure.asked + 1;
		return;
	}
	int64_t took_ms = node->now_ms - work->kept.memory_ms;
	set_memory(node, work, MEMORY_AWAY);
	measure_charge(node);
	suspend_tell(node, work, CHANGE_SUSPENDED, took_ms, NULL);
}

/* It may have grown since it was last measured, and is lost if the copy does not fit. */
static void check_leaving(struct local_node *node, struct work *work)
{
	struct error error = { 0 };

	work->asked_leave = 0;
	if (may_leave(node, work, work->kept.copy_bytes, &error)) {
		output_move(node, work, OUTPUT_SUSPEND);
		return;
	}
	is_back(node, work);
	suspend_tell(node, work, CHANGE_SUSPENDED, 0, error.text);
}

static void check_coming(struct local_node *node, struct work *work)
{
	struct error error = { 0 };

	if (!admit_check(node, &work->order, &error)) {
		work->asked_away = 0;
		suspend_tell(node, work, CHANGE_RESUMED, 0, error.text);
		return;
	}
	set_memory(node, work, MEMORY_COMING);
	work->moved_ms = node->now_ms;
	output_move(node, work, OUTPUT_RESUME);
	measure_charge(node);
}

void suspend_measured(struct local_node *node)
{
	for (size_t i = 0; i < node->work_count; i++) {
		struct work *work = node->works[i];
		if (work->kept.phase == WORK_RUNNING && work->asked_leave > 0 &&
		    node->measure.number >= work->asked_leave)
			check_leaving(node, work);
		if (work->kept.phase != WORK_RUNNING || work->asked_away == 0 ||
		    node->measure.number < work->asked_away)
			continue;
		if (work->kept.memory == MEMORY_LEAVING)
			check_away(node, work);
		else if (work->kept.memory == MEMORY_AWAY)
			check_coming(node, work);
	}
}

void suspend_restart(struct local_node *node, struct work *work)
{
	work->moved_ms = node->now_ms;
	if (work->kept.phase == WORK_RUNNING && work->kept.memory == MEMORY_LEAVING)
		work->asked_leave = node_ask_measure(node); /* nothing if all of it has left */
	else if (work->kept.phase == WORK_RUNNING && work->kept.memory == MEMORY_COMING)
		output_move(node, work, OUTPUT_RESUME);
}
