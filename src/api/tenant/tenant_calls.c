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
	void (*shown)(struct call *call); /* answers, when they are in the call's body */
};

static bool look_at_tenants(struct ask *ask, struct sched *sched, struct error *error)
{
	struct showing *showing = call_of(ask)->state;
	(void)error;
	for (size_t i = 0; i < showing->count; i++)
		if (!sched_tenant_figures(sched, showing->ids[i], &showing->figures[i]))
			showing->ids[i] = 0;
	return true;
}

static bool write_tenant(struct call *call, const struct catalogue *catalogue,
                         const struct showing *showing, size_t i)
{
	const struct tenant_record *tenant =
	    catalogue_get(catalogue, RECORD_TENANT, showing->ids[i], 0);
	struct catalogue_filter filter = { .tenant_id = showing->ids[i], .state = -1 };
	int64_t archived;
	if (showing->ids[i] == 0 || !tenant)
		return false;
	int64_t jobs = catalogue_count(catalogue, &filter, &archived);
	tenant_json_write(&call->json, NULL, tenant, &showing->figures[i], jobs + archived);
	return true;
}

static void show(struct ask *ask)
{
	struct call *call = call_of(ask);
	const struct showing *showing = call->state;
	struct catalogue *catalogue = service_catalogue(call->service);
	bool found = true;

	if (!ask->ok) {
		call_fail(call, &ask->error);
		return;
	}
	buffer_clear(&call->body);
	call->json = json_writer_to(&call->body);
	if (showing->is_list) {
		json_open_object(&call->json, NULL);
		json_open_array(&call->json, "tenants");
	}
	catalogue_lock(catalogue);
	for (size_t i = 0; i < showing->count; i++)
		found = write_tenant(call, catalogue, showing, i);
	catalogue_unlock(catalogue);
	if (showing->is_list) {
		json_close(&call->json);
		json_put_integer(&call->json, "total", showing->total);
		json_close(&call->json);
	} else if (!found) {
		call_refuse(call, 404, "not_found", "the tenant is not known");
		return;
	}
	showing->shown(call);
}

static void answer_shown(struct call *call)
{
	const struct showing *showing = call->state;
	call_answer_json(call, showing->status);
}

/* For one tenant, which show_one() shows. */
static void showing_begin(struct call *call, int status, void (*shown)(struct call *call))
{
	struct showing *showing = arena_alloc(&call->ask.arena, sizeof(*showing));
	*showing = (struct showing){ .count = 1, .status = status, .shown = shown };
	showing->ids = arena_alloc(&call->ask.arena, sizeof(*showing->ids));
	showing->figures = arena_alloc(&call->ask.arena, sizeof(*showing->figures));
	call->state = showing;
}

static void show_one(struct call *call, int64_t id)
{
	struct showing *showing = call->state;
	showing->ids[0] = id;
	call_look(call, look_at_tenants, show);
}

static int compare_ids(const void *a, const void *b)
{
	const int64_t *left = a, *right = b;
	return (*left > *right) - (*left < *right);
}

void tenant_calls_list(struct call *call)
{
	const struct roster *roster = &call->service->roster;
	struct showing *showing = arena_alloc(&call->ask.arena, sizeof(*showing));
	*showing = (struct showing){ .status = 200, .is_list = true, .shown = answer_shown };
	if (!page_read(call, ID_TENANT, &showing->page))
		return;
	if (!query_get(&call->exchange->query, "limit").data)
		showing->page.limit = call->service->settings.limit_max;
	int64_t *ids =
	    arena_alloc(&call->ask.arena, (roster->by_id.count + 1) * sizeof(*showing->ids));
	size_t count = 0;
	for (size_t i = 0; i < roster->by_id.capacity; i++) {
		const struct roster_tenant *tenant = roster->by_id.entries[i].value;
		if (tenant && roster_may_see(roster, &call->identity, tenant->id))
			ids[count++] = tenant->id;
	}
	qsort(ids, count, sizeof(*ids), compare_ids);
	size_t first = 0;
	while (first < count && ids[first] <= showing->page.after)
		first++;
	first += (size_t)min64(showing->page.offset, (int64_t)(count - first));
	showing->ids = ids + first;
	showing->count = (size_t)min64((int64_t)(count - first), showing->page.limit);
	showing->total = (int64_t)count;
	showing->figures =
	    arena_alloc(&call->ask.arena, (showing->count + 1) * sizeof(*showing->figures));
	call->state = showing;
	call_look(call, look_at_tenants, show);
}

