/* leases_http.c - leases as people ask for them over REST */
#include "api/model/leases_local.h"
#include "api/model/model_calls.h"
#include "api/service/service_state.h"
#include "api/text/ids.h"
#include "api/text/times.h"
#include "base/clock.h"
#include "wire/text/json_writer.h"
#include "json/json_reader.h"

enum { WAIT_MS_MAX = 10 * 60 * 1000 };
#define LEASE_MS_MAX INT64_C(86400000)

/* Nodes announce addresses that begin with http://. */
static void put_address(struct json_writer *json, const struct lease *lease, bool tls_only)
{
	static const char plain[] = "http://";
	struct buffer address = { 0 };

	if (lease->slot_id == 0 || !tls_only ||
	    strncmp(lease->address, plain, sizeof(plain) - 1) != 0) {
		json_put_string(json, "address", lease->slot_id > 0 ? lease->address : NULL);
		return;
	}
	buffer_print(&address, "https://%s", lease->address + sizeof(plain) - 1);
	json_put_string(json, "address", address.data);
	buffer_free(&address);
}

void leases_answer(const struct lease *lease, struct request *request, int status)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	bool follows = false, tls_only = false;

	struct json_writer *json = request_object(request);
	json_put_id(json, "lease_id", ID_LEASE, lease->id);
	json_put_id(json, "model_id", ID_MODEL, lease->model_id);
	json_put_string(json, "status", lease->slot_id > 0 ? "granted" : "waiting");
	json_put_id(json, "slot_id", ID_SLOT, lease->slot_id);
	catalogue_lock(catalogue);
	const struct node_record *node =
	    lease->slot_id > 0 ? catalogue_get(catalogue, RECORD_NODE, lease->node_id, 0) : NULL;
	json_put_string(json, "node", node ? node->name : NULL);
	const char *key =
	    lease->key[0] ? lease->key
	    : node ? agents_slot_key(request->service->agents, node->name, lease->slot_id, &follows)
		   : NULL;
	const char *certificate =
	    node ? agents_slot_certificate(request->service->agents, node->name, lease->slot_id,
	                                   &tls_only)
		 : NULL;
	catalogue_unlock(catalogue);
	put_address(json, lease, tls_only);
	json_put_string(json, "key", key);
	json_put_string(json, "certificate_sha256", certificate);
	json_put_moment(json, "expires_at", lease->slot_id > 0 ? lease->until_ms : 0);
	json_close(json);
	request_answer_json(request, status);
}

static bool query_duration(const struct exchange *exchange, const char *name, int64_t most_ms,
                           int64_t *duration_ms, struct error *error)
{
	struct text value = query_get(&exchange->query, name);

	*duration_ms = 0;
	if (!value.data)
		return true;
	if (duration_read(value, DURATION_MAX_MS, duration_ms) && *duration_ms >= 0 &&
	    *duration_ms <= most_ms)
		return true;
	return error_set(error, ERROR_INVALID,
	                 "%s must be a duration such as 30s, of at most %lld seconds", name,
	                 (long long)(most_ms / 1000));
}

/* Who the request counts for: an administrator may say. */
static bool leases_http_read_tenant(const struct request *request, int64_t *tenant_id,
                                    struct error *error)
{
	static const char *const known[] = { "tenant_id", NULL };
	const struct roster *roster = &request->service->roster;
	const struct roster_tenant *tenant = NULL;

	*tenant_id = request->identity.tenant_id;
	if (request->exchange->body.size == 0)
		return true;
	json_t *document = json_read(request->exchange->body, NULL, error);
	struct json_reader reader = json_reader_of(document, "", error);
	struct text name = json_get_text(&reader, "tenant_id", 96);
	if (name.data) {
		tenant = roster_named(roster, name);
		if (!tenant || !roster_may_see(roster, &request->identity, tenant->id))
			json_fail(&reader, "tenant_id", "is not a tenant that is known");
		else
			*tenant_id = tenant->id;
	}
	bool ok = document && json_reader_end(&reader, known);
	json_decref(document);
	return ok;
}

