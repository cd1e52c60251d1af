/* session_calls.c - who is asking */
#include "api/session_calls.h"

#include "api/auth/gate_local.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"

void session_calls_get(struct request *request)
{
	const struct identity *identity = &request->identity;
	const struct roster_tenant *tenant =
	    roster_find(&request->service->roster, identity->tenant_id);
	struct json_writer *json = request_object(request);

	json_put_string(json, "name", identity->name);
	json_put_string(json, "user", identity_user(identity));
	json_put_string(json, "role", gate_role_name(identity->role));
	json_put_id(json, "tenant_id", ID_TENANT, identity->tenant_id);
	json_put_string(json, "tenant", tenant ? tenant->name : NULL);
	json_put_flag(json, "may_change", identity_may_change(identity));
	json_put_string(json, "version", request->service->settings.version);
	json_close(json);
	request_answer_json(request, 200);
}
