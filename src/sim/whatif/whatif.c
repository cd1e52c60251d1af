/* whatif.c - the core of a live scheduler, run forward with expected durations */
#include "sim/whatif/whatif.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/model.h"
#include "core/model/slot.h"
#include "core/queue/job.h"
#include "core/state.h"
#include "store/store.h"

#define RELEASE_MS 5000    /* what stopping, and giving memory back, takes */
#define LOOK_MS 60000      /* time alone changes something: ageing, promises, back-offs */
#define EVENTS_MAX 2000000 /* then it ends, wherever it is */
#define PASSES_MAX 100

enum happening { TASK_BEGINS, TASK_ENDS, SLOT_BEGINS, MEMORY_BACK };

struct happening_at {
	enum happening kind;
	int64_t reservation_id, job_id;
};

struct whatif {
	const struct whatif_options *options;
	struct whatif_result *result;
	struct sched *sched;
	struct effects effects;
	struct ranktree happenings; /* by time, then number */
	int64_t now_ms, last;
	int64_t told_ms;    /* of the horizon, that `tick` knows of */
	int64_t job_id;     /* that is asked about; 0: none */
	struct map waiting; /* jobs that waited at the beginning and have not started */
	int64_t waited_ms;
};

static void later(struct whatif *whatif, int64_t at_ms, struct happening_at what)
{
	struct happening_at *copy = memory_alloc(sizeof(*copy));

	*copy = what;
	ranktree_insert(&whatif->happenings, max64(at_ms, whatif->now_ms), ++whatif->last, copy);
}

static int64_t duration_ms(struct whatif *whatif, const struct job *job)
{
	if (job->r.id == whatif->job_id && whatif->options->job->duration_ms > 0)
		return whatif->options->job->duration_ms;
	if (job->s.expected_ms > 0)
		return job->s.expected_ms;
	whatif->result->guessed++;
	return job->r.max_runtime_ms > 0 ? job->r.max_runtime_ms : whatif->options->unknown_ms;
}

/* When what runs already will end. */
static int64_t end_ms(struct whatif *whatif, const struct job *job)
{
	int64_t expected_ms = job_expected_end(job, whatif->now_ms);

	if (expected_ms != INT64_MAX)
		return expected_ms;
	return whatif->now_ms + duration_ms(whatif, job);
}

static void take_start(struct whatif *whatif, int64_t job_id)
{
	if (map_remove(&whatif->waiting, job_id)) {
		whatif->result->started++;
		whatif->waited_ms += whatif->now_ms - whatif->result->now_ms;
	}
	if (job_id == whatif->job_id && whatif->result->start_ms < 0)
		whatif->result->start_ms = whatif->now_ms;
}

static void take_effects(struct whatif *whatif)
{
	for (size_t i = 0; i < whatif->effects.count; i++) {
		const struct effect *effect = &whatif->effects.at[i];
		struct happening_at what = { .reservation_id = effect->order.reservation_id,
			                     .job_id = effect->order.job_id };
		if (effect->kind == EFFECT_START) {
			what.kind = TASK_BEGINS;
			later(whatif, whatif->now_ms, what);
		} else if (effect->kind == EFFECT_STOP) {
			what.kind = MEMORY_BACK;
			later(whatif, whatif->now_ms + RELEASE_MS, what);
		} else if (effect->kind == EFFECT_LOAD) {
			what = (struct happening_at){ SLOT_BEGINS, effect->load.reservation_id, 0 };
			later(whatif, whatif->now_ms, what);
		} else if (effect->kind == EFFECT_EVENT &&
		           effect->event.kind == EVENT_JOB_STARTED) {
			take_start(whatif, effect->event.job_id);
		}
	}
}

/* A command that is refused is old news. */
static bool whatif_send(struct whatif *whatif, struct command command, struct error *error)
{
	struct error ignored;

	command.now_ms = whatif->now_ms;
	effects_clear(&whatif->effects);
	bool done =
	    sched_apply(whatif->sched, &command, &whatif->effects, error ? error : &ignored);
	take_effects(whatif);
	return done;
}

static void task_begins(struct whatif *whatif, const struct happening_at *what)
{
	struct command command = { .kind = COMMAND_TASK_STARTED };
	const struct job *job = map_get(&whatif->sched->jobs, what->job_id);

	command.task.reservation_id = what->reservation_id;
	command.task.message = "";
	if (!job || !whatif_send(whatif, command, NULL))
		return;
	later(whatif, whatif->now_ms + duration_ms(whatif, job),
	      (struct happening_at){ TASK_ENDS, what->reservation_id, what->job_id });
}

/* Slots are ready at once; what that takes is not what is asked about. */
static void slot_is_loaded(struct whatif *whatif, const struct happening_at *what)
{
	struct command command = { .kind = COMMAND_SLOT_LOADING };

	command.slot.reservation_id = what->reservation_id;
	command.slot.address = "there";
	command.slot.message = "";
	whatif_send(whatif, command, NULL);
	command.kind = COMMAND_SLOT_READY;
	whatif_send(whatif, command, NULL);
}

