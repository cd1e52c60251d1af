/* recorder_calls.c - GET /api/v1/history */
#include <stdio.h>

#include "api/live/recorder_local.h"
#include "api/text/ids.h"
#include "api/text/times.h"
#include "base/clock.h"

/* The window of an answer: steps from `first` to `last`. */
struct window {
	enum track_span span;
	int64_t first, last;
};

/* `digits`: as in json_put_decimal. */
static void put_track(struct json_writer *json, const char *key, const struct track *track,
                      const struct window *window, int digits)
{
	json_open_array(json, key);
	for (int64_t step = window->first; step <= window->last; step++) {
		int32_t value = track_at(track, window->span, step);
		if (value == TRACK_NONE)
			json_put_null(json, NULL);
		else
			json_put_decimal(json, NULL, value, digits);
	}
	json_close(json);
}

static void put_cluster(struct json_writer *json, const struct recorder *recorder,
                        const struct window *window, bool sees_all)
{
	const struct track *tracks = recorder->cluster;
	json_open_object(json, "cluster");
	put_track(json, "gpu_utilization", &tracks[RECORDER_UTILIZATION], window, 3);
	put_track(json, "gpu_memory_reserved", &tracks[RECORDER_RESERVED], window, 3);
	put_track(json, "gpu_memory_used", &tracks[RECORDER_USED], window, 3);
	put_track(json, "available_gpus", &tracks[RECORDER_FREE], window, 0);
	put_track(json, "total_gpus", &tracks[RECORDER_GPUS], window, 0);
	if (sees_all) {
		put_track(json, "running_jobs", &tracks[RECORDER_RUNNING], window, 0);
		put_track(json, "pending_jobs", &tracks[RECORDER_WAITING], window, 0);
	}
	json_close(json);
}

static void put_tenants(struct request *request, const struct recorder *recorder,
                        const struct window *window)
{
	const struct roster *roster = &request->service->roster;
	struct json_writer *json = &request->json;
	json_open_array(json, "tenants");
	for (size_t i = 0; i < recorder->tenants.capacity; i++) {
		const struct recorded_tenant *tenant = recorder->tenants.entries[i].value;
		const struct roster_tenant *known = tenant ? roster_find(roster, tenant->id) : NULL;
		if (!known || !roster_may_see(roster, &request->identity, tenant->id))
			continue;
		json_open_object(json, NULL);
		json_put_id(json, "tenant_id", ID_TENANT, tenant->id);
		json_put_string(json, "tenant", known->name);
		put_track(json, "gpus", &tenant->tracks[RECORDER_TENANT_GPUS], window, 3);
		put_track(json, "running_jobs", &tenant->tracks[RECORDER_TENANT_RUNNING], window,
		          0);
		put_track(json, "waiting_jobs", &tenant->tracks[RECORDER_TENANT_WAITING], window,
		          0);
		put_track(json, "cost_per_hour", &tenant->tracks[RECORDER_TENANT_COST], window, 3);
		json_close(json);
	}
	json_close(json);
}

static void put_gpu(struct json_writer *json, const struct recorded_gpu *gpu,
                    const struct window *window)
{
	json_open_object(json, "gpu");
	json_put_string(json, "uuid", gpu->uuid);
	put_track(json, "utilization", &gpu->tracks[RECORDER_GPU_UTILIZATION], window, 3);
	put_track(json, "memory_mb", &gpu->tracks[RECORDER_GPU_MEMORY], window, 0);
	put_track(json, "temperature_c", &gpu->tracks[RECORDER_GPU_TEMPERATURE], window, 0);
	json_close(json);
}

static struct window window_of(enum track_span span, int64_t now_ms)
{
	int64_t last = now_ms / track_step_ms(span);
	return (struct window){ span, last - track_steps(span) + 1, last };
}

void recorder_get(struct request *request)
{
	struct recorder *recorder = request->service->recorder;
	const struct query *query = &request->exchange->query;
	struct text period = query_get(query, "period"), uuid = query_get(query, "gpu");
	bool is_week = period.data && text_is(period, "week");
	char name[128];

	if (period.data && !is_week && !text_is(period, "day")) {
		request_refuse(request, 400, "invalid", "period must be day or week");
		return;
	}
	const struct recorded_gpu *gpu = NULL;
	if (uuid.data) {
		snprintf(name, sizeof(name), "%.*s", (int)min64((int64_t)uuid.size, 100),
		         uuid.data);
		gpu = text_map_get(&recorder->gpus, name);
		if (!gpu) {
			request_refuse(request, 404, "not_found", "there is no history of GPU '%s'",
			               name);
			return;
		}
	}
	struct window window = window_of(is_week ? TRACK_WEEK : TRACK_DAY, clock_unix_ms());
	struct json_writer *json = request_object(request);
	json_put_string(json, "period", is_week ? "week" : "day");
	json_put_integer(json, "step_seconds", track_step_ms(window.span) / 1000);
	json_put_moment(json, "from", window.first * track_step_ms(window.span));
	if (gpu) {
		put_gpu(json, gpu, &window);
	} else {
		put_cluster(json, recorder, &window, roster_sees_all(&request->identity));
		put_tenants(request, recorder, &window);
	}
	json_close(json);
	request_answer_json(request, 200);
}
