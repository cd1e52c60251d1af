/* restart.c - resuming after a restart, from what was stored and what is found */
#include <string.h>

#include "node/local.h"

#define EXIT_KILLED 137
#define EXIT_NOTICED 143

static const struct found *found_for(const struct found *found, int64_t count,
                                     const struct work *work)
{
	for (int64_t i = 0; i < count; i++)
		if (found[i].reservation_id == work->kept.reservation_id)
			return &found[i];
	return NULL;
}

/* A process of the same number that started at another time is somebody else. */
static bool is_alive(const struct work *work, const struct found *found)
{
	const struct kept_work *kept = &work->kept;

	if (!found || !found->alive)
		return false;
	return found->pid == 0 || kept->pid == 0 ||
	       (found->pid == kept->pid && found->pid_start == kept->pid_start);
}

/* Their keeper ends tasks after their lease while the agent is down, or hangs: that
 * is not an end of their own. */
static void exited(struct local_node *node, struct work *work, const struct found *found)
{
	bool killed = found->exit_code == EXIT_KILLED || found->exit_code == EXIT_NOTICED;

	if (killed && work_is_up(work) && work->order.lease_loss == LEASE_STOP &&
	    node->lease_until_ms <= node->now_ms) {
		work->kept.phase = WORK_STOPPING;
		work->kept.reason = END_LEASE;
		work->kept.message = "no scheduler renewed its lease";
		work->kept.stop_ms = node->now_ms;
	}
	if (found->guarded)
		account_guard(work, &found->guard);
	work_exited(node, work,
	            &(struct work_end){ found->exit_code,
	                                node->was_other_boot ? 0 : found->exited_ms,
	                                found->host_peak_bytes, found->cpu_ms });
}

/* Its processes are there: it keeps running, or keeps ending. */
static void adopt(struct local_node *node, struct work *work, const struct found *found)
{
	work->kept.gone = false;
	work->failures = -1;
	if (work->kept.phase == WORK_STARTING) {
		work->kept.phase = WORK_RUNNING;
		work->kept.pid = found->pid;
		work->kept.pid_start = found->pid_start;
		work_write(node, work);
	}
	if (found->exited)
		exited(node, work, found);
	else if (work->kept.phase == WORK_OVER)
		work->next_kill_ms = node->now_ms;
	else if (work->kept.phase == WORK_STOPPING)
		node_output(node, OUTPUT_NOTICE, work->kept.reservation_id);
	else
		suspend_restart(node, work);
}

/* It may have run to its end, or never begun: nobody saw. */
static void lose(struct local_node *node, struct work *work)
{
	work->kept.phase = WORK_STOPPING;
	work->kept.reason = END_LOST;
	work->kept.message = "it was gone when the agent started again";
	work->kept.stop_ms = node->now_ms;
	work_gone(node, work);
}

static void resolve(struct local_node *node, struct work *work, const struct found *found)
{
	if (work_is_watched(work) && work->kept.phase < WORK_OVER) {
		/* Whether its pod is there is looked for again, also after a boot. */
		if (work->kept.phase == WORK_STOPPING)
			node_output(node, OUTPUT_NOTICE, work->kept.reservation_id);
		return;
	}
	if (is_alive(work, found)) {
		adopt(node, work, found);
		return;
	}
	if (work->kept.phase >= WORK_OVER) {
		work->kept.phase = WORK_OVER;
		work->kept.gone = false;
		work_gone(node, work);
		return;
	}
	if (found && found->exited)
		exited(node, work, found);
	else if (work_is_up(work)) {
		lose(node, work);
		return;
	}
	work_gone(node, work);
}

/* Times of another boot mean nothing on this one. */
static void begin_times_anew(struct local_node *node, struct work *work)
{
	work->kept.started_ms = node->now_ms;
	work->kept.stop_ms = work->kept.stop_ms > 0 ? node->now_ms : 0;
	work->kept.kill_ms = work->kept.kill_ms > 0 ? node->now_ms : 0;
	work->kept.ended_ms = work->kept.ended_ms > 0 ? node->now_ms : 0;
	work->kept.accounted_ms = node->now_ms;
	work->kept.memory_ms = work->kept.memory_ms > 0 ? node->now_ms : 0;
}

static void add_unordered(struct local_node *node, const struct found *found)
{
	bool slot = found->model && *found->model;
	struct node_order order = { .kind = slot ? ORDER_LOAD : ORDER_START,
		                    .reservation_id = found->reservation_id,
		                    .model = slot ? found->model : "" };
	struct work *work = work_add(node, &order);

	work->kept.unordered = true;
	work->kept.phase = WORK_RUNNING;
	work->kept.pid = found->pid;
	work->kept.pid_start = found->pid_start;
	work->kept.started_ms = work->busy_ms = work->kept.accounted_ms = node->now_ms;
	work_write(node, work);
	if (found->exited)
		work_exited(node, work,
		            &(struct work_end){ .exit_code = found->exit_code,
		                                .host_peak_bytes = found->host_peak_bytes,
		                                .cpu_ms = found->cpu_ms });
}

void restart_apply(struct local_node *node, const struct found *found, int64_t count,
                   int64_t lease_until_ms)
{
	INVARIANT(count >= 0 && (count == 0 || found));
	node->lease_until_ms = node->was_other_boot ? 0 : min64(lease_until_ms, TIME_MS_MAX);
	node_write(node);
	for (size_t i = node->work_count; i-- > 0;) {
		struct work *work = node->works[i];
		if (node->was_other_boot)
			begin_times_anew(node, work);
		work->busy_ms = node->now_ms;
		if (work->kept.phase >= WORK_STOPPING)
			work->next_late_ms = node_later(node, node->policy.late_repeat_ms);
		resolve(node, work, found_for(found, count, work));
	}
	for (int64_t i = 0; i < count; i++)
		if (found[i].alive && found[i].reservation_id > 0 &&
		    !work_find(node, found[i].reservation_id))
			add_unordered(node, &found[i]);
	enforce_lease(node);
	node_ask_measure(node);
}
