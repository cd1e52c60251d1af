/* property_law.c - the memory invariant at every grant, and limits, recounted from records */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/cluster/window.h"
#include "core/test/property_checks.h"

/* What is on a GPU, by the reservations. */
struct load {
	int64_t used_mib, later_mib; /* now; when what is releasing is back and claims are served */
	int64_t owners, whole_owners;
};

static struct load load_of(const struct keeper *keeper, int64_t gpu_id)
{
	struct load load = { 0 };

	for (size_t i = 0; i < keeper_reservation_count(keeper); i++) {
		const struct reservation_record *reservation = keeper_reservation(keeper, i);
		bool away = reservation->away;
		bool claim =
		    reservation->phase == PHASE_CLAIM || reservation->phase == PHASE_WAKING;
		bool leaving = (reservation->phase == PHASE_RELEASING ||
		                reservation->phase == PHASE_SUSPENDING) &&
		               !reservation->late;
		for (int64_t p = 0; p < reservation->parts.count; p++) {
			const int64_t *part = reservation->parts.at + p * PART_WIDTH;
			if (part[PART_GPU] != gpu_id)
				continue;
			int64_t stays =
			    reservation->phase == PHASE_SUSPENDING ? reservation->residue_mib : 0;
			int64_t mib =
			    claim ? part[PART_MIB] : max64(part[PART_MIB], part[PART_MEASURED]);
			if (away) { /* what is measured there all the same, and its claim */
				int64_t residue = reservation->residue_mib;
				int64_t held = max64(residue, part[PART_MEASURED]);
				load.used_mib += held;
				load.later_mib += held - (leaving ? residue : 0) +
				                  (claim ? part[PART_MIB] - residue : 0);
				load.owners += residue > 0;
				continue;
			}
			load.used_mib += claim ? 0 : mib;
			load.later_mib += leaving ? stays : mib;
			load.owners += !claim;
			load.whole_owners += !claim && part[PART_WHOLE];
		}
	}
	return load;
}

static void check_law(const struct keeper *keeper, const struct gpu_record *gpu)
{
	struct load load = load_of(keeper, gpu->id);
	int64_t taken = gpu->overhead_mib + gpu->foreign_mib;

	if (taken + load.used_mib > gpu->capacity_mib)
		panic("the memory invariant: GPU %s has %lld overhead + %lld foreign + %lld used > "
		      "%lld MiB",
		      gpu->uuid, (long long)gpu->overhead_mib, (long long)gpu->foreign_mib,
		      (long long)load.used_mib, (long long)gpu->capacity_mib);
	if (taken + load.later_mib > gpu->capacity_mib)
		panic("GPU %s: what was granted leaves too little for the claims", gpu->uuid);
	if (load.whole_owners > 0 && load.owners > 1)
		panic("GPU %s is given whole, and has %lld owners", gpu->uuid,
		      (long long)load.owners);
}

/* What shares a GPU, by the reservations: thousandths of its compute now, and once what is
 * releasing is back and claims are served. */
struct sharers {
	int64_t now, later;
	int64_t with, without, tenant;
	bool tenants; /* of several tenants */
};

static void add_sharer(struct sharers *sharers, const struct keeper *keeper,
                       const struct reservation_record *reservation)
{
	const struct job_record *job = keeper_find(keeper, RECORD_JOB, reservation->job_id, 0);
	bool claim = reservation->phase == PHASE_CLAIM || reservation->phase == PHASE_WAKING;
	bool leaving = reservation->phase == PHASE_RELEASING && !reservation->late;
	int64_t compute = job && job->gpu_kind != GPU_WHOLE ? job->compute : 0;

	sharers->now += claim ? 0 : compute;
	sharers->later += leaving ? 0 : compute;
	if (claim || reservation->away)
		return;
	sharers->with += compute > 0;
	sharers->without += compute == 0;
	if (compute > 0) {
		sharers->tenants |= sharers->tenant != 0 && sharers->tenant != job->tenant_id;
		sharers->tenant = job->tenant_id;
	}
}

