/* cluster_calls.c - the cluster as a whole, and how the service does */
#include <stdio.h>

#include "api/node/node_calls.h"
#include "api/service/figures.h"
#include "api/service/service_state.h"

void cluster_status(struct call *call)
{
	struct json_writer *json = call_object(call);
	figures_write(json, call->service, &call->identity, 0);
	json_close(json);
	call_answer_json(call, 200);
}

/* What an operator should see to, although the service works. */
static void put_warnings(struct json_writer *json, const struct desk_health *health)
{
	char text[128];

	json_open_array(json, "warnings");
	if (health->clock_off_ms != 0) {
		snprintf(text, sizeof(text), "the system clock is %lld s %s the scheduler's time",
		         (long long)(health->clock_off_ms < 0 ? -health->clock_off_ms
		                                              : health->clock_off_ms) /
		             1000,
		         health->clock_off_ms < 0 ? "behind" : "ahead of");
		json_put_string(json, NULL, text);
	}
	json_close(json);
}

void cluster_health(struct call *call)
{
	struct desk_health health = { 0 };
	struct desk *desk = call->service->desk;
	desk->health(desk, &health);
	bool works = health.leading && call->service->leading && health.writer.ok;
	struct json_writer *json = call_object(call);
	json_put_string(json, "status",
	                works            ? "healthy"
	                : health.leading ? "unhealthy"
	                                 : "standby");
	if (health.leading && !health.writer.ok)
		json_put_string(json, "error",
		                *health.writer.reason ? health.writer.reason
		                                      : "the store cannot commit");
	else if (!works)
		json_put_string(json, "error",
		                "another scheduler is active, or this one is starting");
	put_warnings(json, &health);
	json_put_flag(json, "leading", health.leading);
	json_put_integer(json, "term", health.term);
	json_put_string(json, "version", call->service->settings.version);
	json_close(json);
	call_answer_json(call, works ? 200 : 503);
}
