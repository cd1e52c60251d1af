/* tenant_calls.c - tenants: made, shown, changed and removed */
#include "api/tenant/tenant_calls.h"

#include <stdlib.h>

#include "api/service/page.h"
#include "api/service/service_state.h"
#include "api/tenant/tenant_json.h"
#include "api/text/ids.h"

/* Tenants that are to be shown, with what the core says about them. */
struct showing {
	int64_t *ids;
	struct tenant_figures *figures;
	size_t count;
	int64_t total;
	int status;
	bool is_list;
	struct page page;
	void (*shown)(struct request *request); /* answers, when they are in the request's body */
};

static bool look_at_tenants(struct engine_request *engine, struct sched *sched, struct error *error)
{
	struct showing *showing = request_of(engine)->state;
	(void)error;
	for (size_t i = 0; i < showing->count; i++)
		if (!sched_tenant_figures(sched, showing->ids[i], &showing->figures[i]))
			showing->ids[i] = 0;
	return true;
}

static bool write_tenant(struct request *request, const struct catalogue *catalogue,
                         const struct showing *showing, size_t i)
{
	const struct tenant_record *tenant =
	    catalogue_get(catalogue, RECORD_TENANT, showing->ids[i], 0);
	struct catalogue_filter filter = { .tenant_id = showing->ids[i], .state = -1 };
	int64_t archived;
	if (showing->ids[i] == 0 || !tenant)
		return false;
	int64_t jobs = catalogue_count(catalogue, &filter, &archived);
	tenant_json_write(&request->json, NULL, tenant, &showing->figures[i], jobs + archived);
	return true;
}

static void tenant_show(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct showing *showing = request->state;
	struct catalogue *catalogue = service_catalogue(request->service);
	bool found = true;

	if (!engine->ok) {
		request_fail(request, &engine->error);
		return;
	}
	buffer_clear(&request->body);
	request->json = json_writer_to(&request->body);
	if (showing->is_list) {
		json_open_object(&request->json, NULL);
		json_open_array(&request->json, "tenants");
	}
	catalogue_lock(catalogue);
	for (size_t i = 0; i < showing->count; i++)
		found = write_tenant(request, catalogue, showing, i);
	catalogue_unlock(catalogue);
	if (showing->is_list) {
		json_close(&request->json);
		json_put_integer(&request->json, "total", showing->total);
		json_close(&request->json);
	} else if (!found) {
		request_refuse(request, 404, "not_found", "the tenant is not known");
		return;
	}
	showing->shown(request);
}

static void answer_shown(struct request *request)
{
	const struct showing *showing = request->state;
	request_answer_json(request, showing->status);
}

/* For one tenant, which show_one() shows. */
static void showing_begin(struct request *request, int status,
                          void (*shown)(struct request *request))
{
	struct showing *showing = arena_alloc(&request->engine.arena, sizeof(*showing));
	*showing = (struct showing){ .count = 1, .status = status, .shown = shown };
	showing->ids = arena_alloc(&request->engine.arena, sizeof(*showing->ids));
	showing->figures = arena_alloc(&request->engine.arena, sizeof(*showing->figures));
	request->state = showing;
}

static void show_one(struct request *request, int64_t id)
{
	struct showing *showing = request->state;
	showing->ids[0] = id;
	request_look(request, look_at_tenants, tenant_show);
}

static int tenant_compare_ids(const void *a, const void *b)
{
	const int64_t *left = a, *right = b;
	return (*left > *right) - (*left < *right);
}

void tenant_calls_list(struct request *request)
{
	const struct roster *roster = &request->service->roster;
	struct showing *showing = arena_alloc(&request->engine.arena, sizeof(*showing));
	*showing = (struct showing){ .status = 200, .is_list = true, .shown = answer_shown };
	if (!page_read(request, ID_TENANT, &showing->page))
		return;
	if (!query_get(&request->exchange->query, "limit").data)
		showing->page.limit = request->service->settings.limit_max;
	int64_t *ids =
	    arena_alloc(&request->engine.arena, (roster->by_id.count + 1) * sizeof(*showing->ids));
	size_t count = 0;
	for (size_t i = 0; i < roster->by_id.capacity; i++) {
		const struct roster_tenant *tenant = roster->by_id.entries[i].value;
		if (tenant && roster_may_see(roster, &request->identity, tenant->id))
			ids[count++] = tenant->id;
	}
	qsort(ids, count, sizeof(*ids), tenant_compare_ids);
	size_t first = 0;
	while (first < count && ids[first] <= showing->page.after)
		first++;
	first += (size_t)min64(showing->page.offset, (int64_t)(count - first));
	showing->ids = ids + first;
	showing->count = (size_t)min64((int64_t)(count - first), showing->page.limit);
	showing->total = (int64_t)count;
	showing->figures =
	    arena_alloc(&request->engine.arena, (showing->count + 1) * sizeof(*showing->figures));
	request->state = showing;
	request_look(request, look_at_tenants, tenant_show);
}

