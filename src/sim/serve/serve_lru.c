/* serve_lru.c - baselines without the core: first come, first served; and all models loaded */
#include <stdlib.h>

#include "base/number.h"
#include "sim/serve/serve_run.h"

/* The time that a model's requests take, one after the other. */
static double work_of(const struct serve_run *run, int model)
{
	const struct serve_kind *kind = serve_kind_of(run->trace, model);
	double ms = 0;

	for (size_t i = 0; i < run->trace->count; i++) {
		const struct serve_request *request = &run->trace->requests[i];
		if (request->model == model)
			ms += kind->prefill_ms + kind->prefill_token_ms * (double)request->input +
			      kind->decode_ms * (double)request->output;
	}
	return ms;
}

void serve_oracle_begin(struct serve_run *run)
{
	int models = run->trace->models, gpus = run->setup->gpus;
	double *work = memory_zero((size_t)models, sizeof(*work));
	double *load = memory_zero((size_t)gpus, sizeof(*load));

	for (int m = 0; m < models; m++)
		work[m] = work_of(run, m);
	for (int placed = 0; placed < models; placed++) { /* the most work first */
		int most = 0, least = 0;
		for (int m = 1; m < models; m++)
			most = work[m] > work[most] ? m : most;
		for (int g = 1; g < gpus; g++)
			least = load[g] < load[least] ? g : least;
		load[least] += work[most];
		work[most] = -1;
		serve_add_slot(run, ++run->last_slot_id, most, least, 0)->share = INT32_MAX;
	}
	free(work);
	free(load);
}

/* Begins with as many models as fit, one after the other. */
void serve_lru_begin(struct serve_run *run)
{
	run->line = memory_zero(run->trace->count + 1, sizeof(*run->line));
	for (int g = 0; g < run->setup->gpus; g++)
		run->gpus[g].free_gb = serve_usable_gb(run);
	for (int m = 0; m < run->trace->models; m++)
		for (int g = 0; g < run->setup->gpus; g++) {
			if (run->gpus[g].free_gb < serve_need_gb(run, m))
				continue;
			run->gpus[g].free_gb -= serve_need_gb(run, m);
			serve_add_slot(run, ++run->last_slot_id, m, g, 0)->share = INT32_MAX;
			break;
		}
}

void serve_lru_arrived(struct serve_run *run, size_t request)
{
	run->line[run->line_count++] = request;
}

static const struct serve_slot *slot_of_model(const struct serve_run *run, int model)
{
	for (size_t i = 0; i < run->slot_count; i++)
		if (run->slots[i]->model == model)
			return run->slots[i];
	return NULL;
}

/* The idle slot of the GPU that was used longest ago; NULL: there is none. */
static struct serve_slot *oldest_idle(const struct serve_run *run, int gpu, int64_t after_us)
{
	struct serve_slot *oldest = NULL;

	for (size_t i = 0; i < run->slot_count; i++) {
		struct serve_slot *slot = run->slots[i];
		if (slot->gpu == gpu && slot->state == SERVE_SLOT_READY &&
		    !server_has_work(&slot->server) && slot->used_us > after_us &&
		    (!oldest || slot->used_us < oldest->used_us))
			oldest = slot;
	}
	return oldest;
}

/* When the last of the idle slots was used that have to go from the GPU; INT64_MAX: it would not
 * be enough. */
static int64_t last_use(const struct serve_run *run, int gpu, double need_gb)
{
	double free_gb = run->gpus[gpu].free_gb;
	int64_t used_us = -1;

	while (free_gb < need_gb) {
		const struct serve_slot *slot = oldest_idle(run, gpu, used_us);
		if (!slot)
			return INT64_MAX;
		free_gb += serve_need_gb(run, slot->model);
		used_us = slot->used_us;
	}
	return used_us;
}

static bool lru_load(struct serve_run *run, int model)
{
	double need_gb = serve_need_gb(run, model);
	int64_t least = INT64_MAX;
	int best = -1;

	for (int g = 0; g < run->setup->gpus; g++) {
		int64_t used_us = last_use(run, g, need_gb);
		if (used_us < least) {
			least = used_us;
			best = g;
		}
	}
	if (best < 0)
		return false;
	struct serve_gpu *gpu = &run->gpus[best];
	while (gpu->free_gb < need_gb) {
		struct serve_slot *slot = oldest_idle(run, best, -1);
		gpu->free_gb += serve_need_gb(run, slot->model);
		serve_drop_slot(run, slot);
	}
	gpu->free_gb -= need_gb;
	gpu->loads_end_us = max64(gpu->loads_end_us, run->now_us) + serve_load_us(run, model);
	struct serve_slot *slot =
	    serve_add_slot(run, ++run->last_slot_id, model, best, gpu->loads_end_us);
	slot->share = INT32_MAX;
	slot->used_us = run->now_us;
	return true;
}

/* Who cannot have a slot holds up all that came later and need one. */
void serve_lru_pass(struct serve_run *run)
{
	while (run->line_first < run->line_count) {
		int model = run->trace->requests[run->line[run->line_first]].model;
		if (!slot_of_model(run, model) && !lru_load(run, model))
			return;
		run->line_first++;
	}
}
