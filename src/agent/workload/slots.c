/* slots.c - servers of models: are they ready, are they well, what have they to do */
#include "agent/workload/slots.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/host/listener.h"
#include "agent/uplink/http_get.h"
#include "base/log.h"

#define READY_LOOK_MS 250
#define HEALTH_LOOK_MS 2000
#define ANSWER_MS 2000

struct slot_watch {
	struct slots *slots;
	int64_t reservation_id;
	struct works_slot slot;
	char key[SLOT_KEY_SIZE + 1]; /* that the server is asked with; "": none */
	char *health_path;
	bool ready;
	bool unknown_told, foreign_told;
	uv_timer_t *timer;
	struct listener_check *checking;
	struct http_get *asking;
};

/* Whose socket listens on the port of a slot, found out in a thread. Outlives a watch that is
 * removed meanwhile. */
struct listener_check {
	uv_work_t work;
	struct slot_watch *watch; /* NULL: removed */
	struct cgroup group;      /* a copy */
	int64_t port;
	enum listener_owner owner;
	int64_t uid;
};

struct slots {
	uv_loop_t *loop;
	char *address;
	void (*event)(void *context, enum input_kind kind, const struct work_event *event);
	void *context;
	struct slot_watch **at;
	size_t count, capacity;
};

struct slots *slots_new(uv_loop_t *loop, const char *address,
                        void (*event)(void *context, enum input_kind kind,
                                      const struct work_event *event),
                        void *context)
{
	struct slots *slots = NEW(struct slots);

	slots->loop = loop;
	slots->address = memory_text(address ? address : "127.0.0.1");
	slots->event = event;
	slots->context = context;
	return slots;
}

static void timer_closed(uv_handle_t *handle)
{
	free(handle);
}

static void remove_at(struct slots *slots, size_t at)
{
	struct slot_watch *watch = slots->at[at];

	slots->at[at] = slots->at[--slots->count];
	if (watch->asking)
		http_get_cancel(watch->asking);
	if (watch->checking)
		watch->checking->watch = NULL;
	uv_close((uv_handle_t *)watch->timer, timer_closed);
	cgroup_free(&watch->slot.group);
	free(watch->health_path);
	explicit_bzero(watch->key, sizeof(watch->key));
	free(watch);
}

void slots_free(struct slots *slots)
{
	while (slots->count > 0)
		remove_at(slots, 0);
	free(slots->at);
	free(slots->address);
	free(slots);
}

void slots_forget(struct slots *slots, int64_t reservation_id)
{
	for (size_t i = slots->count; i-- > 0;)
		if (slots->at[i]->reservation_id == reservation_id)
			remove_at(slots, i);
}

/* The sum of the values of a metric over its labels; -1: it is not there. */
static int64_t sum_metric(const char *page, const char *name)
{
	size_t size = strlen(name);
	int64_t sum = -1;

	for (const char *line = page; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, size) != 0 || (line[size] != '{' && line[size] != ' '))
			continue;
		const char *value = line[size] == '{' ? strchr(line, '}') : line + size;
		double number = value ? strtod(value + 1, NULL) : 0;
		if (number >= 0 && number < 1e9)
			sum = (sum < 0 ? 0 : sum) + (int64_t)number;
	}
	return sum;
}

int64_t slots_read_active(int32_t runtime, const char *page)
{
	if (runtime == RUNTIME_VLLM) {
		int64_t running = sum_metric(page, "vllm:num_requests_running");
		int64_t waiting = sum_metric(page, "vllm:num_requests_waiting");
		return running < 0 ? -1 : running + (waiting > 0 ? waiting : 0);
	}
	if (runtime == RUNTIME_LLAMA_CPP) {
		int64_t active = 0;
		for (const char *at = page; (at = strstr(at, "\"is_processing\"")); at++) {
			const char *value = at + strlen("\"is_processing\"");
			value += strspn(value, " :");
			active += strncmp(value, "true", 4) == 0;
		}
		return *page == '[' ? active : -1;
	}
	return -1;
}

static void slots_look(uv_timer_t *timer);

static void look_later(struct slot_watch *watch)
{
	uv_timer_start(watch->timer, slots_look, watch->ready ? HEALTH_LOOK_MS : READY_LOOK_MS, 0);
}

static void slots_tell(const struct slot_watch *watch, enum input_kind kind,
                       struct work_event event)
{
	event.reservation_id = watch->reservation_id;
	watch->slots->event(watch->slots->context, kind, &event);
}

static void answered_active(void *context, int status, const char *body)
{
	struct slot_watch *watch = context;
	int64_t active = status == 200 ? slots_read_active(watch->slot.runtime, body) : -1;

	watch->asking = NULL;
	look_later(watch);
	if (active >= 0)
		slots_tell(watch, INPUT_ACTIVE, (struct work_event){ .active = active });
}

static struct http_get *ask(struct slot_watch *watch, const char *path,
                            void (*answered)(void *context, int status, const char *body))
{
	return http_get_start(watch->slots->loop, watch->slot.public_port, path,
	                      watch->key[0] ? watch->key : NULL, ANSWER_MS, answered, watch);
}

