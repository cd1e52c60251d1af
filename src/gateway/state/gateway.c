/* gateway.c - which request goes where and when: the state machine of a gateway, without I/O */
#include "gateway/state/gateway.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"

enum {
	SLOT_BLOCKS = 8192,   /* half a million tokens */
	FAILED_FOR_MS = 1000, /* a slot that refused connections is not the first choice */
	ANSWER_TOKENS = 256,  /* that are expected where nobody says */
	ANSWER_TOKENS_MOST = 1024,
	WAITING_MOST = 100000,
	ANSWER_WEIGHT = 2, /* virtual tokens of a token of the answer */
};

void refusal_set(struct refusal *refusal, int status, const char *type, const char *code,
                 const char *format, ...)
{
	char text[GATEWAY_MESSAGE_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	*refusal = (struct refusal){ .status = status, .type = type, .code = code };
	memcpy(refusal->text, text, sizeof(text));
}

/* The model's queue is to be served. */
static void hungry(struct gateway *gateway, struct gateway_model *model)
{
	if (model->hungry)
		return;
	model->hungry = true;
	model->next_hungry = gateway->hungry;
	gateway->hungry = model;
}

struct gateway *gateway_new(const struct gateway_settings *settings)
{
	struct gateway *gateway = NEW(struct gateway);

	gateway->settings = *settings;
	if (gateway->settings.block_tokens == 0)
		gateway->settings.block_tokens = GATEWAY_BLOCK_TOKENS;
	if (gateway->settings.slot_blocks == 0)
		gateway->settings.slot_blocks = SLOT_BLOCKS;
	return gateway;
}

void gateway_free(struct gateway *gateway)
{
	INVARIANT(gateway->waiting == 0 && gateway->in_flight == 0);
	names_free(&gateway->names);
	signin_free(&gateway->signin);
	free(gateway);
}

void gateway_shares(struct gateway *gateway, const Gateway__Shares *shares)
{
	for (size_t i = 0; i < shares->n_rows; i++) {
		struct gateway_slot *slot = names_slot(&gateway->names, shares->rows[i]->slot_id);
		if (!slot)
			continue;
		/* One that is lowered is given back when the scheduler hears of it. */
		gateway->news = gateway->news || shares->rows[i]->share < slot->share;
		slot->share = max64(shares->rows[i]->share, 0);
		if (slot->model->queue.waiting > 0)
			hungry(gateway, slot->model);
	}
	gateway->shares_version = shares->version;
}

void gateway_served(struct gateway *gateway, const Gateway__Served *served)
{
	for (size_t i = 0; i < served->n_rows; i++) {
		const Gateway__Served__Row *row = served->rows[i];
		struct gateway_model *model = names_model(&gateway->names, row->model_id);
		if (!model)
			continue;
		struct fair_tenant *tenant = map_get(&model->queue.tenants, row->tenant_id + 1);
		if (tenant)
			fair_others(&model->queue, tenant, row->tokens);
	}
}

/* Whether a slot exists or can come to exist for it. */
static bool is_possible(const struct gateway_model *model)
{
	if (!model->said->message || !model->said->message[0])
		return true;
	for (size_t i = 0; i < model->slot_count; i++)
		if (model->slots[i]->state != SLOT_IS_CLOSING)
			return true;
	return false;
}

/* The first of its fallbacks that can serve; NULL: none can. */
static struct gateway_model *fallback_of(struct gateway *gateway, const struct gateway_model *model,
                                         int64_t tenant_id)
{
	for (size_t i = 0; i < model->said->n_fallbacks; i++) {
		const char *adapter;
		bool several;
		struct gateway_model *other = names_find(&gateway->names, model->said->fallbacks[i],
		                                         tenant_id, &adapter, &several);
		if (other && other != model && is_possible(other))
			return other;
	}
	return NULL;
}

static bool find_model(struct gateway *gateway, struct gateway_call *call, struct refusal *refusal)
{
	const char *adapter = NULL;
	bool several = false;

	if (!call->model_name[0]) {
		refusal_set(refusal, 400, "invalid_request_error", "model_missing",
		            "the request names no model");
		return false;
	}
	call->model = names_find(&gateway->names, call->model_name, call->asker->tenant_id,
	                         &adapter, &several);
	if (several) {
		refusal_set(refusal, 400, "invalid_request_error", "model_ambiguous",
		            "several models are called '%.200s': use an id such as model-7",
		            call->model_name);
		return false;
	}
	if (!call->model) {
		refusal_set(
		    refusal, 404, "invalid_request_error", "model_not_found",
		    "there is no model '%.200s', or it is not for you: GET /v1/models lists "
		    "those that are",
		    call->model_name);
		return false;
	}
	if (!is_possible(call->model)) {
		struct gateway_model *other =
		    fallback_of(gateway, call->model, call->asker->tenant_id);
		if (!other) {
			refusal_set(refusal, 503, "server_error", "model_unavailable",
			            "model %.80s cannot be loaded: %.200s", call->model->said->name,
			            call->model->said->message);
			return false;
		}
		call->model = other;
		adapter = NULL;
	}
	if (call->is_ollama && strcmp(call->model->said->runtime, "ollama") != 0) {
		refusal_set(refusal, 400, "invalid_request_error", "wrong_runtime",
		            "model %.80s is not served by Ollama: use /v1/chat/completions",
		            call->model->said->name);
		return false;
	}
	snprintf(call->adapter, sizeof(call->adapter), "%s", adapter ? adapter : "");
	return true;
}

static bool within(struct gateway_limits *limits, const char *whose,
                   const struct gateway_call *call, int64_t tokens, int64_t now_ms,
                   struct refusal *refusal)
{
	int64_t wait_ms = rate_wait_ms(&limits->requests, 1, now_ms);
	const char *what = "requests a minute";
	int64_t limit = limits->requests.per_minute;

	if (wait_ms == 0) {
		wait_ms = rate_wait_ms(&limits->tokens, tokens, now_ms);
		what = "tokens a minute";
		limit = limits->tokens.per_minute;
	}
	if (wait_ms == 0 && call->is_stream && limits->streams_most > 0 &&
	    limits->streams >= limits->streams_most) {
		wait_ms = 1000;
		what = "streams at once";
		limit = limits->streams_most;
	}
	if (wait_ms == 0)
		return true;
	refusal_set(refusal, 429, "rate_limit_error", "rate_limit_exceeded",
	            "the %s allows %" PRId64 " %s: try again in %" PRId64 " s", whose, limit, what,
	            (wait_ms + 999) / 1000);
	refusal->retry_after_s = (wait_ms + 999) / 1000;
	return false;
}

/* The tenant and all above it. */
static struct gateway_tenant *above(const struct gateway *gateway,
                                    const struct gateway_tenant *tenant)
{
	int64_t parent = tenant->said ? tenant->said->parent_id : 0;

	return parent > 0 ? map_get(&gateway->names.tenants, parent + 1) : NULL;
}

static bool check_limits(struct gateway *gateway, struct gateway_call *call, int64_t now_ms,
                         struct refusal *refusal)
{
	struct gateway_tenant *tenant = call->tenant;

	call->reserved = call->prompt_tokens;
	if (call->asker->is_exhausted) {
		refusal_set(refusal, 429, "insufficient_quota", "budget_exceeded",
		            "the budget of this token for this month is used up");
		return false;
	}
	if (!within(&call->asker->limits, "token", call, call->reserved, now_ms, refusal))
		return false;
	for (int depth = 0; tenant && depth < 64; depth++, tenant = above(gateway, tenant)) {
		if (tenant->said && tenant->said->exhausted) {
			refusal_set(refusal, 429, "insufficient_quota", "budget_exceeded",
			            "the budget of tenant %.80s for this month is used up",
			            tenant->said->name);
			return false;
		}
		if (!within(&tenant->limits, "tenant", call, call->reserved, now_ms, refusal))
			return false;
	}
	return true;
}

static void use_limits(struct gateway_limits *limits, int64_t requests, int64_t tokens,
                       int64_t streams, int64_t now_ms)
{
	rate_take(&limits->requests, requests, now_ms);
	rate_take(&limits->tokens, tokens, now_ms);
	limits->streams += streams;
}

static void use_all(struct gateway *gateway, struct gateway_call *call, int64_t requests,
                    int64_t tokens, int64_t streams, int64_t now_ms)
{
	struct gateway_tenant *tenant = call->tenant;

	use_limits(&call->asker->limits, requests, tokens, streams, now_ms);
	for (int depth = 0; tenant && depth < 64; depth++, tenant = above(gateway, tenant))
		use_limits(&tenant->limits, requests, tokens, streams, now_ms);
}

static int64_t expected_answer(const struct gateway_call *call)
{
	return call->answer_tokens > 0 ? min64(call->answer_tokens, ANSWER_TOKENS_MOST)
	                               : ANSWER_TOKENS;
}

static int64_t until_of(const struct gateway *gateway, const struct gateway_call *call,
                        int64_t now_ms)
{
	int64_t wait_ms = gateway->settings.queue_ms;

	if (call->model->said->queue_timeout_ms > 0)
		wait_ms = call->model->said->queue_timeout_ms;
	if (call->wait_ms > 0)
		wait_ms = min64(wait_ms, call->wait_ms);
	return now_ms + wait_ms;
}

/* One more of the tenant's waits, or one less. */
static void count_waiting(struct gateway *gateway, const struct gateway_call *call, int64_t more)
{
	int64_t before = call->tenant->waiting;

	call->tenant->waiting += more;
	gateway->waiting += more;
	gateway->tenants_waiting += (call->tenant->waiting > 0) - (before > 0);
}

/* Too much waits here; but who has little of it may wait too, so that others' bursts do not shut
 * it out. */
static bool is_full(const struct gateway *gateway, const struct gateway_call *call)
{
	int64_t tenants = gateway->tenants_waiting + (call->tenant->waiting == 0);

	return gateway->waiting >= 2 * WAITING_MOST ||
	       (gateway->waiting >= WAITING_MOST &&
	        call->tenant->waiting >= WAITING_MOST / tenants);
}

static void push(struct gateway *gateway, struct gateway_call *call, bool first)
{
	struct gateway_model *model = call->model;
	int64_t weight = call->tenant->said ? call->tenant->said->weight : FAIR_WEIGHT_ONE;
	struct fair_tenant *tenant =
	    fair_tenant(&model->queue, call->tenant->id, weight > 0 ? weight : FAIR_WEIGHT_ONE);

	call->phase = CALL_WAITING;
	call->item.class = call->class;
	call->item.since_ms = call->began_ms;
	call->item.tokens = call->prompt_tokens + expected_answer(call);
	/* Nobody waited: what this one needs is news. */
	gateway->news = gateway->news || tenant->waiting == 0;
	fair_push(&model->queue, tenant, &call->item, first);
	count_waiting(gateway, call, 1);
	hungry(gateway, model);
}

static struct gateway_call *call_of(struct fair_item *item)
{
	return (struct gateway_call *)(void *)((char *)item - offsetof(struct gateway_call, item));
}

/* Those who wait for a model that cannot be loaded wait for a fallback instead, where it has one
 * that they may use. Others wait on: it is tried again. */
static void redirect_waiting(struct gateway *gateway, struct gateway_model *model)
{
	struct fair_item *item, *kept = NULL;

	while ((item = fair_first(&model->queue)) != NULL) {
		struct gateway_call *call = call_of(item);
		struct gateway_model *other = fallback_of(gateway, model, call->asker->tenant_id);
		fair_remove(&model->queue, item);
		count_waiting(gateway, call, -1);
		if (other) {
			call->model = other;
			call->adapter[0] = '\0';
			push(gateway, call, false);
		} else {
			item->next = kept;
			kept = item;
		}
	}
	while ((item = kept) != NULL) {
		kept = item->next;
		item->next = NULL;
		push(gateway, call_of(item), true);
	}
}

void gateway_routes(struct gateway *gateway, Gateway__Routes *routes, int64_t now_ms)
{
	names_take(&gateway->names, routes, now_ms);
	gateway->news = true;
	for (size_t i = 0; i < gateway->names.model_count; i++) {
		struct gateway_model *model = gateway->names.all_models[i];
		if (model->queue.waiting > 0 && model->said && model->said->n_fallbacks > 0 &&
		    !is_possible(model))
			redirect_waiting(gateway, model);
	}
}

bool gateway_ask(struct gateway *gateway, struct gateway_call *call, int64_t now_ms,
                 struct refusal *refusal)
{
	gateway->counters.requests++;
	call->phase = CALL_NEW;
	call->tenant = names_tenant(&gateway->names, call->asker->tenant_id);
	if (!find_model(gateway, call, refusal) || !check_limits(gateway, call, now_ms, refusal)) {
		gateway->counters.refused++;
		return false;
	}
	if (is_full(gateway, call)) {
		refusal_set(refusal, 503, "server_error", "queue_full",
		            "%" PRId64 " requests are waiting here, %" PRId64
		            " of them yours: try again later",
		            gateway->waiting, call->tenant->waiting);
		refusal->retry_after_s = 5;
		gateway->counters.refused++;
		return false;
	}
	use_all(gateway, call, 1, call->reserved, call->is_stream, now_ms);
	signin_hold(call->asker);
	call->began_ms = now_ms;
	call->until_ms = until_of(gateway, call, now_ms);
	call->tries = 0;
	push(gateway, call, false);
	return true;
}

static bool was_tried(const struct gateway_call *call, const struct gateway_slot *slot)
{
	for (int i = 0; i < call->tries && i < GATEWAY_TRIES_MAX; i++)
		if (call->tried[i] == slot->id)
			return true;
	return false;
}

static bool has_place(const struct gateway_slot *slot)
{
	return slot->state == SLOT_IS_READY && slot->requests < slot->share && slot->address[0];
}

/* For each slot of the model by its number there, how many blocks of the prompt it has; NULL: it is
 * not known, or makes no difference. */
static const int *match(const struct gateway_call *call)
{
	const struct gateway_model *model = call->model;

	if (call->block_count == 0 || model->slot_count < 2 || !model->prefixes)
		return NULL;
	return prefixes_match(model->prefixes, call->blocks, call->block_count);
}

static int64_t matched_tokens(const struct gateway *gateway, const struct gateway_call *call,
                              const struct gateway_slot *slot, const int *matched)
{
	if (!matched || slot->prefix_slot < 0)
		return 0;
	return min64(matched[slot->prefix_slot] * gateway->settings.block_tokens,
	             call->prompt_tokens);
}

/* Tokens that need not be computed again less tokens that are ahead of it. What failed a moment ago
 * is chosen only where there is nothing else. */
static int64_t score_of(const struct gateway *gateway, const struct gateway_call *call,
                        const struct gateway_slot *slot, const int *matched, int64_t now_ms)
{
	int64_t score = matched_tokens(gateway, call, slot, matched) - slot->ahead;

	if (was_tried(call, slot))
		score -= INT64_C(1) << 41;
	if (slot->failed_ms > 0 && slot->failed_ms + FAILED_FOR_MS > now_ms)
		score -= INT64_C(1) << 40;
	return score;
}

/* Of two slots where a request would wait as long, the one for the next: that with fewer requests,
 * and then that which has computed less. */
static bool is_lighter(const struct gateway_slot *slot, const struct gateway_slot *than)
{
	if (slot->requests != than->requests)
		return slot->requests < than->requests;
	if (slot->computed != than->computed)
		return slot->computed < than->computed;
	return slot->id < than->id;
}

static bool has_any_place(const struct gateway_model *model)
{
	for (size_t i = 0; i < model->slot_count; i++)
		if (has_place(model->slots[i]))
			return true;
	return false;
}

static struct gateway_slot *choose(const struct gateway *gateway, struct gateway_call *call,
                                   int64_t now_ms)
{
	const struct gateway_model *model = call->model;
	struct gateway_slot *best = NULL;
	int64_t best_score = 0;

	if (!has_any_place(model))
		return NULL;
	const int *matched = match(call);
	for (size_t i = 0; i < model->slot_count; i++) {
		struct gateway_slot *slot = model->slots[i];
		if (!has_place(slot))
			continue;
		int64_t score = score_of(gateway, call, slot, matched, now_ms);
		if (best &&
		    (score < best_score || (score == best_score && !is_lighter(slot, best))))
			continue;
		best = slot;
		best_score = score;
	}
	call->prompt_ahead = call->prompt_tokens - matched_tokens(gateway, call, best, matched);
	call->matched_blocks = matched && best->prefix_slot >= 0 ? matched[best->prefix_slot] : 0;
	return best;
}

/* Its prompt will be cached by the slot. */
static void note_prefix(struct gateway *gateway, const struct gateway_call *call)
{
	struct gateway_model *model = call->model;
	struct gateway_slot *slot = call->slot;

	if (call->block_count == 0 || model->slot_count < 2)
		return;
	if (!model->prefixes)
		model->prefixes = prefixes_new(gateway->settings.slot_blocks);
	if (slot->prefix_slot < 0)
		slot->prefix_slot = prefixes_add(model->prefixes);
	gateway->counters.prefix_blocks += call->block_count;
	gateway->counters.prefix_hits += call->matched_blocks;
	prefixes_note(model->prefixes, slot->prefix_slot, call->blocks, call->block_count);
}

static void place(struct gateway *gateway, struct gateway_call *call, struct gateway_slot *slot,
                  int64_t now_ms)
{
	struct fair_tenant *tenant = call->item.tenant;

	fair_remove(&call->model->queue, &call->item);
	tenant->running++;
	count_waiting(gateway, call, -1);
	call->phase = CALL_SENT;
	call->slot = slot;
	call->sent_ms = now_ms;
	slot->requests++;
	slot->tokens += call->item.tokens;
	call->answer_ahead = expected_answer(call);
	slot->ahead += call->prompt_ahead + call->answer_ahead;
	slot->computed += call->prompt_ahead + call->answer_ahead;
	gateway->in_flight++;
	gateway->counters.sent++;
	call->charged = call->prompt_tokens + ANSWER_WEIGHT * expected_answer(call);
	fair_charge(&call->model->queue, tenant, call->charged);
	note_prefix(gateway, call);
}

static void serve_model(struct gateway *gateway, struct gateway_model *model, int64_t now_ms)
{
	struct fair_item *item;

	while ((item = fair_first(&model->queue)) != NULL) {
		struct gateway_call *call = call_of(item);
		struct gateway_slot *slot = choose(gateway, call, now_ms);
		if (!slot)
			return;
		place(gateway, call, slot, now_ms);
		gateway->settings.send(gateway->settings.context, call);
	}
}

void gateway_serve(struct gateway *gateway, int64_t now_ms)
{
	struct gateway_model **link = &gateway->hungry, *model;

	while ((model = *link) != NULL) {
		serve_model(gateway, model, now_ms);
		model->hungry = model->queue.waiting > 0;
		if (model->hungry)
			link = &model->next_hungry;
		else
			*link = model->next_hungry;
	}
}

static struct fair_tenant *tenant_of(const struct gateway_call *call)
{
	return map_get(&call->model->queue.tenants, call->tenant->id + 1);
}

/* The place is free again. */
static void give_back(struct gateway *gateway, struct gateway_call *call)
{
	struct gateway_slot *slot = call->slot;

	INVARIANT(slot);
	tenant_of(call)->running--;
	slot->requests--;
	slot->tokens -= call->item.tokens;
	slot->ahead -= call->prompt_ahead + call->answer_ahead;
	gateway->in_flight--;
	call->slot = NULL;
	/* A slot that is to be empty is so now. */
	gateway->news = gateway->news || (slot->requests == 0 && slot->state != SLOT_IS_READY) ||
	                slot->requests >= slot->share;
}

void gateway_begun(struct gateway_call *call)
{
	if (call->phase != CALL_SENT)
		return;
	call->slot->ahead -= call->prompt_ahead;
	call->prompt_ahead = 0;
}

bool gateway_retry(struct gateway *gateway, struct gateway_call *call, bool refused, int64_t now_ms)
{
	INVARIANT(call->phase == CALL_SENT);
	if (refused)
		call->slot->failed_ms = now_ms;
	if (call->tries + 1 >= GATEWAY_TRIES_MAX || now_ms >= call->until_ms)
		return false;
	call->tried[call->tries++] = call->slot->id;
	give_back(gateway, call);
	fair_charge(&call->model->queue, tenant_of(call), -call->charged);
	call->charged = 0;
	gateway->counters.retried++;
	push(gateway, call, true);
	return true;
}

void gateway_finish(struct gateway *gateway, struct gateway_call *call, int64_t prompt,
                    int64_t completion, int64_t now_ms)
{
	int64_t used = prompt < 0 && completion < 0
	                   ? call->charged
	                   : max64(prompt, 0) + ANSWER_WEIGHT * max64(completion, 0);
	bool is_stale = !call->model->said || (call->slot && !call->slot->named);

	if (call->phase == CALL_WAITING) {
		fair_remove(&call->model->queue, &call->item);
		count_waiting(gateway, call, -1);
		gateway->news = gateway->news || call->model->queue.waiting == 0;
		used = 0;
	} else if (call->phase == CALL_SENT) {
		fair_charge(&call->model->queue, tenant_of(call), used - call->charged);
		give_back(gateway, call);
	}
	int64_t tokens = max64(prompt, 0) + max64(completion, 0);
	use_all(gateway, call, 0, used == 0 ? -call->reserved : tokens - call->reserved,
	        -(int64_t)call->is_stream, now_ms);
	call->phase = CALL_OVER;
	signin_drop(call->asker);
	if (is_stale)
		names_settle(&gateway->names);
}

/* The slot of the model that will be ready first; NULL: none is coming. */
static const struct gateway_slot *coming(const struct gateway_model *model)
{
	const struct gateway_slot *first = NULL;

	for (size_t i = 0; i < model->slot_count; i++) {
		const struct gateway_slot *slot = model->slots[i];
		if (slot->state != SLOT_IS_LOADING && slot->state != SLOT_IS_ASLEEP)
			continue;
		if (!first || (slot->ready_ms > 0 && slot->ready_ms < first->ready_ms))
			first = slot;
	}
	return first;
}

static bool has_ready(const struct gateway_model *model)
{
	for (size_t i = 0; i < model->slot_count; i++)
		if (model->slots[i]->state == SLOT_IS_READY)
			return true;
	return false;
}

int64_t gateway_explain(const struct gateway *gateway, const struct gateway_call *call,
                        int64_t now_ms, char text[GATEWAY_MESSAGE_MAX])
{
	const struct gateway_model *model = call->model;
	const char *name = model->said ? model->said->name : "the model";
	const struct gateway_slot *slot = coming(model);
	int64_t wait_ms = slot && slot->ready_ms > now_ms ? slot->ready_ms - now_ms : 0;

	(void)gateway;
	if (has_ready(model))
		snprintf(text, GATEWAY_MESSAGE_MAX,
		         "all places of model %.80s are taken, %" PRId64 " requests are waiting",
		         name, model->queue.waiting);
	else if (slot && wait_ms > 0)
		snprintf(text, GATEWAY_MESSAGE_MAX,
		         "model %.80s is loading, ready in about %" PRId64 " s", name,
		         (wait_ms + 999) / 1000);
	else if (slot)
		snprintf(text, GATEWAY_MESSAGE_MAX, "model %.80s is loading", name);
	else
		snprintf(text, GATEWAY_MESSAGE_MAX, "model %.80s waits for GPU memory%s%.160s",
		         name, model->said && model->said->message[0] ? ": " : "",
		         model->said ? model->said->message : "");
	return wait_ms;
}

void gateway_late(const struct gateway *gateway, const struct gateway_call *call, int64_t now_ms,
                  struct refusal *refusal)
{
	char why[GATEWAY_MESSAGE_MAX];
	int64_t wait_ms = gateway_explain(gateway, call, now_ms, why);
	bool loads = !has_ready(call->model);

	refusal_set(
	    refusal, loads ? 504 : 503, "server_error", loads ? "model_loading" : "queue_timeout",
	    "no answer within %" PRId64 " s: %.240s", (now_ms - call->began_ms) / 1000, why);
	refusal->retry_after_s = max64(min64(wait_ms / 1000, 600), 1);
}

static bool load_has(const struct fair_tenant *tenant)
{
	return tenant->waiting > 0;
}

static void load_demand(const struct gateway_model *model, Gateway__Load *load, int64_t now_ms)
{
	for (size_t i = 0; i < model->queue.count; i++) {
		const struct fair_tenant *tenant = model->queue.all[i];
		if (!load_has(tenant))
			continue;
		Gateway__Demand *demand = memory_alloc(sizeof(*demand));
		gateway__demand__init(demand);
		demand->model_id = model->id;
		demand->tenant_id = tenant->id;
		demand->waiting = tenant->waiting;
		demand->oldest_ms = fair_oldest_ms(tenant, now_ms);
		demand->tokens = tenant->tokens;
		load->demands[load->n_demands++] = demand;
	}
}

static void load_served(const struct gateway_model *model, Gateway__Served *served)
{
	for (size_t i = 0; i < model->queue.count; i++) {
		const struct fair_tenant *tenant = model->queue.all[i];
		Gateway__Served__Row *row = memory_alloc(sizeof(*row));
		gateway__served__row__init(row);
		row->model_id = model->id;
		row->tenant_id = tenant->id;
		row->tokens = tenant->served;
		served->rows[served->n_rows++] = row;
	}
}

static void load_speed(const struct gateway_model *model, Gateway__Load *load, int64_t now_ms)
{
	Gateway__Speed *speed = speed_said(&model->speed, now_ms);

	if (!speed)
		return;
	speed->model_id = model->id;
	load->speeds[load->n_speeds++] = speed;
}

Gateway__Load *gateway_load(const struct gateway *gateway, int64_t now_ms)
{
	const struct names *names = &gateway->names;
	Gateway__Load *load = memory_alloc(sizeof(*load));
	size_t queues = 0;

	gateway__load__init(load);
	load->routes_version = names->routes ? names->routes->version : 0;
	load->shares_version = gateway->shares_version;
	load->tokens_version = gateway->signin.version;
	for (size_t i = 0; i < names->model_count; i++)
		queues += names->all_models[i]->queue.count;
	load->demands = memory_alloc((queues + 1) * sizeof(*load->demands));
	load->occupied = memory_alloc((names->slot_count + 1) * sizeof(*load->occupied));
	load->speeds = memory_alloc((names->model_count + 1) * sizeof(*load->speeds));
	load->served = memory_alloc(sizeof(*load->served));
	gateway__served__init(load->served);
	load->served->rows = memory_alloc((queues + 1) * sizeof(*load->served->rows));
	for (size_t i = 0; i < names->model_count; i++) {
		load_demand(names->all_models[i], load, now_ms);
		load_served(names->all_models[i], load->served);
		load_speed(names->all_models[i], load, now_ms);
	}
	for (size_t i = 0; i < names->slot_count; i++) {
		const struct gateway_slot *slot = names->all_slots[i];
		Gateway__Occupied *occupied = memory_alloc(sizeof(*occupied));
		gateway__occupied__init(occupied);
		occupied->slot_id = slot->id;
		occupied->requests = slot->requests;
		occupied->tokens = slot->tokens;
		occupied->share = slot->state == SLOT_IS_READY ? slot->share : 0;
		load->occupied[load->n_occupied++] = occupied;
	}
	return load;
}

static void narrower(struct rate *rate, int64_t now_ms, struct gateway_budget *budget)
{
	if (rate->per_minute == 0)
		return;
	int64_t left = rate_left(rate, now_ms);
	if (budget->limit > 0 && left >= budget->left)
		return;
	*budget = (struct gateway_budget){ rate->per_minute, left, rate_full_ms(rate, now_ms) };
}

void gateway_budgets(const struct gateway_call *call, int64_t now_ms,
                     struct gateway_budget *requests, struct gateway_budget *tokens)
{
	*requests = *tokens = (struct gateway_budget){ 0 };
	narrower(&call->asker->limits.requests, now_ms, requests);
	narrower(&call->asker->limits.tokens, now_ms, tokens);
	if (!call->tenant)
		return;
	narrower(&call->tenant->limits.requests, now_ms, requests);
	narrower(&call->tenant->limits.tokens, now_ms, tokens);
}
