/* measurement.c - readings of the GPUs, taken in a thread of their own */
#include "agent/workload/measurement.h"

#include <stdlib.h>
#include <string.h>

#include "agent/host/file.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"

/* Whose a process was when it was last measured. */
struct known_owner {
	int64_t pid, reservation_id;
};

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
	struct arena texts;                   /* of the users */
	struct buffer users, keepers, owners; /* struct known_owner */
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
	buffer_free(&measurements->owners);
	free(measurements);
}

void measurements_free(struct measurements *measurements)
{
	measurements->freed = true;
	if (!measurements->running)
		free_all(measurements);
}

/* Whose it was when it was last measured; 0: nobody's, or it was not there. */
static int64_t known_owner(const struct buffer *owners, int64_t pid)
{
	struct known_owner known;

	for (size_t at = 0; at < owners->size; at += sizeof(known)) {
		memcpy(&known, owners->data + at, sizeof(known));
		if (known.pid == pid)
			return known.reservation_id;
	}
	return 0;
}

/* False: it has ended since the driver was read, and nobody knows whose it was. What it leaves
 * behind has no process, and is no stranger's. */
static bool find_owner(const struct measurements *measurements, struct process_reading *process)
{
	process->reservation_id =
	    works_owner(measurements->cgroups, &measurements->keepers, (pid_t)process->pid);
	if (process->reservation_id != 0 || process->pid <= 0 ||
	    process_exists((pid_t)process->pid))
		return true;
	process->reservation_id = known_owner(&measurements->owners, process->pid);
	return process->reservation_id != 0;
}

static void find_owners(struct measurements *measurements)
{
	struct gpu_readings *readings = &measurements->readings;
	size_t kept = 0;

	for (size_t i = 0; i < readings->process_count; i++)
		if (find_owner(measurements, &readings->processes[i]))
			readings->processes[kept++] = readings->processes[i];
	readings->process_count = kept;
	buffer_clear(&measurements->owners);
	for (size_t i = 0; i < kept; i++) {
		const struct process_reading *process = &readings->processes[i];
		struct known_owner known = { process->pid, process->reservation_id };
		if (known.reservation_id != 0)
			buffer_bytes(&measurements->owners, &known, sizeof(known));
	}
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
	if (measurements->good)
		find_owners(measurements);
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