bool tenant_calls_of_path(struct call *call, int64_t *id)
{
	struct text name = call_segment(call, 3);
	const struct roster_tenant *tenant = roster_named(&call->service->roster, name);
	if (!tenant || !roster_may_see(&call->service->roster, &call->identity, tenant->id)) {
		call_unknown(call, "tenant", name);
		return false;
	}
	*id = tenant->id;
	return true;
}

void tenant_calls_get(struct call *call)
{
	int64_t id;
	if (!tenant_calls_of_path(call, &id))
		return;
	showing_begin(call, 200, answer_shown);
	show_one(call, id);
}

static void changed(struct ask *ask)
{
	struct call *call = call_of(ask);
	if (ask->ok)
		show_one(call, ask->reply_id);
	else
		call_fail(call, &ask->error);
}

/* Without sign-in whoever is on this machine, jobs included, could become any user of it. */
static bool may_be_user(struct call *call, const char *before, const struct tenant_record *tenant,
                        struct error *error)
{
	const char *after = tenant_unix_user(tenant, &call->ask.arena);
	if (call->service->settings.allow_unix_user || !*after || strcmp(before, after) == 0)
		return true;
	return error_set(error, ERROR_FORBIDDEN,
	                 "unix_user cannot be set while the service runs without sign-in: set "
	                 "auth.enable, or auth.allow_open_unix_user");
}

static bool may_be_posted_to(const struct call *call, const struct tenant_record *tenant,
                             struct error *error)
{
	if (call->service->settings.allow_private_webhooks || !tenant_webhook_is_private(tenant))
		return true;
	return error_set(error, ERROR_INVALID,
	                 "notify_webhook is an address of this machine or of a private network: "
	                 "notifications.allow_private_addresses allows that");
}

/* Makes or changes a tenant as the JSON says. */
static void put(struct call *call, struct tenant_record tenant, struct text json,
                const char *object)
{
	struct error error = { 0 };
	const char *user = tenant_unix_user(&tenant, &call->ask.arena);
	if (!tenant_json_read(json, &call->service->roster, &call->ask.arena, &tenant, &error) ||
	    !may_be_user(call, user, &tenant, &error) || !may_be_posted_to(call, &tenant, &error)) {
		call_fail(call, &error);
		return;
	}
	call->ask.command.kind = COMMAND_PUT_TENANT;
	call->ask.command.tenant = tenant;
	call_command_on(call, object, changed);
}

void tenant_calls_create(struct call *call)
{
	showing_begin(call, 201, answer_shown);
	put(call, tenant_json_default(), call->exchange->body, call->exchange->path.data);
}

void tenant_calls_change(struct call *call, const struct tenant_change *change)
{
	struct catalogue *catalogue = service_catalogue(call->service);
	struct tenant_record tenant = { 0 };

	showing_begin(call, 200, change->shown);
	catalogue_lock(catalogue);
	const struct tenant_record *old = catalogue_get(catalogue, RECORD_TENANT, change->id, 0);
	if (old)
		tenant = *(struct tenant_record *)record_copy(&call->ask.arena, RECORD_TENANT, old);
	catalogue_unlock(catalogue);
	if (old)
		put(call, tenant, change->json, change->object);
	else
		call_unknown(call, "tenant", change->name);
}

void tenant_calls_put(struct call *call)
{
	struct tenant_change change = { .name = call_segment(call, 3),
		                        .json = call->exchange->body,
		                        .object = call->exchange->path.data,
		                        .shown = answer_shown };
	if (tenant_calls_of_path(call, &change.id))
		tenant_calls_change(call, &change);
}

static void deleted(struct ask *ask)
{
	struct call *call = call_of(ask);
	if (ask->ok)
		call_answer_message(call, 200, "Tenant deleted successfully");
	else
		call_fail(call, &ask->error);
}

void tenant_calls_delete(struct call *call)
{
	int64_t id;
	if (!tenant_calls_of_path(call, &id))
		return;
	call->ask.command.kind = COMMAND_DELETE_TENANT;
	call->ask.command.id = id;
	call_command(call, deleted);
}
