/* gateway_usage.c - tokens that gateways counted: kept by day, each request once */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/gateway/gateways_local.h"
#include "api/service/service_state.h"
#include "api/service/token_use.h"
#include "base/calendar.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"
#include "core/tenant/tenant.h"

static const char counted_kind[] = "gateway";
enum { KEY_BYTES = 512, WATCH_MS = 1000 };
#define DAY_MS INT64_C(86400000)

/* The last number of a boot that is counted, in memory and perhaps not yet durable. */
struct counted {
	int64_t to;
};

static void boot_key(char key[KEY_BYTES], const char *name, int64_t boot)
{
	snprintf(key, KEY_BYTES, "%s/%" PRId64, name, boot);
}

int64_t usage_counted(const struct gateways *gateways, const char *name, int64_t boot)
{
	char key[KEY_BYTES];

	boot_key(key, name, boot);
	const struct counted *counted = text_map_get(&gateways->counted, key);
	return counted ? counted->to : 0;
}

static void set_counted(struct gateways *gateways, const char *key, int64_t to)
{
	struct counted *counted = text_map_get(&gateways->counted, key);

	if (!counted) {
		counted = NEW(struct counted);
		text_map_put(&gateways->counted, key, counted);
	}
	counted->to = to;
}

void usage_load(struct gateways *gateways, const struct kept *keep)
{
	if (strcmp(keep->kind, counted_kind) == 0) {
		const char *slash = strrchr(keep->key, '/');
		set_counted(gateways, keep->key, atoll(keep->value));
		if (slash) {
			char name[KEY_BYTES];
			snprintf(name, sizeof(name), "%.*s", (int)(slash - keep->key), keep->key);
			text_map_put(&gateways->known, name, gateways);
		}
	}
}

void usage_free(struct gateways *gateways)
{
	for (size_t i = 0; i < gateways->counted.capacity; i++)
		free(gateways->counted.entries[i].value);
	text_map_free(&gateways->counted);
	text_map_free(&gateways->known);
}

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text == 0x7f || *text == '/')
			return false;
	return true;
}

static void row_key(char key[KEY_BYTES], const struct gateways *gateways,
                    const Gateway__Usage__Row *row)
{
	struct buffer day = { 0 };

	calendar_print(&day, service_time_ms(gateways->service));
	snprintf(key, KEY_BYTES, "%.10s/%" PRId64 "/%.90s/%" PRId64 "/%.90s", day.data,
	         row->tenant_id, is_plain(row->key) ? row->key : "-", row->model_id,
	         is_plain(row->adapter) ? row->adapter : "-");
	buffer_free(&day);
}

/* A gateway may err, but not so far that sums overflow. */
static int64_t bounded(int64_t value)
{
	return min64(max64(value, 0), INT64_C(1) << 40);
}

static struct token_use told_use(const Gateway__Usage__Row *row)
{
	struct token_use use = {
		.requests = bounded(row->requests),
		.prompt = bounded(row->prompt_tokens),
		.completion = bounded(row->completion_tokens),
		.errors = bounded(row->errors),
		.cut = bounded(row->cut),
	};

	use.cached = min64(bounded(row->cached_tokens), use.prompt);
	return use;
}

/* Prices are for a million tokens. A tenant does not pay for its own models, whose GPUs it pays
 * for, and administrators pay for nothing. */
static int64_t token_cost_of(const struct model_record *model, int64_t tenant_id,
                             const struct token_use *use)
{
	const int64_t million = 1000000;

	if (!model || tenant_id <= 0 || tenant_id == model->tenant_id)
		return 0;
	return min64(muldiv_down(use->prompt - use->cached, model->price_input, million),
	             CHARGE_MOST / 4) +
	       min64(muldiv_down(use->cached, model->price_cached, million), CHARGE_MOST / 4) +
	       min64(muldiv_down(use->completion, model->price_output, million), CHARGE_MOST / 4);
}

/* What the row costs, and whom that is credited to; 0: nobody is. */
static int64_t price_use(struct gateways *gateways, const Gateway__Usage__Row *row,
                         struct token_use *use)
{
	struct catalogue *catalogue = service_catalogue(gateways->service);

	catalogue_lock(catalogue);
	const struct model_record *model = catalogue_get(catalogue, RECORD_MODEL, row->model_id, 0);
	int64_t owner_id = model ? model->tenant_id : 0;
	use->cost = token_cost_of(model, row->tenant_id, use);
	catalogue_unlock(catalogue);
	return owner_id;
}

/* Which message of which gateway was made durable. */
struct usage_change {
	char name[96];
	int64_t boot, to;
};

