/* names.c - models, slots and tenants as the scheduler last said, and what names mean */
#include "gateway/state/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"

enum { NAME_MAX_BYTES = 512 };

/* Models that share a name: it is unique within a tenant only. */
struct name_list {
	struct gateway_model **models;
	size_t count, capacity;
};

static void lists_free(struct text_map *map)
{
	for (size_t i = 0; i < map->capacity; i++) {
		struct name_list *list = map->entries[i].value;
		if (list)
			free(list->models);
		free(list);
	}
	text_map_free(map);
	*map = (struct text_map){ 0 };
}

static void slot_free(struct gateway_slot *slot)
{
	free(slot->address);
	free(slot->key);
	free(slot->certificate);
	free(slot);
}

void names_free(struct names *names)
{
	for (size_t i = 0; i < names->slot_count; i++)
		slot_free(names->all_slots[i]);
	for (size_t i = 0; i < names->model_count; i++) {
		fair_free(&names->all_models[i]->queue);
		speed_free(&names->all_models[i]->speed);
		free(names->all_models[i]->slots);
		prefixes_free(names->all_models[i]->prefixes);
		free(names->all_models[i]);
	}
	for (size_t i = 0; i < names->tenants.capacity; i++)
		free(names->tenants.entries[i].value);
	free(names->all_slots);
	free(names->all_models);
	lists_free(&names->by_name);
	map_free(&names->models);
	map_free(&names->slots);
	map_free(&names->tenants);
	if (names->routes)
		gateway__routes__free_unpacked(names->routes, NULL);
}

struct gateway_model *names_model(const struct names *names, int64_t id)
{
	return map_get(&names->models, id);
}

struct gateway_slot *names_slot(const struct names *names, int64_t id)
{
	return map_get(&names->slots, id);
}

struct gateway_tenant *names_tenant(struct names *names, int64_t id)
{
	struct gateway_tenant *tenant = map_get(&names->tenants, id + 1);

	if (!tenant) {
		tenant = NEW(struct gateway_tenant);
		tenant->id = id;
		map_put(&names->tenants, id + 1, tenant);
	}
	return tenant;
}

static struct gateway_model *model_made(struct names *names, int64_t id)
{
	struct gateway_model *model = names_model(names, id);

	if (!model) {
		model = NEW(struct gateway_model);
		model->id = id;
		fair_init(&model->queue);
		map_put(&names->models, id, model);
		array_reserve(names->all_models, names->model_capacity, names->model_count + 1);
		names->all_models[names->model_count++] = model;
	}
	return model;
}

static void add_name(struct names *names, const char *name, struct gateway_model *model)
{
	struct name_list *list = text_map_get(&names->by_name, name);

	if (!list) {
		list = NEW(struct name_list);
		text_map_put(&names->by_name, name, list);
	}
	array_reserve(list->models, list->capacity, list->count + 1);
	list->models[list->count++] = model;
}

static void set_text(char **text, const char *to)
{
	if (*text && strcmp(*text, to) == 0)
		return;
	free(*text);
	*text = memory_text(to);
}

/* What a server has cached is gone, or the server is. */
static void forget_prefixes(struct gateway_slot *slot)
{
	if (slot->prefix_slot >= 0)
		prefixes_remove(slot->model->prefixes, slot->prefix_slot);
	slot->prefix_slot = -1;
}

static void take_slot(struct names *names, const Gateway__Slot *said, int64_t now_ms)
{
	struct gateway_slot *slot = names_slot(names, said->slot_id);
	struct gateway_model *model = names_model(names, said->model_id);

	if (!model || said->slot_id <= 0)
		return;
	if (!slot) {
		slot = NEW(struct gateway_slot);
		slot->id = said->slot_id;
		slot->model = model;
		slot->prefix_slot = -1;
		for (size_t i = 0; i < model->slot_count; i++)
			slot->computed = i == 0 ? model->slots[0]->computed
			                        : min64(slot->computed, model->slots[i]->computed);
		map_put(&names->slots, slot->id, slot);
		array_reserve(names->all_slots, names->slot_capacity, names->slot_count + 1);
		names->all_slots[names->slot_count++] = slot;
		array_reserve(model->slots, model->slot_capacity, model->slot_count + 1);
		model->slots[model->slot_count++] = slot;
	}
	/* A scheduler that has just started has not heard the key again, and we have. */
	bool keeps_key = said->key_follows && slot->key && slot->key[0] &&
	                 strcmp(slot->address, said->address) == 0;
	set_text(&slot->address, said->address);
	if (!keeps_key)
		set_text(&slot->key, said->key);
	if (!keeps_key)
		set_text(&slot->certificate, said->certificate_sha256);
	slot->state = (enum slot_state)said->state;
	if (said->key_follows && !keeps_key && slot->state == SLOT_IS_READY)
		slot->state = SLOT_IS_LOADING;
	if (slot->state == SLOT_IS_LOADING || slot->state == SLOT_IS_ASLEEP)
		forget_prefixes(slot);
	slot->share = max64(said->share, 0);
	slot->ready_ms = said->ready_in_ms > 0 ? now_ms + said->ready_in_ms : 0;
	slot->named = true;
}

void limits_set(struct gateway_limits *limits, const Gateway__Limits *said, int64_t now_ms)
{
	rate_limit(&limits->requests, said ? max64(said->requests_per_minute, 0) : 0, now_ms);
	rate_limit(&limits->tokens, said ? max64(said->tokens_per_minute, 0) : 0, now_ms);
	limits->streams_most = said ? max64(said->streams, 0) : 0;
}