static void check_sharers(const struct keeper *keeper, const struct gpu_record *gpu)
{
	const struct config_record *config = keeper_find(keeper, RECORD_CONFIG, 1, 0);
	const struct node_record *node = keeper_find(keeper, RECORD_NODE, gpu->node_id, 0);
	struct sharers sharers = { 0 };

	for (size_t i = 0; i < keeper_reservation_count(keeper); i++) {
		const struct reservation_record *reservation = keeper_reservation(keeper, i);
		for (int64_t p = 0; p < reservation->parts.count; p++)
			if (reservation->parts.at[p * PART_WIDTH + PART_GPU] == gpu->id)
				add_sharer(&sharers, keeper, reservation);
	}
	if (sharers.now > WHOLE_GPU || sharers.later > WHOLE_GPU)
		panic("GPU %s: %lld thousandths of its compute are given away, %lld later",
		      gpu->uuid, (long long)sharers.now, (long long)sharers.later);
	if (sharers.with > 0 && sharers.without > 0)
		panic("GPU %s is shared by %lld with and %lld without a share of its compute",
		      gpu->uuid, (long long)sharers.with, (long long)sharers.without);
	if (sharers.tenants && !config->sharing_mixed)
		panic("GPU %s has its compute shared by several tenants", gpu->uuid);
	if (sharers.with > 0 && (*gpu->mig_parent || !strstr(node->labels, NODE_COMPUTE_SHARES)))
		panic("GPU %s gives no shares of its compute, and has some given away", gpu->uuid);
}

static void check_open(const struct keeper *keeper, const struct node_record *node,
                       const struct gpu_record *gpu)
{
	const struct config_record *config = keeper_find(keeper, RECORD_CONFIG, 1, 0);

	if (!gpu->present || !gpu->healthy || gpu->mig_mode || gpu->node_id != node->id)
		panic("GPU %s is absent, ill or cut up, and got something", gpu->uuid);
	if (gpu->hot && config->enable_thermal)
		panic("GPU %s is hot, and got something", gpu->uuid);
}

/* Whether `word` is one of those that `separator` separates in `list`. */
static bool has_word(const char *list, char separator, const char *word, size_t size)
{
	while (*list) {
		size_t length = strcspn(list, (char[]){ separator, '\0' });
		if (length == size && memcmp(list, word, size) == 0)
			return true;
		list += length + (list[length] != '\0');
	}
	return false;
}

static void check_wanted_node(const char *labels, const struct node_record *node)
{
	for (const char *at = labels; *at;) {
		size_t length = strcspn(at, "\n");
		if (!has_word(node->labels, '\n', at, length))
			panic("something is on node %s, which has not all labels: %s", node->name,
			      labels);
		at += length + (at[length] != '\0');
	}
}

static int64_t uneven_part(const struct job_record *job, int64_t rank)
{
	int64_t sorted[PARTS_MAX] = { 0 };

	for (int64_t i = 0; i < job->uneven.count; i++) {
		int64_t j = i;
		for (; j > 0 && sorted[j - 1] < job->uneven.at[i]; j--)
			sorted[j] = sorted[j - 1];
		sorted[j] = job->uneven.at[i];
	}
	return sorted[rank];
}

