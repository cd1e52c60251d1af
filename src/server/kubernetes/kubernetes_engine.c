/* kubernetes_engine.c - between the pods and the engine: commands, orders, what the core knows */
#include <stdlib.h>
#include <string.h>

#include "api/tenant/tenant_json.h"
#include "base/log.h"
#include "base/memory.h"
#include "core/record/orchestrator.h"
#include "server/kubernetes/kubernetes_local.h"

enum { WHYS_MAX = 8, LIST_STEP = 1000 };

static struct asked *asked_take(struct kubernetes *kubernetes)
{
	struct asked *asked = kubernetes->spare;

	if (asked) {
		kubernetes->spare = asked->next;
		engine_request_reset(&asked->engine);
	} else {
		asked = NEW(struct asked);
		asked->next_of_all = kubernetes->all;
		kubernetes->all = asked;
	}
	asked->kubernetes = kubernetes;
	asked->engine.context = asked;
	asked->is_submit = asked->is_why = false;
	return asked;
}

static void asked_done(struct engine_request *engine)
{
	struct asked *asked = engine->context;
	struct kubernetes *kubernetes = asked->kubernetes;

	kubernetes->whys -= asked->is_why;
	asked->next = kubernetes->spare;
	kubernetes->spare = asked;
	if (kubernetes->stopped)
		return;
	kubernetes->dirty = true;
	pods_time(kubernetes->pods, kubernetes->port->time_ms(kubernetes->port));
	if (asked->is_submit)
		pods_submitted(kubernetes->pods, asked->ticket, engine->ok ? engine->reply_id : 0,
		               &engine->error);
	else if (asked->is_why && engine->ok && engine->text.data)
		pods_why(kubernetes->pods, asked->job_id, engine->text.data);
	else if (!engine->ok && !asked->is_why)
		log_at(LOG_DEBUG, "the core did not take a fact about a pod",
		       LOG_TEXT("reason", engine->error.text));
}

static void port_command(void *context, const struct command *command, int64_t ticket)
{
	struct kubernetes *kubernetes = context;
	struct asked *asked = asked_take(kubernetes);

	asked->engine.command = *command_copy(&asked->engine.arena, command);
	asked->engine.has_command = asked->engine.patient = true;
	asked->engine.done = asked_done;
	asked->is_submit = command->kind == COMMAND_SUBMIT;
	asked->ticket = ticket;
	engine_port_send(kubernetes->port, &asked->engine);
}

static bool port_node_name(void *context, int64_t node_id, struct buffer *name)
{
	struct catalogue *catalogue = ((struct kubernetes *)context)->port->catalogue;

	catalogue_lock(catalogue);
	const struct node_record *node = catalogue_get(catalogue, RECORD_NODE, node_id, 0);
	if (node)
		buffer_text(name, node->name);
	catalogue_unlock(catalogue);
	return node != NULL;
}

static bool port_gpu_uuid(void *context, int64_t gpu_id, struct buffer *uuid)
{
	struct catalogue *catalogue = ((struct kubernetes *)context)->port->catalogue;

	catalogue_lock(catalogue);
	const struct gpu_record *gpu = catalogue_get(catalogue, RECORD_GPU, gpu_id, 0);
	if (gpu)
		buffer_text(uuid, gpu->uuid);
	catalogue_unlock(catalogue);
	return gpu != NULL;
}

static int64_t port_tenant(void *context, const char *name)
{
	struct catalogue *catalogue = ((struct kubernetes *)context)->port->catalogue;

	catalogue_lock(catalogue);
	const struct tenant_record *tenant = catalogue_tenant_named(catalogue, name);
	int64_t id = tenant ? tenant->id : 0;
	catalogue_unlock(catalogue);
	return id;
}

static void port_tenant_record(void *context, const char *name, struct arena *arena,
                               struct tenant_record *tenant)
{
	struct catalogue *catalogue = ((struct kubernetes *)context)->port->catalogue;

	catalogue_lock(catalogue);
	const struct tenant_record *known = catalogue_tenant_named(catalogue, name);
	if (known) {
		*tenant = *(struct tenant_record *)record_copy(arena, RECORD_TENANT, known);
	} else {
		*tenant = tenant_json_default();
		tenant->name = arena_string(arena, name);
	}
	catalogue_unlock(catalogue);
}

