/* cluster_calls.c - the cluster as a whole, and how the service does */
#include <stdio.h>

#include "api/node/node_calls.h"
#include "api/service/figures.h"
#include "api/service/service_state.h"

void cluster_status(struct request *request)
{
	struct json_writer *json = request_object(request);
	figures_write(json, request->service, &request->identity, 0);
	json_close(json);
	request_answer_json(request, 200);
}

/* What an operator should see to, although the service works. */
static void put_warnings(struct json_writer *json, const struct engine_health *health)
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

void cluster_health(struct request *request)
{
	struct engine_health health = { 0 };
	struct engine_port *port = request->service->port;
	port->health(port, &health);
	bool works = health.leading && request->service->leading && health.writer.ok;
	struct json_writer *json = request_object(request);
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
	json_put_string(json, "version", request->service->settings.version);
	json_close(json);
	request_answer_json(request, works ? 200 : 503);
}
