/* told.c - what the core was told about a node's GPUs, so that only news is told */
#include "node/told.h"

#include <stdlib.h>
#include <string.h>

#include "core/record/heat.h"

static struct told_gpu *told_find(struct told *told, const char *uuid)
{
	for (int i = 0; i < told->gpu_count; i++)
		if (strcmp(told->gpus[i].uuid, uuid) == 0)
			return &told->gpus[i];
	return NULL;
}

static bool is_hot(const struct told_gpu *gpu, int64_t temperature_c,
                   const struct session_policy *policy)
{
	return heat_is_hot(gpu->hot, temperature_c,
	                   heat_threshold_c(policy->hot_c, gpu->slowdown_c), policy->cool_c);
}

static struct told_gpu *told_add(struct told *told, const char *uuid)
{
	array_reserve(told->gpus, told->gpu_capacity, (size_t)told->gpu_count + 1);
	struct told_gpu *gpu = &told->gpus[told->gpu_count++];
	*gpu = (struct told_gpu){ .uuid = memory_text(uuid), .healthy = true };
	return gpu;
}

static void set(struct told_gpu *gpu, int64_t foreign_mib, int64_t temperature_c, bool healthy,
                const struct session_policy *policy)
{
	gpu->foreign_mib = foreign_mib;
	gpu->hot = is_hot(gpu, temperature_c, policy);
	gpu->healthy = healthy;
}

static void add_use(struct told *told, int gpu, const struct measurement *measurement)
{
	array_reserve(told->uses, told->use_capacity, told->use_count + 1);
	INVARIANT(gpu >= 0 && gpu < told->gpu_count);
	told->uses[told->use_count++] =
	    (struct told_use){ measurement->reservation_id, gpu, measurement->memory_mib };
}

static int compare_uses(const void *a, const void *b)
{
	const struct told_use *x = a, *y = b;

	if (x->gpu != y->gpu)
		return x->gpu < y->gpu ? -1 : 1;
	return (x->reservation_id > y->reservation_id) - (x->reservation_id < y->reservation_id);
}

static void sort_uses(struct told *told)
{
	if (told->use_count > 0)
		qsort(told->uses, told->use_count, sizeof(*told->uses), compare_uses);
}

void told_snapshot(struct told *told, const struct node_report_command *report,
                   const struct session_policy *policy)
{
	told_clear(told);
	for (int64_t i = 0; i < report->device_count; i++) {
		const struct device *device = &report->devices[i];
		struct told_gpu *gpu = told_find(told, device->uuid);
		if (!gpu)
			gpu = told_add(told, device->uuid);
		gpu->slowdown_c = i < report->slowdowns_c.count ? report->slowdowns_c.at[i] : 0;
		set(gpu, device->foreign_mib, device->temperature_c, device->healthy, policy);
	}
	for (int64_t i = 0; i < report->measurement_count; i++) {
		struct told_gpu *gpu = told_find(told, report->measurements[i].uuid);
		if (gpu)
			add_use(told, (int)(gpu - told->gpus), &report->measurements[i]);
	}
	sort_uses(told);
}

int64_t told_unexplained_mib(const struct told *told, const char *uuid)
{
	for (int i = 0; i < told->gpu_count; i++)
		if (strcmp(told->gpus[i].uuid, uuid) == 0)
			return told->gpus[i].unexplained_mib;
	return 0;
}

static void drop_uses(struct told *told, int gpu)
{
	size_t left = 0;

	for (size_t i = 0; i < told->use_count; i++)
		if (told->uses[i].gpu != gpu)
			told->uses[left++] = told->uses[i];
	told->use_count = left;
}

