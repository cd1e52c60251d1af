/* why_holders.c - who has the memory of a GPU that is short of it */
#include <inttypes.h>

#include "core/state.h"
#include "core/why/why_text.h"

#define NAMED_MAX 16 /* jobs and slots that the sentence names */

static void print_comma(struct buffer *buffer, int *named)
{
	buffer_text(buffer, (*named)++ > 0 ? ", " : "");
}

static void print_amount(struct buffer *buffer, int *named, const char *who, int64_t mib)
{
	if (mib <= 0)
		return;
	print_comma(buffer, named);
	buffer_print(buffer, "%s %" PRId64 " MiB", who, mib);
}

static void print_owner(struct buffer *buffer, const struct sched *sched,
                        const struct reservation *reservation, const struct part *part,
                        int64_t viewer)
{
	bool freed = reservation->phase == PHASE_RELEASING;

	if (reservation->slot)
		text_slot(buffer, reservation->slot, viewer);
	else
		text_job(buffer, sched, reservation->job->r.id, 0, viewer);
	buffer_print(buffer, " %" PRId64 " MiB", max64(part->mib, part->measured_mib));
	if (reservation->slot && reservation->slot->active > 0) {
		buffer_text(buffer, " with ");
		text_count(buffer, reservation->slot->active, "request");
		buffer_text(buffer, " in flight");
	}
	buffer_text(buffer, freed ? " (being freed)" : "");
}

static const struct part *part_on(const struct reservation *reservation, const struct gpu *gpu)
{
	for (int p = 0; p < reservation->part_count; p++)
		if (reservation->parts[p].gpu == gpu && reservation->phase != PHASE_CLAIM)
			return &reservation->parts[p];
	return NULL;
}

/* The next that has a part of the GPU, by id, so that an answer is always the same; NULL: none. */
static const struct reservation *next_owner(const struct gpu *gpu, int64_t after_id)
{
	const struct node *node = gpu->node;
	const struct reservation *next = NULL;

	for (int i = 0; i < node->reservation_count; i++) {
		const struct reservation *reservation = node->reservations[i];
		if (reservation->id > after_id && (!next || reservation->id < next->id) &&
		    part_on(reservation, gpu))
			next = reservation;
	}
	return next;
}

static void print_holders(struct buffer *buffer, const struct sched *sched, const struct gpu *gpu,
                          int64_t viewer)
{
	const struct reservation *owner = next_owner(gpu, 0);
	int named = 0;

	if (gpu->r.foreign_mib <= 0 && !owner)
		return;
	text_gpu(buffer, sched, gpu->r.id);
	buffer_print(buffer, " has %" PRId64 " MiB: ", gpu->r.capacity_mib);
	print_amount(buffer, &named, "the driver", gpu->r.overhead_mib);
	print_amount(buffer, &named, "programs that nobody scheduled",
	             gpu->r.foreign_mib - gpu->r.unexplained_mib);
	print_amount(buffer, &named, "memory that no process explains", gpu->r.unexplained_mib);
	for (; owner && named < NAMED_MAX; owner = next_owner(gpu, owner->id)) {
		print_comma(buffer, &named);
		print_owner(buffer, sched, owner, part_on(owner, gpu), viewer);
	}
	buffer_text(buffer, owner ? ", and others" : "");
	print_amount(buffer, &named, "free", gpu_free_now(gpu));
	buffer_text(buffer, "\n");
}

static bool is_about_memory(int64_t check)
{
	return check == CHECK_MEMORY || check == CHECK_OCCUPIED || check == CHECK_WHOLE ||
	       check == CHECK_OVER;
}

void text_holders(struct buffer *buffer, const struct sched *sched, const int64_t *rows,
                  int64_t count, int64_t viewer)
{
	for (int64_t i = 0; i < count; i++) {
		const int64_t *row = rows + i * REFUSAL_WIDTH;
		const struct gpu *gpu =
		    is_about_memory(row[REFUSAL_CHECK])
			? map_get(&sched->cluster.gpu_by_id, row[REFUSAL_NEAREST])
			: NULL;
		if (!gpu)
			continue;
		print_holders(buffer, sched, gpu, viewer);
		return;
	}
}