static void ask_active(struct slot_watch *watch)
{
	const char *path = watch->slot.runtime == RUNTIME_VLLM        ? "/metrics"
	                   : watch->slot.runtime == RUNTIME_LLAMA_CPP ? "/slots"
	                                                              : NULL;

	if (path)
		watch->asking = ask(watch, path, answered_active);
	else
		look_later(watch);
}

static void tell_ready(struct slot_watch *watch)
{
	struct buffer address = { 0 };

	watch->ready = true;
	buffer_print(&address, "http://%s:%" PRId64, watch->slots->address,
	             watch->slot.public_port);
	log_at(LOG_INFO, "a slot is ready", LOG_NUMBER("reservation", watch->reservation_id),
	       LOG_TEXT("address", address.data));
	slots_tell(watch, INPUT_READY, (struct work_event){ .address = address.data });
	buffer_free(&address);
}

static void answered_health(void *context, int status, const char *body)
{
	struct slot_watch *watch = context;
	bool well = status >= 200 && status < 300;

	(void)body;
	watch->asking = NULL;
	if (watch->ready)
		slots_tell(watch, INPUT_HEALTH, (struct work_event){ .healthy = well });
	else if (well)
		tell_ready(watch);
	if (watch->ready && well)
		ask_active(watch);
	else
		look_later(watch);
}

static struct cgroup copy_group(const struct cgroup *group)
{
	struct cgroup copy = *group;

	for (int tree = 0; tree < CGROUP_TREES; tree++)
		copy.path[tree] = group->path[tree] ? memory_text(group->path[tree]) : NULL;
	return copy;
}

/* Requests would go to somebody else: nothing that answers there counts. */
static void tell_foreign(struct slot_watch *watch, int64_t uid)
{
	struct buffer message = { 0 };

	if (watch->foreign_told)
		return;
	watch->foreign_told = true;
	buffer_print(&message,
	             "port %" PRId64 " has a listener of user %" PRId64
	             " that does not belong to the model's server",
	             watch->slot.port, uid);
	log_at(LOG_WARNING, message.data, LOG_NUMBER("reservation", watch->reservation_id));
	slots_tell(watch, INPUT_HEALTH,
	           (struct work_event){ .healthy = false, .message = message.data });
	buffer_free(&message);
}

static void tell_unknown(struct slot_watch *watch)
{
	if (!watch->unknown_told)
		log_at(LOG_ERROR, "it cannot be seen who listens on the port of a slot",
		       LOG_NUMBER("reservation", watch->reservation_id),
		       LOG_TEXT("reason", "neither /proc/net/tcp nor tcp6 can be read"));
	watch->unknown_told = true;
}

static void take_owner(struct slot_watch *watch, enum listener_owner owner, int64_t uid)
{
	if (owner == LISTENER_OWN) {
		watch->asking = ask(watch, watch->health_path, answered_health);
		return;
	}
	look_later(watch);
	if (owner == LISTENER_FOREIGN) {
		tell_foreign(watch, uid);
		return;
	}
	if (owner == LISTENER_UNKNOWN)
		tell_unknown(watch);
	if (watch->ready)
		slots_tell(watch, INPUT_HEALTH, (struct work_event){ .healthy = false });
}

static void check_listener(uv_work_t *work)
{
	struct listener_check *check = work->data;

	check->owner = listener_look(&check->group, check->port, &check->uid);
}

static void checked_listener(uv_work_t *work, int status)
{
	struct listener_check *check = work->data;
	struct slot_watch *watch = check->watch;

	(void)status;
	if (watch) {
		watch->checking = NULL;
		take_owner(watch, check->owner, check->uid);
	}
	cgroup_free(&check->group);
	free(check);
}

/* Whoever listens on the port is asked only if it is the slot's own server. In a network of its own
 * nobody else can listen. */
static void slots_look(uv_timer_t *timer)
{
	struct slot_watch *watch = timer->data;

	if (watch->slot.own_network) {
		watch->asking = ask(watch, watch->health_path, answered_health);
		return;
	}
	struct listener_check *check = NEW(struct listener_check);
	check->work.data = check;
	check->watch = watch;
	check->group = copy_group(&watch->slot.group);
	check->port = watch->slot.port;
	watch->checking = check;
	uv_queue_work(watch->slots->loop, &check->work, check_listener, checked_listener);
}

void slots_watch(struct slots *slots, int64_t reservation_id, const struct works_slot *slot)
{
	struct slot_watch *watch = NEW(struct slot_watch);

	slots_forget(slots, reservation_id);
	watch->slots = slots;
	watch->reservation_id = reservation_id;
	watch->slot = *slot;
	snprintf(watch->key, sizeof(watch->key), "%s", slot->key ? slot->key : "");
	watch->slot.group = copy_group(&slot->group);
	watch->health_path = memory_text(slot->health_path ? slot->health_path : "/health");
	watch->timer = NEW(uv_timer_t);
	uv_timer_init(slots->loop, watch->timer);
	watch->timer->data = watch;
	array_reserve(slots->at, slots->capacity, slots->count + 1);
	slots->at[slots->count++] = watch;
	look_later(watch);
}
