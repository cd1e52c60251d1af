/* slots.h - models, slots and requests in a test, on top of the harness */
#ifndef CORE_TEST_SLOTS_H
#define CORE_TEST_SLOTS_H

#include "core/test/harness.h"

/* A model of the tenant that takes so much; concurrency 1 unless set. */
static inline struct model_record model_of(int64_t tenant, const char *name, int64_t memory_mib)
{
	return (struct model_record){ .tenant_id = tenant,
		                      .name = name,
		                      .runtime = RUNTIME_LLAMA_CPP,
		                      .command = "",
		                      .payload = "",
		                      .kv_cache = "",
		                      .gpu_models = "",
		                      .node_labels = "",
		                      .message = "",
		                      .priority = 500,
		                      .memory_mib = memory_mib };
}

static inline bool try_put_model(struct harness *h, struct model_record model, bool administrator)
{
	struct command command = { .kind = COMMAND_PUT_MODEL };

	command.model.model = model;
	command.model.administrator = administrator;
	return harness_apply(h, command);
}

static inline int64_t put_model(struct harness *h, struct model_record model)
{
	must(h, try_put_model(h, model, false));
	return h->effects.reply_id;
}

static inline struct model *model(const struct harness *h, int64_t id)
{
	return models_find(&h->sched->models, id);
}

/* The last effect about this request in what the last command had; NULL: none. */
static inline const struct route_effect *routed(const struct harness *h, int64_t request)
{
	for (size_t i = h->effects.count; i-- > 0;)
		if (h->effects.at[i].kind == EFFECT_ROUTE &&
		    h->effects.at[i].route.request_id == request)
			return &h->effects.at[i].route;
	return NULL;
}

static inline int64_t next_request(void)
{
	static int64_t last;

	return ++last;
}

static inline bool try_request(struct harness *h, int64_t model_id, int64_t tenant, int64_t id)
{
	return harness_apply(
	    h, (struct command){
		   .kind = COMMAND_REQUEST,
		   .request = { .request_id = id, .model_id = model_id, .tenant_id = tenant } });
}

/* A request of an administrator; its id. What became of it: routed(). */
static inline int64_t request(struct harness *h, int64_t model_id)
{
	int64_t id = next_request();

	must(h, try_request(h, model_id, 0, id));
	return id;
}

static inline bool try_done(struct harness *h, int64_t id, enum request_end end)
{
	struct command command = { .kind = COMMAND_REQUEST_DONE };

	command.done.request_id = id;
	command.done.end = end;
	return harness_apply(h, command);
}

static inline void done(struct harness *h, int64_t id)
{
	must(h, try_done(h, id, REQUEST_SUCCEEDED));
}

static inline bool to_slot(struct harness *h, enum command_kind kind, int64_t id,
                           const char *message, bool released)
{
	struct command command = { .kind = kind };

	command.slot.reservation_id = id;
	command.slot.address = "10.0.0.1:8000";
	command.slot.message = message;
	command.slot.released = released;
	return harness_apply(h, command);
}

static inline void ready(struct harness *h, int64_t slot)
{
	must(h, to_slot(h, COMMAND_SLOT_READY, slot, "", false));
}

/* A pass whose orders to load are left open: they are put into `loads`. */
static inline int pass_only(struct harness *h, int64_t *loads)
{
	int64_t started[4096];
	int count = 0;

	must(h, harness_apply(h, (struct command){ .kind = COMMAND_PASS, .units = INT64_MAX }));
	for (size_t i = 0; i < h->effects.count; i++)
		if (h->effects.at[i].kind == EFFECT_LOAD)
			loads[count++] = h->effects.at[i].load.reservation_id;
	int starts = read_orders(h, started);
	for (int i = 0; i < starts; i++)
		must(h, to_task(h, COMMAND_TASK_STARTED, started[i], 0, false));
	return count;
}

/* Slots that are loading become ready, and those that follow them. */
static inline void finish_loads(struct harness *h)
{
	bool again = true;

	while (again) {
		again = false;
		for (size_t i = 0; i < h->sched->models.slots.capacity; i++) {
			const struct slot *slot = h->sched->models.slots.entries[i].value;
			if (!slot || slot->r.state != SLOT_LOADING)
				continue;
			ready(h, slot->r.id);
			again = true;
			break;
		}
	}
}

/* Passes, with nodes that do at once what they are told, until nothing changes. */
static inline void settle(struct harness *h)
{
	int64_t loads[4096];
	uint64_t state;

	do {
		state = h->sched->pass.change_seq;
		pass_only(h, loads);
		finish_loads(h);
		confirm_stops(h);
	} while (state != h->sched->pass.change_seq);
}

/* The model's slots that are ready. */
static inline int ready_slots(const struct harness *h, int64_t id)
{
	return model(h, id)->counts.ready;
}

/* The model's oldest slot, or NULL. */
static inline struct slot *slot_of(const struct harness *h, int64_t id)
{
	return model(h, id)->slot_count > 0 ? model(h, id)->slots[0] : NULL;
}

static inline const char *slot_gpu(const struct harness *h, int64_t id)
{
	return slot_of(h, id)->reservation->parts[0].gpu->r.uuid;
}

/* Asks for the model and sees it loaded, and idle again. */
static inline void load(struct harness *h, int64_t id)
{
	int64_t asked = request(h, id);

	settle(h);
	assert_true(ready_slots(h, id) > 0);
	done(h, asked);
}

/* Everything that is idle now may be evicted. */
static inline void grow_cold(struct harness *h) { time_passes(h, IDLE_TTL_DEFAULT_MS); }

static inline const char *why_model(struct harness *h, int64_t id)
{
	static struct buffer text;

	buffer_clear(&text);
	must(h, sched_why_model(h->sched, id, 0, &text, &h->error));
	return text.data;
}

#endif