void leases_create(struct request *request)
{
	const struct exchange *exchange = request->exchange;
	struct error error = { 0 };
	struct lease_wish wish = { 0 };

	if (!request->service->settings.direct_leases) {
		request_refuse(request, 403, "forbidden",
		               "models are not leased here (models.direct_leases is off): ask them "
		               "through a gateway");
		return;
	}
	if (!model_calls_of_path(request, &wish.model_id))
		return;
	if (!query_duration(exchange, "wait", WAIT_MS_MAX, &wish.wait_ms, &error) ||
	    !query_duration(exchange, "lease", LEASE_MS_MAX, &wish.lease_ms, &error) ||
	    !leases_http_read_tenant(request, &wish.tenant_id, &error))
		request_fail(request, &error);
	else
		leases_ask(request->service->leases, request, &wish);
}

/* The lease of the path, if who asks may touch it; otherwise answers 404. */
static struct lease *find_lease(struct request *request)
{
	struct text segment = request_segment(request, 3);
	int64_t id = 0;

	if (!id_read(segment, ID_LEASE, &id)) {
		request_unknown(request, "lease", segment);
		return NULL;
	}
	struct lease *lease = map_get(&request->service->leases->by_id, id);
	if (lease && !lease->request && !lease->is_asked &&
	    (request->identity.role == ROLE_ADMIN ||
	     roster_may_see(&request->service->roster, &request->identity, lease->tenant_id)))
		return lease;
	request_refuse(request, 404, "not_found",
	               "there is no lease-%lld: it has expired, or was given back", (long long)id);
	return NULL;
}

void leases_delete(struct request *request)
{
	struct error error = { 0 };
	bool failed = false;

	if (!query_flag(&request->exchange->query, "failed", false, &failed, &error)) {
		request_fail(request, &error);
		return;
	}
	struct lease *lease = find_lease(request);
	if (lease)
		leases_end(lease, request, failed ? REQUEST_FAILED : REQUEST_SUCCEEDED);
}

void leases_show(struct request *request)
{
	const struct lease *lease = find_lease(request);

	if (lease)
		leases_answer(lease, request, 200);
}

static int64_t default_lease_ms(const struct request *request)
{
	struct catalogue *catalogue = service_catalogue(request->service);

	catalogue_lock(catalogue);
	const struct config_record *config = catalogue_get(catalogue, RECORD_CONFIG, 1, 0);
	int64_t lease_ms = config ? config->lease_ms : config_default().lease_ms;
	catalogue_unlock(catalogue);
	return lease_ms;
}

/* The lease may have ended meanwhile. */
static void on_renewed(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	struct lease *lease =
	    map_get(&request->service->leases->by_id, engine->command.request.request_id);

	if (!engine->ok) {
		request_fail(request, &engine->error);
	} else if (!lease) {
		request_refuse(request, 404, "not_found", "the lease has ended meanwhile");
	} else {
		lease->until_ms =
		    clock_unix_ms() +
		    (lease->lease_ms > 0 ? lease->lease_ms : default_lease_ms(request));
		leases_tell_key(lease);
		leases_answer(lease, request, 200);
	}
}

void leases_renew(struct request *request)
{
	struct error error = { 0 };
	int64_t lease_ms = 0;

	if (!query_duration(request->exchange, "lease", LEASE_MS_MAX, &lease_ms, &error)) {
		request_fail(request, &error);
		return;
	}
	struct lease *lease = find_lease(request);
	if (!lease)
		return;
	if (lease_ms > 0)
		lease->lease_ms = lease_ms;
	request->engine.command = (struct command){ .kind = COMMAND_REQUEST_RENEW };
	request->engine.command.request = (struct request_command){ .request_id = lease->id,
		                                                    .model_id = lease->model_id,
		                                                    .tenant_id = lease->tenant_id,
		                                                    .lease_ms = lease_ms };
	request->engine.has_command = true;
	request_send(request, on_renewed);
}