/* Checks that the part is what the job requested of a GPU; the invariant counts it. */
static void check_wanted_part(const struct job_record *job, const struct gpu_record *gpu,
                              const int64_t *part, int64_t rank)
{
	int64_t usable = gpu->capacity_mib - gpu->overhead_mib, mib = 0;

	switch ((enum gpu_kind)job->gpu_kind) {
	case GPU_WHOLE:
		mib = usable - gpu->foreign_mib;
		break;
	case GPU_FRACTION:
		mib = job->fraction * usable / WHOLE_GPU;
		break;
	case GPU_MEMORY:
		mib = job->memory_mib;
		break;
	case GPU_UNEVEN:
		mib = uneven_part(job, rank);
		break;
	case GPU_NONE:
		break;
	}
	if (part[PART_MIB] != mib || part[PART_WHOLE] != (job->gpu_kind == GPU_WHOLE) ||
	    part[PART_SHARE] < (job->gpu_kind == GPU_FRACTION ? job->fraction : 0) ||
	    part[PART_SHARE] > WHOLE_GPU)
		panic("job-%lld got %lld MiB of GPU %s and should have %lld", (long long)job->id,
		      (long long)part[PART_MIB], gpu->uuid, (long long)mib);
	if (job->gpu_kind == GPU_WHOLE && mib < job->memory_mib)
		panic("job-%lld asked for GPUs of %lld MiB and got one of %lld", (long long)job->id,
		      (long long)job->memory_mib, (long long)mib);
	if (*job->gpu_models && !has_word(job->gpu_models, '|', gpu->model, strlen(gpu->model)))
		panic("job-%lld is on a GPU of model %s", (long long)job->id, gpu->model);
}

static void check_distinct(const struct reservation_record *reservation)
{
	const int64_t *at = reservation->parts.at;

	for (int64_t i = 0; i < reservation->parts.count; i++)
		for (int64_t j = 0; j < i; j++)
			if (at[i * PART_WIDTH + PART_GPU] == at[j * PART_WIDTH + PART_GPU])
				panic("reservation %lld has a GPU twice",
				      (long long)reservation->id);
}

/* CPU and host memory of the node, releasing included. */
static void check_host(const struct keeper *keeper, const struct node_record *node,
                       const struct reservation_record *granted)
{
	int64_t cpu = 0, host = 0;

	for (size_t i = 0; i < keeper_reservation_count(keeper); i++) {
		const struct reservation_record *reservation = keeper_reservation(keeper, i);
		if (reservation->node_id != node->id || reservation->phase == PHASE_CLAIM)
			continue;
		cpu += reservation->away ? 0 : reservation->cpu_milli;
		host += reservation->host_bytes + reservation->copy_bytes;
	}
	/* One that suspends asks for host memory alone, and one that resumes has it. */
	bool suspends = granted->phase == PHASE_SUSPENDING;
	bool resumes = granted->phase == PHASE_RESUMING;
	int64_t asked_bytes = suspends ? granted->copy_bytes : granted->host_bytes;
	if ((granted->cpu_milli > 0 && !suspends && cpu > node->cpu_milli) ||
	    (asked_bytes > 0 && !resumes && host > node->host_bytes))
		panic("node %s has more CPU or host memory given out than it has", node->name);
}

/* One right that was just given. A claim may have been made when its GPU had
 * other facts, so its size is not judged again. */
static void check_right(const struct keeper *keeper, const struct job_record *job,
                        const struct reservation_record *granted, bool is_new)
{
	const struct node_record *node = keeper_find(keeper, RECORD_NODE, granted->node_id, 0);

	if (node->state != NODE_ONLINE || !node->reported || node->draining)
		panic("node %s takes nothing new, and got something", node->name);
	if (job->split_gpus == 0 && granted->parts.count != job->gpu_count)
		panic("job-%lld has a task with %lld GPUs", (long long)job->id,
		      (long long)granted->parts.count);
	check_distinct(granted);
	check_host(keeper, node, granted);
	for (int64_t i = 0; i < granted->parts.count; i++) {
		const int64_t *part = granted->parts.at + i * PART_WIDTH;
		const struct gpu_record *gpu = keeper_find(keeper, RECORD_GPU, part[PART_GPU], 0);
		check_open(keeper, node, gpu);
		check_law(keeper, gpu);
		check_sharers(keeper, gpu);
		if (is_new)
			check_wanted_part(job, gpu, part, i);
	}
	if (!is_new)
		return;
	check_wanted_node(job->node_labels, node);
}