static void happens(struct whatif *whatif, const struct happening_at *what)
{
	struct command command = { .kind = COMMAND_MEMORY_RELEASED };

	command.task.reservation_id = what->reservation_id;
	command.task.message = "";
	switch (what->kind) {
	case TASK_BEGINS:
		task_begins(whatif, what);
		break;
	case TASK_ENDS:
		command.kind = COMMAND_TASK_EXITED;
		command.task.released = true;
		whatif_send(whatif, command, NULL);
		break;
	case SLOT_BEGINS:
		slot_is_loaded(whatif, what);
		break;
	case MEMORY_BACK:
		whatif_send(whatif, command, NULL);
		break;
	}
}

/* Running work of the snapshot continues. */
static void whatif_go_on(struct whatif *whatif, const struct reservation *reservation)
{
	int64_t job_id = reservation->job ? reservation->job->r.id : 0;
	struct happening_at what = { MEMORY_BACK, reservation->id, job_id };

	switch (reservation->phase) {
	case PHASE_GRANTED:
		what.kind = reservation->slot ? SLOT_BEGINS : TASK_BEGINS;
		later(whatif, whatif->now_ms, what);
		break;
	case PHASE_LIVE:
		what.kind = TASK_ENDS;
		if (reservation->job)
			later(whatif, end_ms(whatif, reservation->job), what);
		break;
	case PHASE_RELEASING:
		later(whatif, whatif->now_ms + RELEASE_MS, what);
		break;
	default: /* nothing is known of when it begins */
		break;
	}
}

static void count_job(struct whatif *whatif, struct job *job)
{
	enum job_state state = (enum job_state)job->s.state;

	whatif->result->running += state == JOB_RUNNING;
	if (state != JOB_PENDING || job->s.held)
		return;
	whatif->result->waiting++;
	map_put(&whatif->waiting, job->r.id, job);
}

static void look_around(struct whatif *whatif)
{
	struct sched *sched = whatif->sched;
	const struct cluster *cluster = &sched->cluster;

	for (int64_t id = 1; id <= sched->meta.last_job_id; id++) {
		struct job *job = map_get(&sched->jobs, id);
		if (job)
			count_job(whatif, job);
	}
	whatif->result->nodes = (int64_t)cluster->node_count;
	for (size_t i = 0; i < cluster->node_count; i++) {
		const struct node *node = cluster->nodes[i];
		for (int g = 0; g < node->gpu_count; g++)
			whatif->result->gpus += !node->gpus[g]->r.mig_mode;
		for (int r = 0; r < node->reservation_count; r++)
			whatif_go_on(whatif, node->reservations[r]);
	}
}

static void whatif_add_nodes(struct whatif *whatif, const struct whatif_nodes *nodes)
{
	struct device devices[GPUS_PER_NODE_MAX];
	char uuids[GPUS_PER_NODE_MAX][48], name[32];

	for (int64_t n = 0; n < nodes->count; n++) {
		struct command command = { .kind = COMMAND_NODE_REPORT };
		snprintf(name, sizeof(name), "whatif-%lld", (long long)n + 1);
		for (int64_t g = 0; g < nodes->gpus; g++) {
			snprintf(uuids[g], sizeof(uuids[g]), "%s-gpu-%lld", name, (long long)g);
			devices[g] = (struct device){ .uuid = uuids[g],
				                      .model = nodes->model,
				                      .mig_parent = "",
				                      .place = g,
				                      .capacity_mib = nodes->memory_mib,
				                      .nvlink_group = 1,
				                      .healthy = true };
		}
		command.report = (struct node_report_command){ .name = name,
			                                       .boot = "whatif",
			                                       .zone = "",
			                                       .rack = "",
			                                       .labels = "",
			                                       .cpu_milli = 64000 * nodes->gpus,
			                                       .host_bytes = INT64_C(1) << 42,
			                                       .devices = devices,
			                                       .device_count = nodes->gpus,
			                                       .snapshot = true };
		struct error error = { 0 };
		if (!whatif_send(whatif, command, &error))
			snprintf(whatif->result->refusal, sizeof(whatif->result->refusal), "%s",
			         error.text);
	}
}

static const struct tenant *whatif_find_tenant(const struct sched *sched, const char *name)
{
	for (int64_t id = 1; id <= sched->meta.last_tenant_id; id++) {
		const struct tenant *tenant = tenants_find(&sched->tenants, id);
		if (tenant && (!*name || strcmp(tenant->r.name, name) == 0))
			return tenant;
	}
	return NULL;
}

static void whatif_submit(struct whatif *whatif, const struct whatif_job *job)
{
	const struct tenant *tenant = whatif_find_tenant(whatif->sched, job->tenant);
	struct command command = { .kind = COMMAND_SUBMIT, .submit = job->submit };
	struct whatif_result *result = whatif->result;
	struct error error = { 0 };

	if (!tenant) {
		snprintf(result->refusal, sizeof(result->refusal), "there is no tenant%s%s",
		         *job->tenant ? " " : "", job->tenant);
		return;
	}
	command.submit.job.tenant_id = tenant->r.id;
	whatif->job_id = whatif->sched->meta.last_job_id + 1;
	if (whatif_send(whatif, command, &error))
		return;
	whatif->job_id = 0;
	snprintf(result->refusal, sizeof(result->refusal), "%s", error.text);
}

