/* accuracy_calls.c - how well run times and starts were predicted, over a period */
#include "api/tenant/accuracy_calls.h"

#include "api/service/service_state.h"
#include "api/tenant/report_calls.h"
#include "api/text/ids.h"
#include "api/text/resource_json.h"
#include "api/text/times.h"
#include "core/queue/predict.h"
#include "store/accuracy.h"

struct accuracy_reading {
	struct accuracy_filter filter;
	struct accuracy_report report;
};

static bool read_accuracy(struct engine_request *engine, struct store *store, struct error *error)
{
	struct accuracy_reading *reading = request_of(engine)->state;
	return accuracy_read(store, &reading->filter, &engine->arena, &reading->report, error);
}

/* In thousandths of the jobs. */
static int64_t accuracy_part(const struct accuracy *accuracy, int64_t count)
{
	return accuracy->jobs > 0 ? muldiv_down(count, 1000, accuracy->jobs) : 0;
}

static void put_accuracy(struct request *request, struct json_writer *json, const char *key,
                         const struct accuracy *accuracy)
{
	const struct roster_tenant *tenant =
	    roster_find(&request->service->roster, accuracy->tenant_id);
	bool any = accuracy->jobs > 0, of_basis = accuracy->basis >= 0;
	const struct field_value values[ACCURACY_FIELDS_COUNT] = {
		[ACCURACY_FIELD_tenant_id] =
		    FIELD_NUMBER_IF(accuracy->tenant_id > 0, accuracy->tenant_id),
		[ACCURACY_FIELD_tenant] = FIELD_STRING(tenant ? tenant->name : NULL),
		[ACCURACY_FIELD_basis] =
		    FIELD_STRING(of_basis ? basis_name(accuracy->basis) : NULL),
		[ACCURACY_FIELD_jobs] = FIELD_NUMBER(accuracy->jobs),
		[ACCURACY_FIELD_within_p90] =
		    FIELD_NUMBER_IF(any, accuracy_part(accuracy, accuracy->within_p90)),
		[ACCURACY_FIELD_within_twice] =
		    FIELD_NUMBER_IF(any, accuracy_part(accuracy, accuracy->within_twice)),
		[ACCURACY_FIELD_median_error] = FIELD_NUMBER_IF(any, accuracy->error),
		[ACCURACY_FIELD_promised_starts] = FIELD_NUMBER_IF(!of_basis, accuracy->promised),
		[ACCURACY_FIELD_kept_starts] = FIELD_NUMBER_IF(!of_basis, accuracy->kept),
	};

	json_open_object(json, key);
	resource_write(&(struct resource_writer){
	    .resource = &accuracy_resource, .json = json, .values = values });
	json_close(json);
}

static void answer_accuracy(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct accuracy_reading *reading = request->state;
	const struct accuracy_report *report = &reading->report;

	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	struct json_writer *json = request_object(request);
	json_put_moment(json, "from", reading->filter.from_ms);
	json_put_moment(json, "to", reading->filter.until_ms);
	put_accuracy(request, json, "all", &report->all);
	json_open_array(json, "tenants");
	for (int64_t i = 0; i < report->tenant_count; i++)
		put_accuracy(request, json, NULL, &report->tenants[i]);
	json_close(json);
	json_open_array(json, "bases");
	for (int64_t i = 0; i < report->basis_count; i++)
		put_accuracy(request, json, NULL, &report->bases[i]);
	json_close(json);
	json_close(json);
	request_answer_json(request, 200);
}

void accuracy_calls_get(struct request *request)
{
	struct accuracy_reading *reading = arena_alloc(&request->engine.arena, sizeof(*reading));
	struct accuracy_filter *filter = &reading->filter;

	*reading = (struct accuracy_reading){ 0 };
	request->state = reading;
	if (report_read_period(request, &filter->from_ms, &filter->until_ms) &&
	    report_read_tenants(request, &filter->tenant_ids, &filter->tenant_count))
		request_read(request, read_accuracy, answer_accuracy);
}