/* Checks a right of a slot. */
static void check_slot_right(const struct keeper *keeper, const struct reservation_record *granted,
                             bool is_new)
{
	const struct node_record *node = keeper_find(keeper, RECORD_NODE, granted->node_id, 0);
	const struct model_record *model = keeper_find(keeper, RECORD_MODEL, granted->model_id, 0);

	if (node->state != NODE_ONLINE || !node->reported || node->draining)
		panic("node %s takes nothing new, and got a slot", node->name);
	check_distinct(granted);
	check_host(keeper, node, granted);
	for (int64_t i = 0; i < granted->parts.count; i++) {
		const int64_t *part = granted->parts.at + i * PART_WIDTH;
		const struct gpu_record *gpu = keeper_find(keeper, RECORD_GPU, part[PART_GPU], 0);
		check_open(keeper, node, gpu);
		check_law(keeper, gpu);
		if (is_new && *model->gpu_models &&
		    !has_word(model->gpu_models, '|', gpu->model, strlen(gpu->model)))
			panic("model-%lld is on a GPU of model %s", (long long)model->id,
			      gpu->model);
	}
	if (!is_new)
		return;
	check_slot_parts(keeper, granted);
	check_wanted_node(model->node_labels, node);
}

void new_rights(struct id_set *set, const struct keeper *keeper, const struct effects *effects)
{
	set->count = 0;
	for (size_t i = 0; i < effects->count; i++) {
		const struct reservation_record *after = effects->at[i].record;
		if (effects->at[i].kind != EFFECT_PUT ||
		    effects->at[i].record_kind != RECORD_RESERVATION || after->job_id != 0 ||
		    after->phase == PHASE_CLAIM)
			continue;
		const struct reservation_record *before =
		    keeper_find(keeper, RECORD_RESERVATION, after->id, 0);
		if (before && before->phase != PHASE_CLAIM)
			continue;
		array_reserve(set->at, set->capacity, set->count + 1);
		set->at[set->count++] = after->id;
	}
}

void check_new_rights(const struct id_set *set, const struct keeper *keeper, int64_t last_id)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct reservation_record *right =
		    keeper_find(keeper, RECORD_RESERVATION, set->at[i], 0);
		/* What a node already has is a fact, and counts whether it fits or not. */
		if (right && right->phase == PHASE_GRANTED)
			check_slot_right(keeper, right, right->id > last_id);
	}
}

/* What runs of a job, all together. Tasks that are being moved count. */
struct gang {
	int64_t running, moving, ended, gpus;
	int64_t node_id;  /* of all of it; -1: of several */
	const char *rack; /* of all of it; NULL: several */
	int64_t link;     /* NVLink group of all of it; -1: several */
	int64_t gpu_id;   /* of all of it; -1: several */
};

static void gang_link(const struct keeper *keeper, const int64_t *part, struct gang *gang)
{
	const struct gpu_record *gpu = keeper_find(keeper, RECORD_GPU, part[PART_GPU], 0);

	if (gang->gpus++ == 0) {
		gang->gpu_id = gpu->id;
		gang->link = gpu->nvlink_group;
	}
	if (gang->gpu_id != gpu->id)
		gang->gpu_id = -1;
	if (gang->link != gpu->nvlink_group)
		gang->link = -1;
}

static void gang_add(const struct keeper *keeper, const struct reservation_record *reservation,
                     struct gang *gang)
{
	const struct node_record *node = keeper_find(keeper, RECORD_NODE, reservation->node_id, 0);

	if (gang->running++ == 0) {
		gang->node_id = node->id;
		gang->rack = node->rack;
	}
	if (gang->node_id != node->id)
		gang->node_id = -1;
	if (gang->rack && strcmp(gang->rack, node->rack) != 0)
		gang->rack = NULL;
	for (int64_t i = 0; i < reservation->parts.count; i++)
		gang_link(keeper, reservation->parts.at + i * PART_WIDTH, gang);
}

