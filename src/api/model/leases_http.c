/* leases_http.c - leases as people ask for them over REST */
#include "api/model/leases_local.h"
#include "api/service/call.h"
#include "api/text/ids.h"
#include "api/text/times.h"
#include "base/clock.h"
#include "wire/text/json_reader.h"
#include "wire/text/json_writer.h"

enum { WAIT_MS_MAX = 10 * 60 * 1000 };
#define LEASE_MS_MAX INT64_C(86400000)

void leases_fail(struct exchange *exchange, const struct error *error)
{
	exchange_refuse(exchange, status_of(error->code), error_code_name(error->code), "%s",
	                error->text);
}

void leases_answer(const struct lease *lease, struct exchange *exchange, int status)
{
	struct catalogue *catalogue = lease->leases->desk->catalogue;
	struct buffer body = { 0 };
	struct json_writer json = json_writer_to(&body);

	json_open_object(&json, NULL);
	json_put_id(&json, "lease_id", ID_LEASE, lease->id);
	json_put_id(&json, "model_id", ID_MODEL, lease->model_id);
	json_put_string(&json, "status", lease->slot_id > 0 ? "granted" : "waiting");
	json_put_id(&json, "slot_id", ID_SLOT, lease->slot_id);
	catalogue_lock(catalogue);
	const struct node_record *node =
	    lease->slot_id > 0 ? catalogue_get(catalogue, RECORD_NODE, lease->node_id, 0) : NULL;
	json_put_string(&json, "node", node ? node->name : NULL);
	catalogue_unlock(catalogue);
	json_put_string(&json, "address", lease->slot_id > 0 ? lease->address : NULL);
	json_put_moment(&json, "expires_at", lease->slot_id > 0 ? lease->until_ms : 0);
	json_close(&json);
	exchange_respond(exchange, &(struct response){ .status = status,
	                                               .content_type = "application/json",
	                                               .body = { body.data, body.size } });
	buffer_free(&body);
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
static bool read_tenant(struct leases *leases, const struct exchange *exchange,
                        const struct identity *identity, int64_t *tenant_id, struct error *error)
{
	static const char *const known[] = { "tenant_id", NULL };
	const struct roster_tenant *tenant = NULL;

	*tenant_id = identity->tenant_id;
	if (exchange->body.size == 0)
		return true;
	json_t *document = json_read(exchange->body, NULL, error);
	struct json_reader reader = json_reader_of(document, "", error);
	struct text name = json_get_text(&reader, "tenant_id", 96);
	if (name.data) {
		tenant = roster_named(leases->roster, name);
		if (!tenant || !roster_may_see(leases->roster, identity, tenant->id))
			json_fail(&reader, "tenant_id", "is not a tenant that is known");
		else
			*tenant_id = tenant->id;
	}
	bool ok = document && json_reader_end(&reader, known);
	json_decref(document);
	return ok;
}

void leases_create(struct leases *leases, struct exchange *exchange,
                   const struct identity *identity, int64_t model_id)
{
	struct error error = { 0 };
	struct lease_wish wish = { .model_id = model_id, .identity = identity };

	if (!identity_may_change(identity))
		exchange_refuse(exchange, 403, "forbidden", "a viewer may not use models");
	else if (!query_duration(exchange, "wait", WAIT_MS_MAX, &wish.wait_ms, &error) ||
	         !query_duration(exchange, "lease", LEASE_MS_MAX, &wish.lease_ms, &error) ||
	         !read_tenant(leases, exchange, identity, &wish.tenant_id, &error))
		leases_fail(exchange, &error);
	else
		leases_ask(leases, exchange, &wish);
}

/* The lease, if who asks may touch it; otherwise answers 404. */
static struct lease *find(struct leases *leases, struct exchange *exchange,
                          const struct identity *identity, int64_t id)
{
	struct lease *lease = map_get(&leases->by_id, id);

	if (lease && !lease->exchange && !lease->is_asked &&
	    (identity->role == ROLE_ADMIN ||
	     roster_may_see(leases->roster, identity, lease->tenant_id)))
		return lease;
	exchange_refuse(exchange, 404, "not_found",
	                "there is no lease-%lld: it has expired, or was given back", (long long)id);
	return NULL;
}

void leases_delete(struct leases *leases, struct exchange *exchange,
                   const struct identity *identity, int64_t lease_id)
{
	struct error error = { 0 };
	bool failed = false;

	if (!query_flag(&exchange->query, "failed", false, &failed, &error)) {
		leases_fail(exchange, &error);
		return;
	}
	struct lease *lease = find(leases, exchange, identity, lease_id);
	if (lease)
		leases_end(lease, exchange, failed ? REQUEST_FAILED : REQUEST_SUCCEEDED);
}

void leases_show(struct leases *leases, struct exchange *exchange, const struct identity *identity,
                 int64_t lease_id)
{
	const struct lease *lease = find(leases, exchange, identity, lease_id);

	if (lease)
		leases_answer(lease, exchange, 200);
}

static int64_t default_lease_ms(const struct leases *leases)
{
	struct catalogue *catalogue = leases->desk->catalogue;

	catalogue_lock(catalogue);
	const struct config_record *config = catalogue_get(catalogue, RECORD_CONFIG, 1, 0);
	int64_t lease_ms = config ? config->lease_ms : config_default().lease_ms;
	catalogue_unlock(catalogue);
	return lease_ms;
}

static void on_renewed(struct ask *done)
{
	struct lease_ask *ask = (struct lease_ask *)done;
	struct lease *lease = map_get(&ask->leases->by_id, ask->lease_id);

	if (!done->ok) {
		leases_fail(ask->exchange, &done->error);
	} else if (!lease) {
		exchange_refuse(ask->exchange, 404, "not_found", "the lease has ended meanwhile");
	} else {
		lease->until_ms = clock_unix_ms() + ask->lease_ms;
		leases_answer(lease, ask->exchange, 200);
	}
	leases_give_ask(ask);
}

void leases_renew(struct leases *leases, struct exchange *exchange, const struct identity *identity,
                  int64_t lease_id)
{
	struct error error = { 0 };
	int64_t lease_ms = 0;

	if (!query_duration(exchange, "lease", LEASE_MS_MAX, &lease_ms, &error)) {
		leases_fail(exchange, &error);
		return;
	}
	struct lease *lease = find(leases, exchange, identity, lease_id);
	if (!lease)
		return;
	if (lease_ms > 0)
		lease->lease_ms = lease_ms;
	struct lease_ask *ask = leases_take_ask(leases, COMMAND_REQUEST_RENEW, on_renewed);
	ask->exchange = exchange;
	ask->lease_id = lease_id;
	ask->lease_ms = lease->lease_ms > 0 ? lease->lease_ms : default_lease_ms(leases);
	ask->ask.command.request = (struct request_command){ .request_id = lease_id,
		                                             .model_id = lease->model_id,
		                                             .tenant_id = lease->tenant_id,
		                                             .lease_ms = lease_ms };
	desk_ask(leases->desk, &ask->ask);
}