static void take_models(struct names *names)
{
	for (size_t i = 0; i < names->routes->n_models; i++) {
		const Gateway__Model *said = names->routes->models[i];
		struct gateway_model *model = model_made(names, said->model_id);
		char id[32];
		model->said = said;
		add_name(names, said->name, model);
		snprintf(id, sizeof(id), "model-%" PRId64, said->model_id);
		add_name(names, id, model);
		for (size_t a = 0; a < said->n_aliases; a++)
			if (strcmp(said->aliases[a], said->name) != 0)
				add_name(names, said->aliases[a], model);
	}
}

static void take_tenants(struct names *names, int64_t now_ms)
{
	for (size_t i = 0; i < names->routes->n_tenants; i++) {
		const Gateway__Tenant *said = names->routes->tenants[i];
		struct gateway_tenant *tenant = names_tenant(names, said->tenant_id);
		tenant->said = said;
		limits_set(&tenant->limits, said->limits, now_ms);
	}
}

void names_take(struct names *names, Gateway__Routes *routes, int64_t now_ms)
{
	Gateway__Routes *before = names->routes;

	lists_free(&names->by_name);
	names->routes = routes;
	for (size_t i = 0; i < names->model_count; i++)
		names->all_models[i]->said = NULL;
	for (size_t i = 0; i < names->tenants.capacity; i++)
		if (names->tenants.entries[i].value)
			((struct gateway_tenant *)names->tenants.entries[i].value)->said = NULL;
	for (size_t i = 0; i < names->slot_count; i++)
		names->all_slots[i]->named = false;
	take_models(names);
	take_tenants(names, now_ms);
	for (size_t i = 0; i < routes->n_slots; i++)
		take_slot(names, routes->slots[i], now_ms);
	for (size_t i = 0; i < names->slot_count; i++)
		if (!names->all_slots[i]->named)
			names->all_slots[i]->state = SLOT_IS_CLOSING;
	names_settle(names);
	if (before)
		gateway__routes__free_unpacked(before, NULL);
}

static void slot_unlink(struct names *names, struct gateway_slot *slot)
{
	struct gateway_model *model = slot->model;
	size_t at = 0;

	while (model->slots[at] != slot)
		at++;
	model->slots[at] = model->slots[--model->slot_count];
	map_remove(&names->slots, slot->id);
	forget_prefixes(slot);
	slot_free(slot);
}

void names_settle(struct names *names)
{
	for (size_t i = names->slot_count; i-- > 0;) {
		struct gateway_slot *slot = names->all_slots[i];
		if (slot->named || slot->requests > 0)
			continue;
		names->all_slots[i] = names->all_slots[--names->slot_count];
		slot_unlink(names, slot);
	}
	for (size_t i = names->model_count; i-- > 0;) {
		struct gateway_model *model = names->all_models[i];
		if (model->said || model->slot_count > 0 || model->queue.waiting > 0 ||
		    model->hungry)
			continue;
		names->all_models[i] = names->all_models[--names->model_count];
		map_remove(&names->models, model->id);
		fair_free(&model->queue);
		speed_free(&model->speed);
		free(model->slots);
		prefixes_free(model->prefixes);
		free(model);
	}
}

static bool is_below(const struct names *names, int64_t tenant_id, int64_t above)
{
	for (int depth = 0; tenant_id > 0 && depth < 64; depth++) {
		const struct gateway_tenant *tenant = map_get(&names->tenants, tenant_id + 1);
		if (tenant_id == above)
			return true;
		tenant_id = tenant && tenant->said ? tenant->said->parent_id : 0;
	}
	return false;
}

bool names_may_use(const struct names *names, const struct gateway_model *model, int64_t tenant_id)
{
	const Gateway__Model *said = model->said;

	if (!said)
		return false;
	if (tenant_id == 0 || said->shared || is_below(names, tenant_id, said->tenant_id))
		return true;
	for (size_t i = 0; i < said->n_users; i++)
		if (is_below(names, tenant_id, said->users[i]))
			return true;
	return false;
}

/* Its own first; otherwise the only one that the tenant may use. */
static struct gateway_model *find_exact(struct names *names, const char *name, int64_t tenant_id,
                                        bool *several)
{
	const struct name_list *list = text_map_get(&names->by_name, name);
	struct gateway_model *found = NULL;
	int count = 0;

	for (size_t i = 0; list && i < list->count; i++) {
		struct gateway_model *model = list->models[i];
		if (!names_may_use(names, model, tenant_id))
			continue;
		if (tenant_id != 0 && model->said->tenant_id == tenant_id)
			return model;
		found = model;
		count++;
	}
	*several = count > 1;
	return count == 1 ? found : NULL;
}

static const char *adapter_of(const struct gateway_model *model, const char *name)
{
	for (size_t i = 0; i < model->said->n_adapters; i++)
		if (strcmp(model->said->adapters[i], name) == 0)
			return model->said->adapters[i];
	return NULL;
}

struct gateway_model *names_find(struct names *names, const char *name, int64_t tenant_id,
                                 const char **adapter, bool *several)
{
	struct gateway_model *model = find_exact(names, name, tenant_id, several);
	const char *colon = strrchr(name, ':');
	char base[NAME_MAX_BYTES + 1];

	*adapter = NULL;
	if (model || *several || !colon || (size_t)(colon - name) > NAME_MAX_BYTES)
		return model;
	memcpy(base, name, (size_t)(colon - name));
	base[colon - name] = '\0';
	model = find_exact(names, base, tenant_id, several);
	*adapter = model ? adapter_of(model, colon + 1) : NULL;
	return *adapter ? model : NULL;
}
