/* launch.c - what a runtime is started with, derived from a slot's reservation */
#include "core/model/launch.h"

struct launch launch_of(const struct model_record *model, const struct reservation *reservation)
{
	struct launch launch = { .runtime = model->runtime,
		                 .tensor_parallel = reservation->part_count,
		                 .context = model->context,
		                 .parallel = model->parallel };

	INVARIANT(reservation->part_count <= PARTS_MAX);
	for (int i = 0; i < reservation->part_count; i++) {
		const struct part *part = &reservation->parts[i];
		int64_t capacity = part->gpu->r.capacity_mib;
		launch.utilisation[i] =
		    capacity > 0 ? min64(part->mib * WHOLE_GPU / capacity, WHOLE_GPU) : 0;
	}
	if (model->runtime == RUNTIME_LLAMA_CPP && model->parallel > 1)
		launch.context = model->context * model->parallel;
	return launch;
}
