/* chaos_suspend.c - GPU memory of tasks that goes to host memory and comes back, or does not */
#include "sim/chaos/chaos_world.h"

/* Host memory of the node that is taken: what its work may use, and the copies. */
static int64_t host_taken(const struct chaos *chaos, int at, int64_t but)
{
	int64_t sum = 0;

	for (size_t i = 0; i < chaos->run_count; i++) {
		const struct run *run = chaos->runs[i];
		if (run->node == at && run->alive && run->reservation_id != but)
			sum += run->host_bytes + run->copy_bytes;
	}
	return sum;
}

/* True where the ledger cannot know what runs: an administrator was wrong about the node, or
 * results of earlier work are on their way. */
static bool is_uncertain(const struct chaos *chaos, int at)
{
	for (size_t i = 0; i < chaos->run_count; i++)
		if (chaos->runs[i]->node == at && chaos->runs[i]->alive &&
		    (chaos->runs[i]->given_up || chaos->runs[i]->exited))
			return true;
	return chaos->nodes[at].mistaken;
}

void check_host(struct chaos *chaos, int at, int64_t reservation_id, int64_t bytes)
{
	int64_t taken = host_taken(chaos, at, reservation_id);

	if (bytes > 0 && taken + bytes > chaos->nodes[at].host_bytes && !is_uncertain(chaos, at))
		chaos_broken(chaos, "host",
		             "reservation %lld takes %lld MiB of host memory on node-%d, which "
		             "has %lld MiB and %lld of them taken",
		             (long long)reservation_id, (long long)(bytes >> 20), at,
		             (long long)(chaos->nodes[at].host_bytes >> 20),
		             (long long)(taken >> 20));
}

static int64_t on_gpus_mib(const struct run *run)
{
	int64_t sum = 0;

	for (int g = 0; g < CHAOS_GPUS; g++)
		sum += run->used_mib[g];
	return sum;
}

static enum move_end draw_end(struct chaos *chaos)
{
	if (!chaos_fails(chaos, CHAOS_SUSPEND, 300))
		return MOVE_DONE;
	return chance(&chaos->dice[CHAOS_SUSPEND], 50) ? MOVE_REFUSED : MOVE_LOST;
}

/* The agent may order it again after a restart, when it has been done, or is half done. */
void run_move(struct chaos *chaos, int at, const struct node_order *order, bool back)
{
	struct run *run = run_of(chaos, at, order->reservation_id);
	struct chaos_event event = { .kind = HAPPEN_RUN_MOVED, .node = at };

	if (!run || !run->alive || run->exited)
		return;
	chaos_note(chaos, "node-%d %s %lld", at, back ? "resumes" : "suspends",
	           (long long)order->reservation_id);
	if (back)
		run_left(run); /* it was hidden when it was measured */
	if (back && run->away)
		check_fit(chaos, at, order);
	if (!back && order->host_bytes > 0) {
		int64_t copy_bytes = order->host_bytes - run->host_bytes;
		check_host(chaos, at, order->reservation_id, order->host_bytes);
		if (on_gpus_mib(run) << 20 > copy_bytes && run->host_bytes > 0)
			chaos_broken(chaos, "host",
			             "reservation %lld has %lld MiB on GPUs, and %lld MiB of "
			             "host memory for them",
			             (long long)order->reservation_id, (long long)on_gpus_mib(run),
			             (long long)(copy_bytes >> 20));
		run->copy_bytes = max64(copy_bytes, 0);
	}
	if (run->moving) { /* it is what its agent began before it was killed */
		run->back = back;
		return;
	}
	run->moving = true;
	run->back = back;
	event.id = run->number;
	chaos_later(chaos, between(&chaos->random, 1, 4000), event);
}

/* Its agent hears of it at once, or when it wakes. */
void run_tell_move(struct chaos *chaos, struct run *run)
{
	struct input input = { .kind = run->back ? INPUT_RESUMED : INPUT_SUSPENDED,
		               .event = { .reservation_id = run->reservation_id,
		                          .failed = run->move == MOVE_REFUSED,
		                          .message = "the driver refused" } };

	run->untold = chaos->nodes[run->node].hangs;
	machine_apply(chaos, run->node, input);
}

void run_left(struct run *run)
{
	for (int g = 0; g < CHAOS_GPUS && run->lingers; g++) {
		run->copied_mib[g] = run->used_mib[g];
		run->used_mib[g] = 0;
	}
	run->holds_memory = run->holds_memory && !run->lingers;
	run->lingers = false;
}

/* The driver says that it is done; the memory may be gone later. */
static void leave(struct chaos *chaos, struct run *run)
{
	run->lingers = true;
	run->times++;
	if (chaos_fails(chaos, CHAOS_SUSPEND, 300))
		chaos_later(chaos, between(&chaos->dice[CHAOS_SUSPEND], 1, 20000),
		            (struct chaos_event){
				.kind = HAPPEN_RUN_LEFT, .node = run->node, .id = run->number });
	else
		run_left(run);
}

static void come_back(struct run *run)
{
	run_left(run);
	for (int g = 0; g < CHAOS_GPUS; g++)
		run->used_mib[g] = run->copied_mib[g];
	run->holds_memory = true;
	run->copy_bytes = 0;
}

void run_moved(struct chaos *chaos, struct run *run)
{
	bool same = run->back ? !run->away : run->away;

	run->moving = false;
	if (!run->alive || run->exited)
		return;
	run->move = same ? MOVE_DONE : draw_end(chaos);
	if (run->move == MOVE_LOST) {
		chaos_note(chaos, "%lld on node-%d is lost", (long long)run->reservation_id,
		           run->node);
		run->told = true;
		run->exit_code = 137;
		chaos->result->moves_lost++;
		chaos_later(chaos, between(&chaos->random, 1, 50),
		            (struct chaos_event){
				.kind = HAPPEN_RUN_DIES, .node = run->node, .id = run->number });
		return;
	}
	if (run->move == MOVE_DONE && !same) {
		chaos->result->moves++;
		run->away = !run->back;
		if (run->back)
			come_back(run);
		else
			leave(chaos, run);
	} else if (!run->back && !run->away) {
		run->copy_bytes = 0;
	}
	run_tell_move(chaos, run);
	if (!run->away && run->due) {
		run->due = false;
		chaos_later(chaos, between(&chaos->random, 1, 5000),
		            (struct chaos_event){
				.kind = HAPPEN_RUN_ENDS, .node = run->node, .id = run->number });
	}
}