static void whatif_decide(struct whatif *whatif)
{
	bool more = true;

	for (int i = 0; i < PASSES_MAX && more; i++) {
		whatif_send(whatif, (struct command){ .kind = COMMAND_PASS, .units = 10000 }, NULL);
		more = false;
		for (size_t e = 0; e < whatif->effects.count; e++)
			more = more || whatif->effects.at[e].kind == EFFECT_MORE;
	}
}

static bool is_answered(const struct whatif *whatif)
{
	return whatif->waiting.count == 0 && (whatif->job_id == 0 || whatif->result->start_ms >= 0);
}

/* Tells who watches that so much of the horizon has passed. */
static void whatif_tell(struct whatif *whatif, int64_t passed_ms)
{
	const struct whatif_options *options = whatif->options;
	int64_t more_ms = min64(passed_ms, options->horizon_ms) - whatif->told_ms;

	if (options->tick && more_ms > 0)
		options->tick(options->context, more_ms);
	whatif->told_ms += max64(more_ms, 0);
}

static void let_time_pass(struct whatif *whatif)
{
	int64_t until_ms = whatif->now_ms + whatif->options->horizon_ms;

	whatif_decide(whatif);
	for (int64_t i = 0; i < EVENTS_MAX && whatif->now_ms < until_ms; i++) {
		const struct rank_entry *first = ranktree_first(&whatif->happenings);
		int64_t next_ms = whatif->now_ms + LOOK_MS;
		struct rank_entry entry;
		if (!first && is_answered(whatif))
			return;
		whatif->now_ms = first ? min64(first->major, next_ms) : next_ms;
		while ((first = ranktree_first(&whatif->happenings)) &&
		       first->major <= whatif->now_ms) {
			ranktree_pop(&whatif->happenings, &entry);
			happens(whatif, entry.value);
			free(entry.value);
		}
		whatif_decide(whatif);
		whatif_tell(whatif, whatif->now_ms - whatif->result->now_ms);
		if (is_answered(whatif))
			return;
	}
}

static void say_where(struct whatif *whatif)
{
	const struct job *job = map_get(&whatif->sched->jobs, whatif->job_id);
	struct whatif_result *result = whatif->result;
	size_t size = 0;

	for (int i = 0; job && i < job->r.tasks && size < sizeof(result->where); i++) {
		const struct reservation *reservation = job->tasks[i].reservation;
		if (reservation)
			size += (size_t)snprintf(result->where + size, sizeof(result->where) - size,
			                         "%s%s", size > 0 ? ", " : "",
			                         reservation->node->r.name);
	}
}

static void whatif_answer(struct whatif *whatif)
{
	struct whatif_result *result = whatif->result;
	struct buffer why = { 0 };
	struct error error = { 0 };

	result->wait_ms = result->started > 0 ? whatif->waited_ms / result->started : 0;
	if (whatif->job_id > 0 && result->start_ms >= 0)
		say_where(whatif);
	else if (whatif->job_id > 0 && sched_why(whatif->sched, whatif->job_id, 0, &why, &error))
		snprintf(result->reason, sizeof(result->reason), "%s", why.data);
	buffer_free(&why);
}

static bool whatif_load(struct whatif *whatif, struct error *error)
{
	struct store *store =
	    store_new(&(struct store_options){ .database = whatif->options->state });

	whatif->sched = sched_new();
	bool done =
	    store_read_only(store, error) == STORE_DONE && store_load(store, whatif->sched, error);
	store_free(store);
	whatif->now_ms = whatif->result->now_ms = whatif->sched->meta.now_ms;
	return done;
}

static void whatif_end(struct whatif *whatif)
{
	struct rank_entry entry;

	while (ranktree_pop(&whatif->happenings, &entry))
		free(entry.value);
	ranktree_free(&whatif->happenings);
	map_free(&whatif->waiting);
	effects_free(&whatif->effects);
	sched_free(whatif->sched);
}

bool whatif_run(const struct whatif_options *options, const struct whatif_nodes *nodes,
                struct whatif_result *result, struct error *error)
{
	struct whatif whatif = { .options = options, .result = result };

	*result = (struct whatif_result){ .start_ms = -1 };
	bool loaded = whatif_load(&whatif, error);
	if (loaded) {
		look_around(&whatif);
		if (nodes)
			whatif_add_nodes(&whatif, nodes);
		if (options->job)
			whatif_submit(&whatif, options->job);
		let_time_pass(&whatif);
		whatif_tell(&whatif, options->horizon_ms);
		whatif_answer(&whatif);
	}
	whatif_end(&whatif);
	return loaded;
}
