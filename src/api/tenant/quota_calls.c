/* quota_calls.c - guaranteed GPUs that are proposed from what tenants used */
#include "api/tenant/quota_calls.h"

#include <stdlib.h>
#include <string.h>

#include "api/service/service_state.h"
#include "api/tenant/report_calls.h"
#include "api/text/ids.h"
#include "api/text/resource_json.h"
#include "core/tenant/quota_plan.h"

struct quota_reading {
	const int64_t *tenant_ids; /* that are asked for; none: all */
	size_t tenant_count;
	int64_t now_ms;
	struct quota_proposal *proposals;
	size_t count;
};

/* In the core's thread: copies the proposals. */
static bool read_proposals(struct engine_request *engine, struct sched *sched, struct error *error)
{
	struct quota_reading *reading = request_of(engine)->state;
	struct quota_proposal *proposals =
	    sched_propose_quotas(sched, reading->now_ms, &reading->count);
	size_t size = reading->count * sizeof(*proposals);

	(void)error;
	reading->proposals = arena_alloc(&engine->arena, size + 1);
	memcpy(reading->proposals, proposals, size);
	free(proposals);
	return true;
}

static bool proposal_is_wanted(const struct quota_reading *reading, int64_t tenant_id)
{
	for (size_t i = 0; i < reading->tenant_count; i++)
		if (reading->tenant_ids[i] == tenant_id)
			return true;
	return reading->tenant_count == 0;
}

static void put_proposal(struct request *request, struct json_writer *json,
                         const struct quota_proposal *proposal)
{
	const struct roster_tenant *tenant =
	    roster_find(&request->service->roster, proposal->tenant_id);
	const struct field_value values[QUOTA_FIELDS_COUNT] = {
		[QUOTA_FIELD_tenant_id] = FIELD_ID(proposal->tenant_id),
		[QUOTA_FIELD_tenant] = FIELD_STRING(tenant ? tenant->name : NULL),
		[QUOTA_FIELD_used_gpus] = FIELD_NUMBER(proposal->used),
		[QUOTA_FIELD_quota_gpus] =
		    FIELD_NUMBER_IF(proposal->quota != QUOTA_UNSET, proposal->quota),
		[QUOTA_FIELD_proposed_gpus] = FIELD_NUMBER(proposal->proposed),
		[QUOTA_FIELD_quota_gpus_least] = FIELD_NUMBER(proposal->least),
		[QUOTA_FIELD_quota_gpus_most] = FIELD_NUMBER_IF(proposal->follows, proposal->most),
		[QUOTA_FIELD_follows] = FIELD_NUMBER(proposal->follows),
	};

	json_open_object(json, NULL);
	resource_write(&(struct resource_writer){
	    .resource = &quota_resource, .json = json, .values = values });
	json_close(json);
}

static void answer_quotas(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct quota_reading *reading = request->state;
	struct catalogue *catalogue = service_catalogue(request->service);

	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	catalogue_lock(catalogue);
	const struct config_record *config = catalogue_get(catalogue, RECORD_CONFIG, 1, 0);
	int64_t follow_ms = config ? config->quota_follow_ms : 0;
	catalogue_unlock(catalogue);
	struct json_writer *json = request_object(request);
	json_put_flag(json, "applied", follow_ms > 0);
	json_open_array(json, "quotas");
	for (size_t i = 0; i < reading->count; i++)
		if (proposal_is_wanted(reading, reading->proposals[i].tenant_id))
			put_proposal(request, json, &reading->proposals[i]);
	json_close(json);
	json_close(json);
	request_answer_json(request, 200);
}

void quota_calls_get(struct request *request)
{
	struct quota_reading *reading = arena_alloc(&request->engine.arena, sizeof(*reading));

	*reading = (struct quota_reading){ .now_ms = service_time_ms(request->service) };
	request->state = reading;
	if (report_read_tenants(request, &reading->tenant_ids, &reading->tenant_count))
		request_look(request, read_proposals, answer_quotas);
}
