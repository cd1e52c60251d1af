/* handed_calls.c - requests that others answer: leases, tokens and the audit log */
#include "api/handed_calls.h"

#include "api/engine/audit.h"
#include "api/model/leases.h"
#include "api/model/model_calls.h"
#include "api/service/service_state.h"
#include "api/service/tokens.h"
#include "api/text/ids.h"

/* What is left of a call when its exchange is handed over. */
struct handed {
	struct service *service;
	struct exchange *exchange;
	struct identity identity;
};

static struct handed hand_over(struct call *call)
{
	struct handed handed = { call->service, call->exchange, call->identity };
	call_release(call);
	return handed;
}

void handed_lease_create(struct call *call)
{
	int64_t id;
	if (!model_calls_of_path(call, &id))
		return;
	struct handed handed = hand_over(call);
	leases_create(handed.service->leases, handed.exchange, &handed.identity, id);
}

static bool lease_of_path(struct call *call, int64_t *id)
{
	struct text segment = call_segment(call, 3);
	if (id_read(segment, ID_LEASE, id))
		return true;
	call_unknown(call, "lease", segment);
	return false;
}

void handed_lease_show(struct call *call)
{
	int64_t id;
	if (!lease_of_path(call, &id))
		return;
	struct handed handed = hand_over(call);
	leases_show(handed.service->leases, handed.exchange, &handed.identity, id);
}

void handed_lease_delete(struct call *call)
{
	int64_t id;
	if (!lease_of_path(call, &id))
		return;
	struct handed handed = hand_over(call);
	leases_delete(handed.service->leases, handed.exchange, &handed.identity, id);
}

void handed_lease_renew(struct call *call)
{
	int64_t id;
	if (!lease_of_path(call, &id))
		return;
	struct handed handed = hand_over(call);
	leases_renew(handed.service->leases, handed.exchange, &handed.identity, id);
}

void handed_token_create(struct call *call)
{
	struct handed handed = hand_over(call);
	tokens_create(handed.service->tokens, handed.exchange, &handed.identity);
}

void handed_token_list(struct call *call)
{
	struct handed handed = hand_over(call);
	tokens_list(handed.service->tokens, handed.exchange, &handed.identity);
}

void handed_token_revoke(struct call *call)
{
	const char *id = call_segment(call, 3).data;
	struct handed handed = hand_over(call);
	tokens_revoke(handed.service->tokens, handed.exchange, &handed.identity, id);
}

void handed_audit(struct call *call)
{
	struct handed handed = hand_over(call);
	audit_list(handed.service->audit, handed.exchange, &handed.identity);
}