static struct gang gang_of(const struct keeper *keeper, const struct job_record *job)
{
	struct gang gang = { 0 };

	for (int64_t t = 0; t < job->tasks; t++) {
		const struct task_record *task = keeper_find(keeper, RECORD_TASK, job->id, t);
		if (!task)
			continue;
		gang.ended += task->state == TASK_ENDED && task->exit_code == 0;
		const struct reservation_record *reservation =
		    keeper_find(keeper, RECORD_RESERVATION, task->reservation_id, 0);
		if (reservation &&
		    (reservation->phase == PHASE_GRANTED || reservation->phase == PHASE_LIVE ||
		     phase_is_suspended((enum phase)reservation->phase)))
			gang_add(keeper, reservation, &gang);
		else if (reservation && task->claim_id)
			gang.moving++;
	}
	return gang;
}

/* A job of which something starts: all that has to start together runs now. */
static void check_gang_start(const struct keeper *keeper, const struct job_record *job)
{
	const struct job_state_record *state = keeper_find(keeper, RECORD_JOB_STATE, job->id, 0);
	struct gang gang = gang_of(keeper, job);

	if (job->split_gpus > 0 && gang.gpus != job->split_gpus)
		panic("job-%lld is split over %lld GPUs and has %lld", (long long)job->id,
		      (long long)job->split_gpus, (long long)gang.gpus);
	if (job->split_gpus > 0)
		return;
	if (gang.running + gang.moving + gang.ended < job->min_available &&
	    state->short_since_ms == 0)
		panic("job-%lld starts with %lld of at least %lld tasks", (long long)job->id,
		      (long long)gang.running, (long long)job->min_available);
	if (!job->closeness_required || state->short_since_ms > 0)
		return;
	if ((job->closeness == CLOSE_NODE || job->closeness == CLOSE_NVLINK) && gang.node_id < 0)
		panic("job-%lld must be on one node, and is not", (long long)job->id);
	if (job->closeness == CLOSE_NVLINK && gang.gpu_id < 0 && gang.link <= 0)
		panic("job-%lld has GPUs that are not linked", (long long)job->id);
	if (job->closeness == CLOSE_RACK && gang.node_id < 0 && (!gang.rack || !*gang.rack))
		panic("job-%lld must be in one rack, and is not", (long long)job->id);
}

static void check_order(const struct keeper *keeper, const struct command *command,
                        const struct task_order *order, int64_t last_id)
{
	const struct meta_record *meta = keeper_find(keeper, RECORD_META, 1, 0);
	const struct reservation_record *reservation =
	    keeper_find(keeper, RECORD_RESERVATION, order->reservation_id, 0);

	bool stopped = reservation && reservation->phase == PHASE_RELEASING;

	if (!reservation || (reservation->phase != PHASE_GRANTED && !stopped) ||
	    (stopped && command->kind != COMMAND_PASS) || order->term != meta->term ||
	    order->job_id != reservation->job_id || order->task != reservation->task ||
	    order->node_id != reservation->node_id ||
	    order->parts.count != reservation->parts.count ||
	    order->cpu_milli != reservation->cpu_milli)
		panic("a start of reservation %lld is ordered that is not decided",
		      (long long)order->reservation_id);
	const struct job_record *job = keeper_find(keeper, RECORD_JOB, order->job_id, 0);
	if (command->kind != COMMAND_PASS) /* ordered again */
		return;
	check_right(keeper, job, reservation, reservation->id > last_id);
	if (!stopped)
		check_gang_start(keeper, job);
}