static bool port_node_has_agent(void *context, const char *name)
{
	struct catalogue *catalogue = ((struct kubernetes *)context)->port->catalogue;

	catalogue_lock(catalogue);
	const struct node_record *node = catalogue_node_named(catalogue, name);
	bool has = node && strcmp(node->boot, NODE_BOOT_KUBERNETES) != 0;
	catalogue_unlock(catalogue);
	return has;
}

static bool port_node_is_watched(void *context, const char *name)
{
	struct catalogue *catalogue = ((struct kubernetes *)context)->port->catalogue;

	catalogue_lock(catalogue);
	const struct node_record *node = catalogue_node_named(catalogue, name);
	bool is = node && strcmp(node->boot, NODE_BOOT_KUBERNETES) != 0 &&
	          strstr(node->labels, NODE_ORCHESTRATOR "=kubernetes");
	catalogue_unlock(catalogue);
	return is;
}

static void port_node_amounts(void *context, const char *name, int64_t *cpu_milli,
                              int64_t *host_bytes)
{
	struct catalogue *catalogue = ((struct kubernetes *)context)->port->catalogue;

	catalogue_lock(catalogue);
	const struct node_record *node = catalogue_node_named(catalogue, name);
	bool has = node && strcmp(node->boot, NODE_BOOT_KUBERNETES) != 0;
	*cpu_milli = has ? node->cpu_milli : 0;
	*host_bytes = has ? node->host_bytes : 0;
	catalogue_unlock(catalogue);
}

static bool port_job_is_over(void *context, int64_t job_id, bool *cancelled)
{
	struct catalogue *catalogue = ((struct kubernetes *)context)->port->catalogue;
	struct catalogue_job job;

	catalogue_lock(catalogue);
	bool known = catalogue_job(catalogue, job_id, &job);
	bool over = known && job_state_is_final((enum job_state)job.state->state);
	*cancelled = known && job.state->state == JOB_CANCELLED;
	catalogue_unlock(catalogue);
	return over;
}

static void port_order(void *context, const struct effect *effect)
{
	struct kubernetes *kubernetes = context;
	kubernetes->inner.order(kubernetes->inner.context, effect);
}

static int64_t port_term(void *context)
{
	struct kubernetes *kubernetes = context;
	struct engine_health health;

	kubernetes->port->health(kubernetes->port, &health);
	return health.term;
}

static void port_note(void *context, const char *sentence)
{
	(void)context;
	log_at(LOG_WARNING, sentence);
}

struct pods_port kubernetes_port(struct kubernetes *kubernetes)
{
	return (struct pods_port){ .command = port_command,
		                   .node_name = port_node_name,
		                   .gpu_uuid = port_gpu_uuid,
		                   .tenant = port_tenant,
		                   .tenant_record = port_tenant_record,
		                   .node_has_agent = port_node_has_agent,
		                   .node_is_watched = port_node_is_watched,
		                   .node_amounts = port_node_amounts,
		                   .job_is_over = port_job_is_over,
		                   .order = port_order,
		                   .term = port_term,
		                   .note = port_note,
		                   .context = kubernetes };
}

/* The key of a job that is a pod's; NULL. In memory of the caller. */
static char *key_of(struct kubernetes *kubernetes, int64_t job_id)
{
	struct catalogue *catalogue = kubernetes->port->catalogue;
	struct catalogue_job job;
	char *key = NULL;

	catalogue_lock(catalogue);
	if (catalogue_job(catalogue, job_id, &job) &&
	    strncmp(job.job->idempotency_key, PODS_KEY, strlen(PODS_KEY)) == 0)
		key = memory_text(job.job->idempotency_key);
	catalogue_unlock(catalogue);
	return key;
}

static void on_order(void *context, const struct effect *effect)
{
	struct kubernetes *kubernetes = context;
	char *key = effect->kind == EFFECT_LOAD || effect->order.job_id == 0
	                ? NULL
	                : key_of(kubernetes, effect->order.job_id);

	if (!key) {
		kubernetes->inner.order(kubernetes->inner.context, effect);
		return;
	}
	kubernetes->dirty = true;
	if (!kubernetes->stopped) {
		pods_time(kubernetes->pods, kubernetes->port->time_ms(kubernetes->port));
		pods_effect(kubernetes->pods, key, effect);
	}
	free(key);
}

static void on_event(void *context, const struct event *event)
{
	struct kubernetes *kubernetes = context;

	if (event->kind == EVENT_JOB_ENDED && !kubernetes->stopped) {
		char *key = key_of(kubernetes, event->job_id);
		if (key)
			pods_job_ended(kubernetes->pods, key);
		kubernetes->dirty |= key != NULL;
		free(key);
	}
	kubernetes->inner.event(kubernetes->inner.context, event);
}

