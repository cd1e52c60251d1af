/* measurement.c - readings of the GPUs, taken in a thread of their own */
#include "agent/workload/measurement.h"

#include <stdlib.h>
#include <string.h>

#include "agent/host/file.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"

struct measurements {
	uv_loop_t *loop;
	struct gpu_source *source;
	const struct works *works;
	const struct cgroups *cgroups;
	struct mps *mps; /* NULL: none */
	void (*done)(void *context, const struct measured *measured);
	void *context;
	int64_t asked, begun; /* the highest numbers of those */
	int64_t count;        /* that have begun */
	bool again;           /* another is to follow the one that runs */
	bool running, freed;
	uv_work_t work;
	/* The thread's, while it runs. */
	struct arena texts; /* of the users */
	struct buffer users, keepers;
	struct gpu_readings readings;
	struct error error;
	bool good, was_good;
};

struct measurements *measurements_new(uv_loop_t *loop, struct gpu_source *source,
                                      const struct works *works, const struct cgroups *cgroups,
                                      struct mps *mps,
                                      void (*done)(void *context, const struct measured *measured),
                                      void *context)
{
	struct measurements *measurements = NEW(struct measurements);

	measurements->loop = loop;
	measurements->source = source;
	measurements->works = works;
	measurements->cgroups = cgroups;
	measurements->mps = mps;
	measurements->done = done;
	measurements->context = context;
	measurements->was_good = true;
	measurements->work.data = measurements;
	return measurements;
}

static void free_all(struct measurements *measurements)
{
	gpu_source_close(measurements->source);
	mps_free(measurements->mps);
	gpu_readings_free(&measurements->readings);
	arena_free(&measurements->texts);
	buffer_free(&measurements->users);
	buffer_free(&measurements->keepers);
	free(measurements);
}

void measurements_free(struct measurements *measurements)
{
	measurements->freed = true;
	if (!measurements->running)
		free_all(measurements);
}

/* In the thread. Whose a process is is read there and then: it is the same measurement. */
static void measurement_take(uv_work_t *work)
{
	struct measurements *measurements = work->data;
	struct gpu_readings *readings = &measurements->readings;
	struct gpu_source *source = measurements->source;

	measurements->good = source->kind->read(
	    source, clock_boot_ms(),
	    (const struct gpu_user *)(const void *)measurements->users.data,
	    measurements->users.size / sizeof(struct gpu_user), readings, &measurements->error);
	for (size_t i = 0; measurements->good && i < readings->process_count; i++)
		readings->processes[i].reservation_id =
		    works_owner(measurements->cgroups, &measurements->keepers,
		                (pid_t)readings->processes[i].pid);
	if (measurements->good && measurements->mps)
		mps_account(measurements->mps, readings);
}

static void measurement_begin(struct measurements *measurements);

static void measurement_tell(struct measurements *measurements)
{
	const struct gpu_readings *readings = &measurements->readings;
	struct measured measured = { .number = measurements->begun,
		                     .gpus = readings->gpus,
		                     .gpu_count = (int64_t)readings->gpu_count,
		                     .processes = readings->processes,
		                     .process_count = (int64_t)readings->process_count };

	if (measurements->good)
		measurements->done(measurements->context, &measured);
	else if (measurements->was_good)
		log_at(LOG_ERROR, "the GPUs cannot be measured",
		       LOG_TEXT("reason", measurements->error.text));
	measurements->was_good = measurements->good;
}

static void taken(uv_work_t *work, int status)
{
	struct measurements *measurements = work->data;

	(void)status;
	measurements->running = false;
	if (measurements->freed) {
		free_all(measurements);
		return;
	}
	measurement_tell(measurements);
	if (measurements->asked > measurements->begun || measurements->again)
		measurement_begin(measurements);
}

static void measurement_begin(struct measurements *measurements)
{
	measurements->begun = measurements->asked;
	measurements->again = false;
	measurements->count++;
	measurements->running = true;
	arena_reset(&measurements->texts);
	buffer_clear(&measurements->users);
	buffer_clear(&measurements->keepers);
	works_users(measurements->works, &measurements->users);
	works_keepers(measurements->works, &measurements->keepers);
	struct gpu_user *users = (struct gpu_user *)(void *)measurements->users.data;
	for (size_t i = 0; i < measurements->users.size / sizeof(*users); i++)
		users[i].uuid = arena_string(&measurements->texts, users[i].uuid);
	uv_queue_work(measurements->loop, &measurements->work, measurement_take, taken);
}

void measurements_ask(struct measurements *measurements, int64_t number)
{
	measurements->asked = max64(measurements->asked, number);
	if (!measurements->running)
		measurement_begin(measurements);
}

int64_t measurements_ask_now(struct measurements *measurements)
{
	if (!measurements->running)
		measurement_begin(measurements);
	else
		measurements->again = true;
	return measurements->count + measurements->again;
}

int64_t measurements_told(const struct measurements *measurements)
{
	return measurements->count;
}
