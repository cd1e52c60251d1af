/* gpu_books.c - what is on a GPU, added up for people */
#include "api/read/gpu_books.h"

static void add_part(struct gpu_books *books, const struct reservation_record *reservation,
                     const int64_t *part)
{
	if (reservation->phase == PHASE_CLAIM || reservation->phase == PHASE_WAKING) {
		books->claimed += part[PART_MIB] - reservation->residue_mib;
		books->used +=
		    reservation->away ? max64(reservation->residue_mib, part[PART_MEASURED]) : 0;
		return;
	}
	if (reservation->away) {
		books->used += max64(reservation->residue_mib, part[PART_MEASURED]);
		return;
	}
	books->owners++;
	books->used += max64(part[PART_MIB], part[PART_MEASURED]);
	if (reservation->phase == PHASE_RELEASING || reservation->phase == PHASE_SUSPENDING) {
		books->releasing += part[PART_MIB] - reservation->residue_mib;
		return;
	}
	books->reserved += part[PART_MIB];
	books->share += part[PART_SHARE];
	books->whole |= part[PART_WHOLE] != 0;
}

/* Thousandths of each of its GPUs' compute, while it has them. */
static int64_t compute_of(const struct catalogue *catalogue,
                          const struct reservation_record *reservation)
{
	struct catalogue_job job;
	bool has = reservation->job_id != 0 && reservation->phase != PHASE_CLAIM;

	return has && catalogue_job(catalogue, reservation->job_id, &job) ? job.job->compute : 0;
}

struct gpu_books gpu_books(const struct catalogue *catalogue, const struct gpu_record *gpu)
{
	const struct reservation_record *const *reservations;
	size_t count = catalogue_node_reservations(catalogue, gpu->node_id, &reservations);
	struct gpu_books books = {
		.capacity = gpu->capacity_mib,
		.overhead = gpu->overhead_mib,
		.foreign = gpu->foreign_mib,
		.used = gpu->overhead_mib + gpu->foreign_mib,
		.usable = gpu->present && gpu->healthy && !gpu->mig_mode && !gpu->hot,
	};
	for (size_t i = 0; i < count; i++)
		for (int64_t part = 0; part < reservations[i]->parts.count; part++) {
			const int64_t *row = reservations[i]->parts.at + part * PART_WIDTH;
			if (row[PART_GPU] != gpu->id)
				continue;
			add_part(&books, reservations[i], row);
			books.compute += compute_of(catalogue, reservations[i]);
		}
	books.free = books.whole ? 0 : max64(books.capacity - books.used, 0);
	return books;
}

bool gpu_is_available(const struct node_record *node, const struct gpu_books *books)
{
	return node->state == NODE_ONLINE && node->reported && !node->draining && books->usable &&
	       books->owners == 0 && books->claimed == 0;
}