/* A slot sleeps where the host has room, and wakes as a load would be granted. */
static void check_slot_move(const struct keeper *keeper, const struct command *command,
                            const struct effect *effect)
{
	const struct reservation_record *moved =
	    keeper_find(keeper, RECORD_RESERVATION, effect->order.reservation_id, 0);
	bool back = effect->kind == EFFECT_RESUME;
	int64_t copies = 0;

	if (!moved || moved->phase != (back ? PHASE_RESUMING : PHASE_SUSPENDING) ||
	    moved->job_id != 0 || moved->node_id != effect->order.node_id)
		panic("slot %lld is to be moved, which is not decided",
		      (long long)effect->order.reservation_id);
	if (command->kind == COMMAND_NODE_REPORT) /* ordered again */
		return;
	const struct node_record *node = keeper_find(keeper, RECORD_NODE, moved->node_id, 0);
	for (size_t i = 0; i < keeper_reservation_count(keeper); i++)
		if (keeper_reservation(keeper, i)->node_id == node->id)
			copies += keeper_reservation(keeper, i)->copy_bytes;
	const struct config_record *config = keeper_find(keeper, RECORD_CONFIG, 1, 0);
	if (!back && copies > muldiv_down(node->host_bytes, config->suspend_host, 1000))
		panic("slot %lld goes to sleep, and sleepers on node %s have %lld bytes",
		      (long long)moved->id, node->name, (long long)copies);
	for (int64_t p = 0; p < moved->parts.count && back; p++) {
		const struct gpu_record *gpu =
		    keeper_find(keeper, RECORD_GPU, moved->parts.at[p * PART_WIDTH + PART_GPU], 0);
		check_open(keeper, node, gpu);
		check_law(keeper, gpu);
	}
}

/* Memory moves to the host where there is room for it, and back as a start would be granted. */
static void check_move(const struct keeper *keeper, const struct command *command,
                       const struct effect *effect)
{
	const struct task_order *order = &effect->order;
	const struct reservation_record *moved =
	    keeper_find(keeper, RECORD_RESERVATION, order->reservation_id, 0);
	bool back = effect->kind == EFFECT_RESUME;
	const struct job_record *job = keeper_find(keeper, RECORD_JOB, order->job_id, 0);

	if (order->job_id == 0) {
		check_slot_move(keeper, command, effect);
		return;
	}
	if (!moved || moved->phase != (back ? PHASE_RESUMING : PHASE_SUSPENDING) ||
	    moved->job_id != order->job_id || moved->node_id != order->node_id || job->tasks > 1)
		panic("reservation %lld is to be moved, which is not decided",
		      (long long)order->reservation_id);
	if (command->kind == COMMAND_NODE_REPORT) /* ordered again */
		return;
	const struct node_record *node = keeper_find(keeper, RECORD_NODE, moved->node_id, 0);
	const struct config_record *config = keeper_find(keeper, RECORD_CONFIG, 1, 0);
	int64_t copies = 0, mib = 0;
	for (int64_t i = 0; i < moved->parts.count; i++) {
		const int64_t *part = moved->parts.at + i * PART_WIDTH;
		mib += part[PART_WHOLE] && part[PART_MEASURED] > 0 ? part[PART_MEASURED]
		                                                   : part[PART_MIB];
	}
	for (size_t i = 0; i < keeper_reservation_count(keeper); i++)
		if (keeper_reservation(keeper, i)->node_id == node->id)
			copies += keeper_reservation(keeper, i)->copy_bytes;
	if (!back && (moved->copy_bytes < mib << 20 ||
	              copies > muldiv_down(node->host_bytes, config->suspend_host, 1000)))
		panic("reservation %lld has %lld bytes for %lld MiB, of %lld bytes on node %s",
		      (long long)moved->id, (long long)moved->copy_bytes, (long long)mib,
		      (long long)copies, node->name);
	if (job->suspend == SUSPEND_NEVER && !back)
		panic("job-%lld is suspended against its will", (long long)job->id);
	if (back)
		check_right(keeper, job, moved, false);
	else
		check_host(keeper, node, moved);
}

