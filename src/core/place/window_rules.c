/* window_rules.c - what windows keep off their nodes and GPUs */
#include "core/place/window_rules.h"

#include <string.h>

#include "core/model/model.h"
#include "core/model/slot.h"
#include "core/place/placement.h"
#include "core/queue/job.h"

#define SURE 500 /* of 1000: a prediction that is less certain says nothing */

int64_t window_stay_ms(const struct job *job)
{
	if (job->r.max_runtime_ms > 0)
		return job->r.max_runtime_ms;
	return job->s.confidence >= SURE ? max64(job->s.expected_p90_ms, 0) : 0;
}

static bool names(const struct job *job, const struct window *window)
{
	return job && job->r.window && strcmp(job->r.window, window->r.name) == 0;
}

/* Whether it belongs to the window without naming it. */
static bool is_of_tenant(const struct window *window, const struct tenant *tenant)
{
	for (; tenant && window->r.tenant_id != 0; tenant = tenant->parent)
		if (tenant->r.id == window->r.tenant_id)
			return true;
	return false;
}

static bool ends_before(const struct window *window, const struct search *search, int64_t at_ms,
                        int64_t begin_ms)
{
	int64_t stay_ms =
	    search->model ? search->model->r.load_timeout_ms : window_stay_ms(search->job);

	if (stay_ms == 0)
		stay_ms = window->r.lead_ms;
	return begin_ms == INT64_MAX || begin_ms - at_ms >= stay_ms;
}

/* Whether it keeps an applicant off that starts at that time. */
static bool keeps_off(const struct window *window, const struct search *search, int64_t at_ms)
{
	struct window_time time = window_time(&window->r, at_ms);
	bool open = time.begin_ms <= at_ms;

	INVARIANT(search->job || search->model);
	if (names(search->job, window))
		return !open || window->r.maintenance;
	if (is_of_tenant(window, search->job ? search->job->tenant : search->model->tenant))
		return false;
	return open || !ends_before(window, search, at_ms, time.begin_ms);
}

const struct window *window_in_the_way(const struct placement *placement,
                                       const struct search *search, uint64_t windows)
{
	const struct windows *all = &placement->cluster->windows;
	int64_t at_ms = search->start_ms > 0 ? search->start_ms : placement_now(placement);

	if (!search->job && !search->model)
		return NULL;
	INVARIANT(all->linked);
	for (int i = 0; i < all->count; i++)
		if ((windows >> i & 1) != 0 && keeps_off(all->at[i], search, at_ms))
			return all->at[i];
	return NULL;
}

bool windows_keep_off(const struct placement *placement, const struct search *search,
                      uint64_t windows)
{
	return window_in_the_way(placement, search, windows) != NULL;
}

/* True if the job names a window, and none of these is that one. */
static bool misses_its_window(const struct windows *all, const struct job *job, uint64_t windows)
{
	if (!job || !job->r.window || !*job->r.window)
		return false;
	for (int i = 0; i < all->count; i++)
		if ((windows >> i & 1) != 0 && names(job, all->at[i]))
			return false;
	return true;
}

/* A window that the job names may have gone since, and another of that name come elsewhere. */
bool window_keeps_off(const struct placement *placement, const struct reservation *reservation)
{
	struct search search = { .job = reservation->job };
	uint64_t windows = reservation->node->windows;

	if (reservation->slot)
		search.model = reservation->slot->model;
	for (int i = 0; i < reservation->part_count; i++)
		windows |= reservation->parts[i].gpu->windows;
	if (misses_its_window(&placement->cluster->windows, search.job, windows))
		return true;
	return windows != 0 && windows_keep_off(placement, &search, windows);
}

bool window_owns(const struct window *window, const struct reservation *reservation)
{
	const struct job *job = reservation->job;
	const struct tenant *tenant =
	    reservation->slot ? reservation->slot->model->tenant : job->tenant;

	return !window->r.maintenance && (names(job, window) || is_of_tenant(window, tenant));
}

static bool touches(const struct reservation *reservation, uint64_t bit)
{
	bool touched = (reservation->node->windows & bit) != 0;

	for (int i = 0; i < reservation->part_count && !touched; i++)
		touched = (reservation->parts[i].gpu->windows & bit) != 0;
	return touched;
}

const struct window *window_against(const struct cluster *cluster,
                                    const struct reservation *reservation, int64_t now_ms)
{
	INVARIANT(cluster->windows.linked);
	for (int i = 0; i < cluster->windows.count && reservation->node->in_windows; i++) {
		const struct window *window = cluster->windows.at[i];
		if (touches(reservation, UINT64_C(1) << i) &&
		    window_time(&window->r, now_ms).begin_ms <= now_ms &&
		    !window_owns(window, reservation))
			return window;
	}
	return NULL;
}