static void tell_taken(struct gateways *gateways, const char *name, int64_t boot, int64_t to)
{
	Gateway__Envelope envelope = GATEWAY__ENVELOPE__INIT;
	Gateway__UsageTaken taken = GATEWAY__USAGE_TAKEN__INIT;

	taken.boot = boot;
	taken.to = to;
	envelope.usage_taken = &taken;
	for (struct gateway_peer *peer = gateways->peers; peer; peer = peer->next)
		if (peer->link && strcmp(peer->name, name) == 0)
			gateways_send(peer->link, &envelope);
}

/* It is told only when it is durable. What could not be stored stays counted in memory alone, and
 * goes with this process: then the gateway, which was not told, says it again to the next. */
static void on_stored(struct engine_request *engine)
{
	struct request *request = request_of(engine);
	const struct usage_change *change = request->state;

	if (engine->ok)
		tell_taken(request->service->gateways, change->name, change->boot, change->to);
	request_drop(request);
}

void usage_take(struct gateway_peer *peer, const Gateway__Usage *usage)
{
	struct gateways *gateways = peer->gateways;
	int64_t counted = usage_counted(gateways, peer->name, usage->boot);
	char key[KEY_BYTES];

	/* The gateway has one message under way, and begins behind what it was told at the welcome:
	 * so a range that overlaps is one that was counted. */
	if (usage->from <= counted || usage->to < usage->from) {
		tell_taken(gateways, peer->name, usage->boot, min64(counted, usage->to));
		return;
	}
	struct request *request = request_take_own(&gateways->service->requests);
	struct arena *arena = &request->engine.arena;
	struct usage_change *change = arena_alloc(arena, sizeof(*change));
	struct kept *keeps = arena_alloc(arena, (usage->n_rows + 1) * sizeof(*keeps));
	int64_t *charges =
	    arena_alloc(arena, (usage->n_rows + 1) * CHARGE_WIDTH * sizeof(*charges));
	int64_t charged = 0;
	snprintf(change->name, sizeof(change->name), "%s", peer->name);
	change->boot = usage->boot;
	change->to = usage->to;
	request->state = change;
	for (size_t i = 0; i < usage->n_rows; i++) {
		const Gateway__Usage__Row *said = usage->rows[i];
		struct token_use use = told_use(said);
		row_key(key, gateways, said);
		int64_t owner_id = price_use(gateways, said, &use);
		keeps[i] =
		    token_uses_add(gateways->service->token_uses, key, owner_id, &use, arena);
		charges[CHARGE_WIDTH * charged + CHARGE_TENANT] = said->tenant_id;
		charges[CHARGE_WIDTH * charged + CHARGE_MODEL_TENANT] = owner_id;
		charges[CHARGE_WIDTH * charged + CHARGE_AMOUNT] = use.cost;
		charged += use.cost > 0;
	}
	boot_key(key, peer->name, usage->boot);
	set_counted(gateways, key, usage->to);
	struct buffer number = { 0 };
	buffer_print(&number, "%" PRId64, usage->to);
	keeps[usage->n_rows] = (struct kept){ counted_kind, arena_string(arena, key),
		                              arena_string(arena, number.data) };
	buffer_free(&number);
	request->engine.has_command = charged > 0;
	request->engine.command =
	    (struct command){ .kind = COMMAND_CHARGE, .charges = { charges, charged } };
	request->engine.keeps = keeps;
	request->engine.keep_count = usage->n_rows + 1;
	request->engine.patient = true;
	request_send(request, on_stored);
}

bool usage_is_exhausted(const struct gateways *gateways, const struct tenant_record *tenant)
{
	int64_t month = month_of(service_time_ms(gateways->service));
	int64_t spent = tenant->month == month ? tenant->month_cost : 0;

	return tenant->budget_per_month != UNLIMITED && spent >= tenant->budget_per_month;
}

void usage_watch_budgets(struct gateways *gateways)
{
	struct catalogue *catalogue = service_catalogue(gateways->service);
	struct catalogue_cursor cursor = { .kind = RECORD_TENANT };
	int64_t now_ms = loop_now_ms(gateways->loop);
	const struct tenant_record *tenant;
	uint64_t hash = 1;

	if (now_ms < gateways->budgets_ms + WATCH_MS)
		return;
	gateways->budgets_ms = now_ms;
	catalogue_lock(catalogue);
	while ((tenant = catalogue_next(catalogue, &cursor)) != NULL)
		if (usage_is_exhausted(gateways, tenant))
			hash = hash_combine(hash, (uint64_t)tenant->id);
	catalogue_unlock(catalogue);
	for (struct gateway_peer *peer = gateways->peers; peer && hash != gateways->budgets_hash;
	     peer = peer->next)
		peer->routes_dirty = true;
	gateways->budgets_hash = hash;
}
