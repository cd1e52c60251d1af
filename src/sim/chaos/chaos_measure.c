/* chaos_measure.c - what an agent sees of its GPUs, rightly or not */
#include <stdlib.h>

#include "sim/chaos/chaos_world.h"

/* What is hidden while measurements are wrong: only of work that lives and keeps to
 * what it reserved, for that counts anyway. More nobody could know. */
static bool is_hidden(const struct chaos *chaos, const struct chaos_gpu *gpu, int g,
                      const struct run *run)
{
	return gpu->hides && gpu->wrong_until_ms > chaos->now_ms && run->alive && !run->away &&
	       run->used_mib[g] <= run->reserved_mib[g];
}

static int64_t hidden_mib(const struct chaos *chaos, int at, int g)
{
	const struct chaos_gpu *gpu = &chaos->nodes[at].gpus[g];
	int64_t sum = 0;

	for (size_t i = 0; i < chaos->run_count; i++)
		if (chaos->runs[i]->node == at && is_hidden(chaos, gpu, g, chaos->runs[i]))
			sum += chaos->runs[i]->used_mib[g];
	return sum;
}

static int64_t wrong_mib(const struct chaos *chaos, const struct chaos_gpu *gpu)
{
	return gpu->wrong_until_ms > chaos->now_ms ? gpu->wrong_mib : 0;
}

static int64_t read_processes(const struct chaos *chaos, int at, struct process_reading *to)
{
	const struct chaos_node *node = &chaos->nodes[at];
	int64_t count = 0;

	for (int g = 0; g < node->gpu_count; g++) {
		const struct chaos_gpu *gpu = &node->gpus[g];
		if (gpu->absent_until_ms > chaos->now_ms)
			continue;
		if (gpu->stranger_mib > 0)
			to[count++] = (struct process_reading){ .uuid = gpu->uuid,
				                                .pid = 1,
				                                .memory_mib = gpu->stranger_mib };
		for (size_t i = 0; i < chaos->run_count; i++) {
			const struct run *run = chaos->runs[i];
			if (run->node == at && run->alive && run->used_mib[g] > 0 &&
			    !is_hidden(chaos, gpu, g, run))
				to[count++] = (struct process_reading){
					.uuid = gpu->uuid,
					.pid = 100 + run->reservation_id,
					.memory_mib = run->used_mib[g],
					.reservation_id = run->reservation_id,
				};
		}
	}
	return count;
}

static struct gpu_reading read_gpu(const struct chaos *chaos, int at, int g)
{
	const struct chaos_node *node = &chaos->nodes[at];
	const struct chaos_gpu *gpu = &node->gpus[g];

	return (struct gpu_reading){ .uuid = gpu->uuid,
		                     .model = node->gpu_model,
		                     .mig_parent = gpu->parent,
		                     .place = g,
		                     .replicas = 1,
		                     .capacity_mib = gpu->capacity_mib,
		                     .overhead_mib = gpu->overhead_mib,
		                     .used_mib = run_in_use_mib(chaos, at, g) -
		                                 hidden_mib(chaos, at, g) + wrong_mib(chaos, gpu),
		                     .temperature_c = gpu->hot ? 90 : 40,
		                     .slowdown_c = 90,
		                     .utilisation = 500,
		                     .nvlink_group = gpu->nvlink_group,
		                     .healthy = !gpu->ill,
		                     .mig_mode = gpu->mig_mode };
}

void measure_machine(struct chaos *chaos, int at, int64_t number)
{
	struct chaos_node *node = &chaos->nodes[at];
	struct gpu_reading gpus[CHAOS_GPUS];
	struct input input = { .kind = INPUT_MEASURED };
	int count = 0;

	if (!node->agent || node->hangs)
		return;
	for (int g = 0; g < node->gpu_count; g++) {
		struct chaos_gpu *gpu = &node->gpus[g];
		if (gpu->absent_until_ms <= chaos->now_ms) {
			gpus[count++] = read_gpu(chaos, at, g);
			gpu->seen_ms = chaos->now_ms;
		} else if (chaos->now_ms - gpu->seen_ms >= chaos->node_policy.absent_ms) {
			gpu->doubtful = true; /* its memory counts as back */
		}
	}
	struct process_reading *processes =
	    memory_alloc((chaos->run_count + 2) * CHAOS_GPUS * sizeof(*processes));
	input.measured = (struct measured){ .number = number,
		                            .gpus = gpus,
		                            .gpu_count = count,
		                            .processes = processes,
		                            .process_count = read_processes(chaos, at, processes) };
	machine_apply(chaos, at, input);
	free(processes);
}

static void measure_wrong(struct chaos *chaos, struct chaos_gpu *gpu)
{
	uint64_t *dice = &chaos->dice[CHAOS_MEASURE];

	gpu->hides = chance(dice, 50);
	gpu->wrong_mib = gpu->hides ? 0 : between(dice, 1, gpu->capacity_mib);
	gpu->wrong_until_ms = chaos->now_ms + between(dice, 100, 30000);
	gpu->doubtful = true;
	chaos_note(chaos, "%s is measured wrong by %lld MiB", gpu->uuid, (long long)gpu->wrong_mib);
}

static void wear(struct chaos *chaos, struct chaos_gpu *gpu)
{
	uint64_t *dice = &chaos->dice[CHAOS_HARDWARE];

	switch (between(dice, 0, 3)) {
	case 0:
		gpu->hot = true;
		break;
	case 1:
		gpu->ill = true;
		break;
	case 2: /* alone, and not long enough for its memory to count as free */
		gpu->absent_until_ms =
		    chaos->now_ms + between(dice, 100, chaos->node_policy.absent_ms / 2);
		break;
	default:
		gpu->hot = gpu->ill = false;
		break;
	}
}

void measure_fault(struct chaos *chaos, int at)
{
	struct chaos_node *node = &chaos->nodes[at];
	uint64_t *dice = &chaos->dice[CHAOS_STRANGER];
	struct chaos_gpu *gpu = &node->gpus[between(&chaos->random, 0, node->gpu_count - 1)];

	if (chaos_fails(chaos, CHAOS_STRANGER, 250) && !gpu->mig_mode)
		gpu->stranger_mib =
		    chance(dice, 40) ? between(dice, 0, gpu->capacity_mib * 6 / 10) : 0;
	if (chaos_fails(chaos, CHAOS_MEASURE, 100) && !gpu->mig_mode)
		measure_wrong(chaos, gpu);
	if (chaos_fails(chaos, CHAOS_HARDWARE, 100))
		wear(chaos, gpu);
}
