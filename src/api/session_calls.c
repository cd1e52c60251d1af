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
	const struct gate_token *token =
	    identity->credential.kind == CREDENTIAL_TOKEN
		? gate_find_token(request->service->gate, identity->credential.text)
		: NULL;
	json_put_flag(json, "single_sign_on", token && token->user[0]);
	json_put_time(json, "expires_at",
	              identity->credential.expires_ms > 0 ? identity->credential.expires_ms * 1000
	                                                  : -1);
	json_put_flag(json, "may_change", identity_may_change(identity));
	json_put_string(json, "version", request->service->settings.version);
	json_close(json);
	request_answer_json(request, 200);
}
