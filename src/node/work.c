/* work.c - the life of a task or slot: begun, ended, gone, its memory back */
#include <stdlib.h>
#include <string.h>

#include "node/local.h"

#define EXIT_TIMEOUT 124 /* as timeout(1) says it */
#define EXIT_KILLED 137
#define EXIT_NOTICED 143
#define EXIT_UNSEEN 255

static size_t work_place_of(const struct local_node *node, int64_t reservation_id)
{
	size_t low = 0, high = node->work_count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (node->works[middle]->kept.reservation_id < reservation_id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct work *work_find(const struct local_node *node, int64_t reservation_id)
{
	size_t at = work_place_of(node, reservation_id);

	if (at == node->work_count || node->works[at]->kept.reservation_id != reservation_id)
		return NULL;
	return node->works[at];
}

struct work *work_add(struct local_node *node, const struct node_order *order)
{
	size_t at = work_place_of(node, order->reservation_id);
	struct work *work = NEW(struct work);

	INVARIANT(!work_find(node, order->reservation_id));
	work->order = *node_order_copy(&work->arena, order);
	work->kept.reservation_id = order->reservation_id;
	work->kept.slot = order->kind == ORDER_LOAD;
	work->kept.message = work->kept.address = "";
	work->next_kill_ms = work->next_late_ms = INT64_MAX;
	array_reserve(node->works, node->work_capacity, node->work_count + 1);
	memmove(node->works + at + 1, node->works + at,
	        (node->work_count - at) * sizeof(struct work *));
	node->works[at] = work;
	node->work_count++;
	return work;
}

void work_remove(struct local_node *node, struct work *work)
{
	size_t at = work_place_of(node, work->kept.reservation_id);

	INVARIANT(at < node->work_count && node->works[at] == work);
	measure_forget(node, work);
	node->work_count--;
	memmove(node->works + at, node->works + at + 1,
	        (node->work_count - at) * sizeof(struct work *));
	buffer_free(&work->crowded);
	arena_free(&work->arena);
	free(work);
}

void work_write(struct local_node *node, const struct work *work)
{
	struct buffer buffer = { 0 };
	struct output *output = node_output(node, OUTPUT_WRITE, work->kept.reservation_id);

	INVARIANT(work->kept.phase > WORK_WAITING);
	kept_work_encode(&buffer, &work->kept, &work->order);
	output->data = arena_copy(&node->outputs->arena, buffer.data, buffer.size);
	output->size = buffer.size;
	buffer_free(&buffer);
}

static void work_forget(struct local_node *node, struct work *work)
{
	node_output(node, OUTPUT_ERASE, work->kept.reservation_id);
	work_remove(node, work);
}

/* Its end is told by a snapshot that leaves it out. */
static void leave_out(struct local_node *node, struct work *work)
{
	orders_turn_down(node, work->kept.reservation_id, INT64_MAX);
	work_forget(node, work);
	link_want_snapshot(node);
}

void work_acknowledged(struct local_node *node, struct work *work)
{
	INVARIANT(work->kept.phase == WORK_BACK);
	work_forget(node, work);
}

static struct change change_of(const struct work *work, enum change_kind kind)
{
	return (struct change){ .kind = (int32_t)kind,
		                .reservation_id = work->kept.reservation_id,
		                .slot = work->kept.slot,
		                .message = "",
		                .address = "" };
}

static void set_standing(const struct local_node *node, struct work *work)
{
	int64_t count = work->order.part_count;
	int64_t *standing = arena_alloc(&work->arena, (size_t)(count + 1) * sizeof(*standing));

	for (int64_t i = 0; i < count; i++) {
		const struct gpu_view *gpu = measure_gpu(node, work->order.parts[i].uuid);
		standing[i] = gpu ? gpu->standing_mib : 0;
	}
	work->kept.standing = (struct rows){ standing, count };
}

void work_begin(struct local_node *node, struct work *work)
{
	INVARIANT(work->kept.phase == WORK_WAITING);
	set_standing(node, work);
	work->kept.phase = WORK_STARTING;
	work->kept.started_ms = work->busy_ms = work->kept.accounted_ms = node->now_ms;
	work_write(node, work);
	struct output *output = node_output(node, OUTPUT_START, work->kept.reservation_id);
	output->order = node_order_copy(&node->outputs->arena, &work->order);
}

/* Nothing of it is kept yet, or it was never started. */
void work_refuse(struct local_node *node, struct work *work, const char *message)
{
	struct arena arena = { 0 };
	struct change change = change_of(work, CHANGE_REFUSED);
	int64_t reservation_id = work->kept.reservation_id;
	bool told = work->told;

	change.message = message;
	report_refusal(node, &work->order, &change, &arena);
	if (work->kept.phase == WORK_WAITING)
		work_remove(node, work);
	else
		work_forget(node, work);
	orders_turn_down(node, reservation_id, link_change(node, &change));
	arena_free(&arena);
	if (told) /* the scheduler believes that it runs, and would not take a refusal */
		link_want_snapshot(node);
}

static void kill_now(struct local_node *node, struct work *work)
{
	if (work->next_kill_ms == INT64_MAX)
		node_output(node, OUTPUT_FREEZE, work->kept.reservation_id);
	node_output(node, OUTPUT_KILL, work->kept.reservation_id);
	work->next_kill_ms = node_later(node, node->policy.kill_repeat_ms);
}

/* It was told to stop already: the earlier end counts, and the first reason. */
static void stop_again(struct local_node *node, struct work *work, int64_t kill_ms)
{
	if (kill_ms >= work->kept.kill_ms)
		return;
	work->kept.kill_ms = kill_ms;
	work_write(node, work);
}

void work_stop(struct local_node *node, struct work *work, enum end_reason reason, int64_t grace_ms,
               const char *message)
{
	if (work_is_watched(work) && reason != END_ORDERED)
		return;
	if (work->kept.memory != MEMORY_ON_GPU) /* it could not hear a notice */
		grace_ms = 0;
	if (work_is_watched(work)) /* its kubelet ends it */
		grace_ms = TIME_MS_MAX;
	int64_t kill_ms = min64(node_later(node, grace_ms), TIME_MS_MAX);

	switch ((enum work_phase)work->kept.phase) {
	case WORK_WAITING:
		work_refuse(node, work, "it was told to stop before it began");
		return;
	case WORK_STARTING:
	case WORK_RUNNING:
		break;
	case WORK_STOPPING:
		stop_again(node, work, kill_ms);
		return;
	default:
		return;
	}
	work->kept.phase = WORK_STOPPING;
	work->kept.reason = (int32_t)reason;
	work->kept.message = arena_string(&work->arena, message);
	work->kept.stop_ms = node->now_ms;
	work->kept.kill_ms = kill_ms;
	work->next_late_ms = work_is_watched(work) ? node_later(node, node->policy.late_repeat_ms)
	                                           : kill_ms + node->policy.late_repeat_ms;
	work_write(node, work);
	if (grace_ms > 0)
		node_output(node, OUTPUT_NOTICE, work->kept.reservation_id);
	else
		kill_now(node, work);
	measure_charge(node);
}

/* How its end is told: what it did itself, or that it was not left to. */
static int64_t told_code(const struct work *work, int64_t exit_code)
{
	switch ((enum end_reason)work->kept.reason) {
	case END_RUNTIME:
	case END_IDLE:
		return EXIT_TIMEOUT;
	case END_OVER:
	case END_UNGUARDED:
		return EXIT_KILLED;
	default:
		return exit_code;
	}
}

static void tell_release(struct local_node *node, struct work *work)
{
	struct change change = change_of(work, CHANGE_RELEASED);

	change.took_ms = max64(work->back_ms - work->kept.stop_ms, 0);
	work->release_change = link_change(node, &change);
}

void work_tell_end(struct local_node *node, struct work *work)
{
	if (work->kept.phase < WORK_OVER || work_is_untold(work) || work->judged_by > 0)
		return;
	struct change change = change_of(work, CHANGE_EXITED);
	change.exit_code = work->kept.exit_code;
	change.reason = work->kept.reason;
	change.message = work->kept.message;
	change.ago_ms = max64(node->now_ms - work->kept.ended_ms, 0);
	change.use = work->kept.use;
	link_change(node, &change);
	if (work->kept.phase == WORK_BACK)
		tell_release(node, work);
}

/* When it ended is between when it began and now, whatever is said. */
static void set_end(struct local_node *node, struct work *work, const struct work_end *end)
{
	struct kept_work *kept = &work->kept;
	int64_t ended_ms = end->exited_ms > 0 ? min64(end->exited_ms, node->now_ms) : node->now_ms;

	kept->ended_ms = max64(ended_ms, min64(kept->started_ms, node->now_ms));
	kept->use.host_peak_bytes = max64(0, min64(end->host_peak_bytes, TIME_MS_MAX));
	kept->use.cpu_ms = max64(0, min64(end->cpu_ms, TIME_MS_MAX));
	account_end(node, work);
}

static void work_conclude(struct local_node *node, struct work *work, const struct work_end *how)
{
	if (work->kept.phase != WORK_STOPPING) {
		work->kept.reason = END_ITSELF;
		work->kept.stop_ms = node->now_ms;
		work->next_late_ms = node_later(node, node->policy.late_repeat_ms);
	}
	work->kept.phase = WORK_OVER;
	work->kept.ready = false;
	work->kept.exit_code = told_code(work, how->exit_code);
	set_end(node, work, how);
	work_write(node, work);
	measure_charge(node);
	crowding_hold(node, work);
	work_tell_end(node, work);
}

/* Reasons of the node's own to stop a work. Without a lease its keeper may have ended
 * it before: that is seen from its code. */
static bool stopped_by_node(const struct work *work, int64_t exit_code)
{
	switch ((enum end_reason)work->kept.reason) {
	case END_RUNTIME:
	case END_IDLE:
	case END_OVER:
	case END_UNGUARDED:
		return true;
	case END_LEASE:
		return exit_code != EXIT_KILLED && exit_code != EXIT_NOTICED;
	default:
		return false;
	}
}

/* What ended before the node told it to stop ended by itself. */
static void own_end(struct work *work, const struct work_end *how)
{
	if (work->kept.phase != WORK_STOPPING || !stopped_by_node(work, how->exit_code) ||
	    how->exited_ms == 0 || how->exited_ms >= work->kept.stop_ms)
		return;
	work->kept.reason = END_ITSELF;
	work->kept.message = "";
}

void work_exited(struct local_node *node, struct work *work, const struct work_end *how)
{
	if (work->kept.phase == WORK_WAITING || work->kept.phase >= WORK_OVER)
		return;
	own_end(work, how);
	work_conclude(node, work, how);
	if (!work->kept.gone)
		kill_now(node, work);
}

static bool has_parts(const struct work *work)
{
	return work->order.part_count > 0 || work->kept.unordered;
}

void work_gone(struct local_node *node, struct work *work)
{
	if (work->kept.phase == WORK_WAITING || work->kept.gone)
		return;
	work->kept.gone = true;

	work->next_kill_ms = INT64_MAX;
	if (work->kept.phase < WORK_OVER) {
		if (work->kept.phase != WORK_STOPPING)
			work->kept.message = "its end was not seen";
		work_conclude(node, work,
		              &(struct work_end){ .exit_code = work->kept.phase == WORK_STOPPING
		                                                   ? EXIT_KILLED
		                                                   : EXIT_UNSEEN });
	}
	if (has_parts(work))
		work->asked_gone = node_ask_measure(node);
	else
		work_released(node, work);
}

void work_released(struct local_node *node, struct work *work)
{
	INVARIANT(work->kept.phase == WORK_OVER && work->kept.gone);
	if (work_is_untold(work)) {
		leave_out(node, work);
		return;
	}
	work->kept.phase = WORK_BACK;
	work->back_ms = node->now_ms;
	work->next_late_ms = INT64_MAX;
	tell_release(node, work);
}

static void started(struct local_node *node, struct work *work, const struct work_event *event)
{
	work->kept.pid = event->pid;
	work->kept.pid_start = event->pid_start;
	if (work->kept.phase == WORK_STARTING) {
		work->kept.phase = WORK_RUNNING;
		work->kept.started_ms = work->busy_ms = work->kept.accounted_ms = node->now_ms;
		struct change change = change_of(work, CHANGE_STARTED);
		work_write(node, work);
		link_change(node, &change);
	} else if (work->kept.phase == WORK_STOPPING) {
		work_write(node, work);
	}
}

/* It may have been told to stop meanwhile. */
static void not_started(struct local_node *node, struct work *work, const char *message)
{
	if (work->kept.phase != WORK_STARTING && work->kept.phase != WORK_STOPPING)
		return;
	if (work_is_untold(work)) {
		leave_out(node, work);
		return;
	}
	work_refuse(node, work, message && *message ? message : "it could not be started");
}

static void ready(struct local_node *node, struct work *work, const char *address)
{
	if (!work->kept.slot || !work_is_up(work) || !address)
		return;
	if (work->kept.ready && strcmp(work->kept.address, address) == 0)
		return;
	work->kept.phase = WORK_RUNNING;
	work->kept.ready = true;
	work->kept.address = arena_string(&work->arena, address);
	work->unhealthy = 0;
	work_write(node, work);
	struct change change = change_of(work, CHANGE_READY);
	change.address = work->kept.address;
	link_change(node, &change);
}

static void health(struct local_node *node, struct work *work, bool healthy, const char *message)
{
	if (!work->kept.slot || !work_is_up(work))
		return;
	if (work->kept.memory != MEMORY_ON_GPU) { /* it is frozen, and cannot answer */
		work->unhealthy = 0;
		return;
	}
	if (!healthy && message)
		work_stop(node, work, END_UNHEALTHY, work->order.grace_ms, message);
	if (!work->kept.ready || !work_is_up(work))
		return;
	work->unhealthy = healthy ? 0 : work->unhealthy + 1;
	if (work->unhealthy >= max64(node->policy.unhealthy_checks, 1))
		work_stop(node, work, END_UNHEALTHY, work->order.grace_ms,
		          "it does not answer its health checks");
}

void work_event(struct local_node *node, enum input_kind kind, const struct work_event *event)
{
	struct work *work = work_find(node, event->reservation_id);

	if (!work || work->kept.phase == WORK_WAITING)
		return;
	switch (kind) {
	case INPUT_STARTED:
		started(node, work, event);
		break;
	case INPUT_NOT_STARTED:
		not_started(node, work, event->message);
		break;
	case INPUT_EXITED:
		if (event->guarded)
			account_guard(work, &event->guard);
		if (event->guarded)
			crowding_guard(node, work, &event->guard);
		if (event->message && work_is_up(work))
			work->kept.message = arena_string(&work->arena, event->message);
		work_exited(node, work,
		            &(struct work_end){ event->exit_code, event->exited_ms,
		                                event->host_peak_bytes, event->cpu_ms });
		break;
	case INPUT_GONE:
		work_gone(node, work);
		break;
	case INPUT_READY:
		ready(node, work, event->address);
		break;
	case INPUT_HEALTH:
		health(node, work, event->healthy, event->message);
		break;
	case INPUT_SUSPENDED:
	case INPUT_RESUMED:
		suspend_event(node, work, kind, event);
		break;
	case INPUT_ACTIVE:
		work->active = max64(event->active, 0);
		break;
	case INPUT_SESSION:
		work->busy_ms = node->now_ms;
		work->idle_told = false;
		break;
	case INPUT_CHECKPOINT:
		if (work->kept.phase == WORK_RUNNING && !work->kept.slot) {
			struct change change = change_of(work, CHANGE_CHECKPOINT);
			link_change(node, &change);
		}
		break;
	default:
		break;
	}
}

/* When it is to be stopped if nothing changes; INT64_MAX: never. */
static int64_t runtime_ends_ms(const struct work *work)
{
	if (!work_is_up(work) || work->kept.slot || work->order.max_runtime_ms == 0)
		return INT64_MAX;
	if (work->kept.memory != MEMORY_ON_GPU)
		return INT64_MAX;
	return work->kept.started_ms + work->kept.paused_ms + work->order.max_runtime_ms;
}

static int64_t load_ends_ms(const struct work *work)
{
	if (!work_is_up(work) || !work->kept.slot || work->kept.ready ||
	    work->order.load_timeout_ms == 0)
		return INT64_MAX;
	return work->kept.started_ms + work->order.load_timeout_ms;
}

static int64_t kill_due_ms(const struct work *work)
{
	if (work_is_watched(work))
		return INT64_MAX;
	if (work->kept.gone || work->next_kill_ms != INT64_MAX)
		return work->next_kill_ms;
	if (work->kept.phase == WORK_STOPPING)
		return work->kept.kill_ms;
	return INT64_MAX;
}

static int64_t wait_ends_ms(const struct local_node *node, const struct work *work)
{
	return work->kept.phase == WORK_WAITING ? work->asked_ms + node->policy.measure_timeout_ms
	                                        : INT64_MAX;
}

static void tell_late(struct local_node *node, struct work *work)
{
	struct arena arena = { 0 };
	struct change change = change_of(work, CHANGE_LATE);

	change.took_ms = max64(node->now_ms - work->kept.stop_ms, 0);
	change.message = work->kept.gone ? "its processes are gone, its memory is not back"
	                                 : "processes of it are left";
	report_pids(node, work, &change, &arena);
	link_change(node, &change);
	arena_free(&arena);
	work->next_late_ms = node_later(node, node->policy.late_repeat_ms);
}

static void stop_slow_load(struct local_node *node, struct work *work)
{
	struct buffer message = { 0 };

	buffer_print(&message, "loading took longer than %lld s",
	             (long long)(work->order.load_timeout_ms / 1000));
	work_stop(node, work, END_UNHEALTHY, work->order.grace_ms, message.data);
	buffer_free(&message);
}

void work_time(struct local_node *node, struct work *work)
{
	if (wait_ends_ms(node, work) <= node->now_ms) {
		work_refuse(node, work, "its GPUs could not be measured in time");
		return;
	}
	if (runtime_ends_ms(work) <= node->now_ms)
		work_stop(node, work, END_RUNTIME, work->order.grace_ms, "time limit reached");
	if (load_ends_ms(work) <= node->now_ms)
		stop_slow_load(node, work);
	if (kill_due_ms(work) <= node->now_ms)
		kill_now(node, work);
	if (work->next_late_ms <= node->now_ms)
		tell_late(node, work);
	crowding_time(node, work);
}

int64_t work_wake_ms(const struct local_node *node, const struct work *work)
{
	int64_t wake_ms = min64(runtime_ends_ms(work), load_ends_ms(work));

	wake_ms = min64(wake_ms, min64(kill_due_ms(work), wait_ends_ms(node, work)));
	if (work_is_up(work) && work->order.lease_loss == LEASE_STOP)
		wake_ms = min64(wake_ms, node->lease_until_ms);
	return min64(wake_ms, min64(work->next_late_ms, crowding_wake_ms(work)));
}