static bool lists_gpu_of(const struct keeper *keeper, const char *list, struct rows parts)
{
	for (int64_t i = 0; i < parts.count; i++) {
		const struct gpu_record *gpu =
		    keeper_find(keeper, RECORD_GPU, parts.at[i * PART_WIDTH + PART_GPU], 0);
		if (window_lists(list, gpu->uuid))
			return true;
	}
	return false;
}

static bool is_below(const struct keeper *keeper, int64_t tenant_id, int64_t above_id)
{
	while (tenant_id != 0 && tenant_id != above_id)
		tenant_id =
		    ((const struct tenant_record *)keeper_find(keeper, RECORD_TENANT, tenant_id, 0))
			->parent_id;
	return tenant_id != 0;
}

/* Nothing starts where a window is open that it does not belong to, nor outside of the window
 * that it names. */
static void check_windows(const struct keeper *keeper, const struct task_order *order)
{
	const struct job_record *job = keeper_find(keeper, RECORD_JOB, order->job_id, 0);
	const struct node_record *node = keeper_find(keeper, RECORD_NODE, order->node_id, 0);
	const struct meta_record *meta = keeper_find(keeper, RECORD_META, 1, 0);
	bool named = *job->window == '\0';

	for (size_t i = 0; i < keeper_window_count(keeper); i++) {
		const struct window_record *window = keeper_window(keeper, i);
		bool mine = strcmp(job->window, window->name) == 0;
		bool open = window_time(window, meta->now_ms).begin_ms <= meta->now_ms;
		bool on = window_lists(window->nodes, node->name) ||
		          lists_gpu_of(keeper, window->gpus, order->parts);
		if (!on)
			continue;
		if (mine && (!open || window->maintenance))
			panic("job-%lld starts outside of its window", (long long)job->id);
		named |= mine;
		if (open && !mine &&
		    (window->tenant_id == 0 ||
		     !is_below(keeper, job->tenant_id, window->tenant_id)))
			panic("job-%lld starts in window %s of others", (long long)job->id,
			      window->name);
	}
	if (!named)
		panic("job-%lld starts on what is not in its window", (long long)job->id);
}

void check_grants(const struct keeper *keeper, const struct command *command,
                  const struct effects *effects, int64_t last_id)
{
	for (size_t i = 0; i < effects->count; i++) {
		if (effects->at[i].kind == EFFECT_START)
			check_order(keeper, command, &effects->at[i].order, last_id);
		if (effects->at[i].kind == EFFECT_START && command->kind == COMMAND_PASS)
			check_windows(keeper, &effects->at[i].order);
		if (effects->at[i].kind == EFFECT_SUSPEND || effects->at[i].kind == EFFECT_RESUME)
			check_move(keeper, command, &effects->at[i]);
		if (effects->at[i].kind == EFFECT_LOAD)
			check_load(keeper, &effects->at[i].load);
	}
}

void holdings_free(struct holdings *holdings)
{
	free(holdings->at);
	*holdings = (struct holdings){ 0 };
}

static void property_law_hold(struct holdings *holdings, const struct keeper *keeper,
                              int64_t tenant_id, bool fixed, const struct amounts *amounts)
{
	for (int64_t id = tenant_id; id;) {
		int64_t place = keeper_place(keeper, RECORD_TENANT, id, 0);
		if (place < 0)
			panic("tenant-%lld is not kept, and has jobs or slots", (long long)id);
		amounts_add(&holdings->at[place].held, amounts);
		if (fixed)
			amounts_add(&holdings->at[place].fixed, amounts);
		id = keeper_tenant(keeper, (size_t)place)->parent_id;
	}
}

static void hold_slot(struct holdings *holdings, const struct keeper *keeper,
                      const struct reservation_record *reservation, const struct amounts *amounts)
{
	const struct model_record *model =
	    keeper_find(keeper, RECORD_MODEL, reservation->model_id, 0);
	const struct slot_record *slot = keeper_find(keeper, RECORD_SLOT, reservation->id, 0);

	property_law_hold(holdings, keeper, model->tenant_id, slot->fixed, amounts);
}

