/* accounts.c - what each GPU of a node has on it, by its last measurement and its orders */
#include "node/accounts.h"

#include "node/local.h"

static void add_owner(const struct local_node *node, const struct work *work,
                      const struct gpu_view *gpu, struct buffer *owners)
{
	const struct use *use = measure_use(node, work, gpu);
	int64_t part = work_counts(work) ? work_part(work, gpu) : -1;
	struct owner_account owner = {
		.uuid = gpu->reading.uuid,
		.reservation_id = work->kept.reservation_id,
		.pod = work_is_watched(work) && work->order.payload ? work->order.payload : "",
		.reserved_mib = part >= 0 ? work->order.parts[part].memory_mib : 0,
		.measured_mib = use ? use->owned_mib + use->charged_mib : 0,
		.whole = part >= 0 && work->order.parts[part].whole,
	};

	if (part >= 0 || owner.measured_mib > 0)
		buffer_bytes(owners, &owner, sizeof(owner));
}

void node_accounts(const struct local_node *node, struct buffer *gpus, struct buffer *owners)
{
	for (int i = 0; i < node->measure.gpu_count; i++) {
		const struct gpu_view *view = &node->measure.gpus[i];
		struct gpu_account gpu = { .reading = view->reading,
			                   .present = view->present,
			                   .foreign_mib = view->foreign_mib,
			                   .unexplained_mib = view->unexplained_mib };
		INVARIANT(view->foreign_mib >= 0 && view->unexplained_mib >= 0);
		buffer_bytes(gpus, &gpu, sizeof(gpu));
		for (size_t w = 0; w < node->work_count; w++)
			add_owner(node, node->works[w], view, owners);
	}
}