bool tenant_calls_of_path(struct request *request, int64_t *id)
{
	struct text name = request_segment(request, 3);
	const struct roster_tenant *tenant = roster_named(&request->service->roster, name);
	if (!tenant || !roster_may_see(&request->service->roster, &request->identity, tenant->id)) {
		request_unknown(request, "tenant", name);
		return false;
	}
	*id = tenant->id;
	return true;
}

void tenant_calls_get(struct request *request)
{
	int64_t id;
	if (!tenant_calls_of_path(request, &id))
		return;
	showing_begin(request, 200, answer_shown);
	show_one(request, id);
}

static void changed(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	if (engine->ok)
		show_one(request, engine->reply_id);
	else
		request_fail(request, &engine->error);
}

/* Without sign-in whoever is on this machine, jobs included, could become any user of it. */
static bool may_be_user(struct request *request, const char *before,
                        const struct tenant_record *tenant, struct error *error)
{
	const char *after = tenant_unix_user(tenant, &request->engine.arena);
	if (request->service->settings.allow_unix_user || !*after || strcmp(before, after) == 0)
		return true;
	return error_set(error, ERROR_FORBIDDEN,
	                 "unix_user cannot be set while the service runs without sign-in: set "
	                 "auth.enable, or auth.allow_open_unix_user");
}

static bool may_be_posted_to(const struct request *request, const struct tenant_record *tenant,
                             struct error *error)
{
	if (request->service->settings.allow_private_webhooks || !tenant_webhook_is_private(tenant))
		return true;
	return error_set(error, ERROR_INVALID,
	                 "notify_webhook is an address of this machine or of a private network: "
	                 "notifications.allow_private_addresses allows that");
}

/* Makes or changes a tenant as the JSON says. */
static void tenant_put(struct request *request, struct tenant_record tenant, struct text json,
                       const char *object)
{
	struct error error = { 0 };
	const char *user = tenant_unix_user(&tenant, &request->engine.arena);
	if (!tenant_json_read(json, &request->service->roster, &request->engine.arena, &tenant,
	                      &error) ||
	    !may_be_user(request, user, &tenant, &error) ||
	    !may_be_posted_to(request, &tenant, &error)) {
		request_fail(request, &error);
		return;
	}
	request->engine.command.kind = COMMAND_PUT_TENANT;
	request->engine.command.tenant = tenant;
	request_command_on(request, object, changed);
}

void tenant_calls_create(struct request *request)
{
	showing_begin(request, 201, answer_shown);
	tenant_put(request, tenant_json_default(), request->exchange->body,
	           request->exchange->path.data);
}

void tenant_calls_change(struct request *request, const struct tenant_change *change)
{
	struct catalogue *catalogue = service_catalogue(request->service);
	struct tenant_record tenant = { 0 };

	showing_begin(request, 200, change->shown);
	catalogue_lock(catalogue);
	const struct tenant_record *old = catalogue_get(catalogue, RECORD_TENANT, change->id, 0);
	if (old)
		tenant = *(struct tenant_record *)record_copy(&request->engine.arena, RECORD_TENANT,
		                                              old);
	catalogue_unlock(catalogue);
	if (old)
		tenant_put(request, tenant, change->json, change->object);
	else
		request_unknown(request, "tenant", change->name);
}

void tenant_calls_put(struct request *request)
{
	struct tenant_change change = { .name = request_segment(request, 3),
		                        .json = request->exchange->body,
		                        .object = request->exchange->path.data,
		                        .shown = answer_shown };
	if (tenant_calls_of_path(request, &change.id))
		tenant_calls_change(request, &change);
}

static void deleted(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	if (engine->ok)
		request_answer_message(request, 200, "Tenant deleted successfully");
	else
		request_fail(request, &engine->error);
}

void tenant_calls_delete(struct request *request)
{
	int64_t id;
	if (!tenant_calls_of_path(request, &id))
		return;
	request->engine.command.kind = COMMAND_DELETE_TENANT;
	request->engine.command.id = id;
	request_command(request, deleted);
}