static struct amounts amounts_of(const struct reservation_record *reservation)
{
	struct amounts amounts = { { 0 } };

	for (int64_t i = 0; i < reservation->parts.count; i++) {
		const int64_t *part = reservation->parts.at + i * PART_WIDTH;
		amounts.of[AMOUNT_GPU] += part[PART_SHARE];
		amounts.of[AMOUNT_GPU_MEMORY] += part[PART_WHOLE] ? 0 : part[PART_MIB];
	}
	amounts.of[AMOUNT_CPU] = reservation->cpu_milli;
	if (reservation->phase == PHASE_SUSPENDING || reservation->phase == PHASE_SUSPENDED)
		amounts = (struct amounts){ { 0 } };
	amounts.of[AMOUNT_HOST] = reservation->host_bytes + reservation->copy_bytes;
	return amounts;
}

void holdings_count(struct holdings *holdings, const struct keeper *keeper)
{
	size_t jobs = keeper_job_count(keeper);
	bool *counted = memory_zero(jobs + 1, sizeof(*counted));

	holdings->count = keeper_tenant_count(keeper);
	array_reserve(holdings->at, holdings->capacity, holdings->count);
	for (size_t i = 0; i < holdings->count; i++)
		holdings->at[i] = (struct holding){ .tenant_id = keeper_tenant(keeper, i)->id };
	for (size_t i = 0; i < keeper_reservation_count(keeper); i++) {
		const struct reservation_record *reservation = keeper_reservation(keeper, i);
		if (reservation->phase == PHASE_RELEASING)
			continue;
		struct amounts amounts = amounts_of(reservation);
		if (reservation->job_id == 0) {
			hold_slot(holdings, keeper, reservation, &amounts);
			continue;
		}
		int64_t place = keeper_place(keeper, RECORD_JOB, reservation->job_id, 0);
		const struct job_record *job = keeper_job(keeper, (size_t)place);
		amounts.of[AMOUNT_JOBS] = !counted[place];
		counted[place] = true;
		property_law_hold(holdings, keeper, job->tenant_id, !job->preemptible, &amounts);
	}
	free(counted);
}

static void check_bound(const struct tenant_record *tenant, const char *what, int kind,
                        int64_t before, int64_t after, int64_t allowed)
{
	if (after > allowed && after > before)
		panic("tenant %s: amount %d was %lld and is %lld, and its %s is %lld", tenant->name,
		      kind, (long long)before, (long long)after, what, (long long)allowed);
}

void check_bounds(const struct keeper *keeper, const struct holdings *before,
                  const struct holdings *after)
{
	INVARIANT(before->count == after->count);
	for (size_t i = 0; i < after->count; i++) {
		const struct tenant_record *tenant = keeper_tenant(keeper, i);
		const struct holding *was = &before->at[i], *is = &after->at[i];
		const int64_t limits[AMOUNT_KINDS] = {
			tenant->limit_gpu,        tenant->limit_cpu,  tenant->limit_host,
			tenant->limit_gpu_memory, tenant->limit_jobs,
		};
		const int64_t quotas[FAIR_KINDS] = { tenant->quota_gpu, tenant->quota_cpu,
			                             tenant->quota_host };
		INVARIANT(was->tenant_id == is->tenant_id);
		for (int k = 0; k < AMOUNT_KINDS; k++)
			check_bound(tenant, "limit", k, was->held.of[k], is->held.of[k], limits[k]);
		for (int k = 0; k < FAIR_KINDS; k++)
			if (quotas[k] != QUOTA_UNSET)
				check_bound(tenant, "quota", k, was->fixed.of[k], is->fixed.of[k],
				            quotas[k]);
	}
}