static void on_route(void *context, const struct route_effect *route)
{
	struct kubernetes *kubernetes = context;
	kubernetes->inner.route(kubernetes->inner.context, route);
}

static void on_changed(void *context)
{
	struct kubernetes *kubernetes = context;
	kubernetes->inner.changed(kubernetes->inner.context);
}

void kubernetes_listen(struct kubernetes *kubernetes)
{
	kubernetes->inner = kubernetes->port->listener;
	kubernetes->port->listener = (struct engine_listener){ .order = on_order,
		                                               .route = on_route,
		                                               .event = on_event,
		                                               .changed = on_changed,
		                                               .context = kubernetes };
}

static void know_job(struct kubernetes *kubernetes, struct catalogue *catalogue, int64_t id)
{
	struct catalogue_job job;

	if (!catalogue_job(catalogue, id, &job) ||
	    job_state_is_final((enum job_state)job.state->state) ||
	    strncmp(job.job->idempotency_key, PODS_KEY, strlen(PODS_KEY)) != 0)
		return;
	pods_know(kubernetes->pods, &(struct pods_known){ .job_id = id,
	                                                  .key = job.job->idempotency_key,
	                                                  .held = job.state->held,
	                                                  .tasks = job.job->tasks });
	for (size_t i = 0; i < job.task_count; i++) {
		const struct task_record *task = job.tasks[i];
		const struct reservation_record *reservation =
		    task->reservation_id
			? catalogue_get(catalogue, RECORD_RESERVATION, task->reservation_id, 0)
			: NULL;
		bool ended = task->state == TASK_ENDED;
		if ((!reservation || reservation->phase == PHASE_CLAIM) && !ended)
			continue;
		if (!reservation) {
			pods_know_task(kubernetes->pods,
			               &(struct pods_known_task){
					   .job_id = id, .task = task->place, .ended = true });
			continue;
		}
		pods_know_task(
		    kubernetes->pods,
		    &(struct pods_known_task){ .job_id = id,
		                               .task = task->place,
		                               .reservation_id = reservation->id,
		                               .node_id = reservation->node_id,
		                               .stopping = reservation->phase == PHASE_RELEASING,
		                               .live = reservation->phase != PHASE_GRANTED,
		                               .ended = ended,
		                               .parts = reservation->parts });
	}
}

void kubernetes_know(struct kubernetes *kubernetes)
{
	struct catalogue *catalogue = kubernetes->port->catalogue;
	const struct catalogue_filter all = { .state = -1, .order = ORDER_OLDEST };
	int64_t ids[LIST_STEP], offset = 0;
	size_t count;

	catalogue_lock(catalogue);
	while ((count = catalogue_list(catalogue, &all, offset, LIST_STEP, ids)) > 0) {
		for (size_t i = 0; i < count; i++)
			know_job(kubernetes, catalogue, ids[i]);
		offset += (int64_t)count;
	}
	catalogue_unlock(catalogue);
}

static bool kubernetes_look_why(struct engine_request *engine, struct sched *sched,
                                struct error *error)
{
	const struct asked *asked = engine->context;

	return sched_why(sched, asked->job_id, asked->viewer, &engine->text, error);
}

/* As its tenant may see it: events are read by whoever can read the namespace. */
static int64_t viewer_of(struct kubernetes *kubernetes, int64_t job_id)
{
	struct catalogue *catalogue = kubernetes->port->catalogue;
	struct catalogue_job job;

	catalogue_lock(catalogue);
	int64_t viewer = catalogue_job(catalogue, job_id, &job) ? job.job->tenant_id : 0;
	catalogue_unlock(catalogue);
	return viewer;
}

void kubernetes_ask_why(struct kubernetes *kubernetes)
{
	int64_t job_id;

	while (kubernetes->whys < WHYS_MAX && (job_id = pods_wants_why(kubernetes->pods)) > 0) {
		struct asked *asked = asked_take(kubernetes);
		asked->is_why = true;
		asked->job_id = job_id;
		asked->viewer = viewer_of(kubernetes, job_id);
		if (asked->viewer == 0) {
			asked->next = kubernetes->spare;
			kubernetes->spare = asked;
			continue;
		}
		asked->engine.look = kubernetes_look_why;
		asked->engine.done = asked_done;
		kubernetes->whys++;
		engine_port_send(kubernetes->port, &asked->engine);
	}
}