void told_sample(struct told *told, const struct gpu_sample *sample,
                 const struct measurement *measurements, int64_t count,
                 const struct session_policy *policy)
{
	struct told_gpu *gpu = told_find(told, sample->uuid);

	if (!gpu)
		return;
	int at = (int)(gpu - told->gpus);
	set(gpu, sample->foreign_mib, sample->temperature_c, sample->healthy, policy);
	gpu->unexplained_mib = sample->unexplained_mib;
	drop_uses(told, at);
	for (int64_t i = 0; i < count; i++)
		add_use(told, at, &measurements[i]);
	sort_uses(told);
}

static bool differs(int64_t now_mib, int64_t told_mib, const struct session_policy *policy)
{
	int64_t difference = now_mib > told_mib ? now_mib - told_mib : told_mib - now_mib;

	return difference > policy->foreign_step_mib || (now_mib == 0) != (told_mib == 0);
}

static const struct told_use *find_use(const struct told *told, int gpu, int64_t reservation_id)
{
	const struct told_use key = { .reservation_id = reservation_id, .gpu = gpu };

	if (told->use_count == 0)
		return NULL;
	return bsearch(&key, told->uses, told->use_count, sizeof(key), compare_uses);
}

/* One that uses no more than it reserved counts as reserved, whatever it uses. */
static bool is_use_news(const struct told *told, int gpu, const struct use_sample *use,
                        const struct session_policy *policy)
{
	const struct told_use *before = find_use(told, gpu, use->reservation_id);

	if (use->memory_mib <= use->reserved_mib)
		return before && before->memory_mib > use->reserved_mib;
	return !before || differs(use->memory_mib, before->memory_mib, policy);
}

static int told_compare_ids(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* True if something was told to use the GPU and is not among the uses any more. */
static bool is_use_gone(struct told *told, int gpu, const struct use_sample *uses,
                        int64_t use_count)
{
	size_t count = 0;

	array_reserve(told->ids, told->id_capacity, (size_t)use_count + 1);
	for (int64_t i = 0; i < use_count; i++)
		if (strcmp(uses[i].uuid, told->gpus[gpu].uuid) == 0)
			told->ids[count++] = uses[i].reservation_id;
	if (count > 0)
		qsort(told->ids, count, sizeof(*told->ids), told_compare_ids);
	for (size_t i = 0; i < told->use_count; i++) {
		const struct told_use *use = &told->uses[i];
		if (use->gpu == gpu && use->memory_mib > 0 &&
		    (count == 0 || !bsearch(&use->reservation_id, told->ids, count,
		                            sizeof(*told->ids), told_compare_ids)))
			return true;
	}
	return false;
}

bool told_is_news(struct told *told, const struct gpu_sample *sample, const struct use_sample *uses,
                  int64_t use_count, const struct session_policy *policy)
{
	struct told_gpu *gpu = told_find(told, sample->uuid);

	if (!gpu)
		return false; /* a snapshot will tell */
	int at = (int)(gpu - told->gpus);
	if (sample->healthy != gpu->healthy ||
	    is_hot(gpu, sample->temperature_c, policy) != gpu->hot ||
	    differs(sample->foreign_mib, gpu->foreign_mib, policy) ||
	    differs(sample->unexplained_mib, gpu->unexplained_mib, policy))
		return true;
	for (int64_t i = 0; i < use_count; i++)
		if (strcmp(uses[i].uuid, sample->uuid) == 0 &&
		    is_use_news(told, at, &uses[i], policy))
			return true;
	return is_use_gone(told, at, uses, use_count);
}

bool told_has(const struct told *told, const char *uuid)
{
	for (int i = 0; i < told->gpu_count; i++)
		if (strcmp(told->gpus[i].uuid, uuid) == 0)
			return true;
	return false;
}

void told_clear(struct told *told)
{
	for (int i = 0; i < told->gpu_count; i++)
		free(told->gpus[i].uuid);
	told->gpu_count = 0;
	told->use_count = 0;
}

void told_free(struct told *told)
{
	told_clear(told);
	free(told->gpus);
	free(told->uses);
	free(told->ids);
}
