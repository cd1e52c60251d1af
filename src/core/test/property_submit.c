/* property_submit.c - random jobs */
#include <stdio.h>
#include <string.h>

#include "core/test/property_generator.h"
#include "core/test/property_random.h"

#define MIB (INT64_C(1) << 20)
#define SECOND_MS 1000

static enum gpu_kind draw_kind(struct generator *generator)
{
	const int *weights = generator->flavour.kinds;
	int64_t sum = 0;

	for (int i = 0; i <= GPU_UNEVEN; i++)
		sum += weights[i];
	int64_t at = between(&generator->random, 0, sum - 1);
	for (int i = 0; i < GPU_UNEVEN; i++) {
		at -= weights[i];
		if (at < 0)
			return (enum gpu_kind)i;
	}
	return GPU_UNEVEN;
}

/* Mostly small parts of a GPU, sometimes all of it, seldom more than there is. */
static int64_t draw_memory(struct generator *generator)
{
	uint64_t *random = &generator->random;
	int64_t capacity = generator->world.hardware.capacity_mib[chance(random, 80) ? 0 : 1];
	int64_t percent = chance(random, 70) ? between(random, 3, 40) : between(random, 40, 103);

	return max64(capacity * percent / 100, 1);
}

static void draw_gpus(struct generator *generator, struct template *template)
{
	static const int32_t fractions[] = { 100, 125, 200, 250, 333, 500, 500, 750, 900, 1000 };
	uint64_t *random = &generator->random;
	struct job_record *job = &template->job;
	int64_t most = chance(random, 60) ? 1 : generator->flavour.parts;

	job->gpu_kind = (int32_t)draw_kind(generator);
	if (job->gpu_kind == GPU_NONE)
		return;
	job->gpu_count = (int32_t)between(random, 1, most);
	if (job->gpu_kind == GPU_WHOLE && chance(random, 30))
		job->memory_mib = draw_memory(generator);
	if (job->gpu_kind == GPU_MEMORY)
		job->memory_mib = draw_memory(generator);
	if (job->gpu_kind == GPU_FRACTION)
		job->fraction = ONE_OF(random, fractions);
	for (int i = 0; i < job->gpu_count && job->gpu_kind == GPU_UNEVEN; i++)
		template->uneven[i] = draw_memory(generator);
	if (job->gpu_kind != GPU_WHOLE && job->gpu_count == 1 && chance(random, 35))
		job->compute = (int32_t)(chance(random, 80) ? 50 * between(random, 1, 14)
		                                            : between(random, 1, WHOLE_GPU));
}

static void draw_tasks(struct generator *generator, struct job_record *job)
{
	const struct flavour *flavour = &generator->flavour;
	uint64_t *random = &generator->random;

	job->tasks = job->min_available = 1;
	if (job->gpu_kind == GPU_WHOLE && chance(random, flavour->split)) {
		job->split_gpus = between(random, 1, 4 * flavour->parts);
		return;
	}
	if (chance(random, flavour->gangs))
		job->tasks = job->min_available = between(random, 2, flavour->gang_tasks);
	if (chance(random, flavour->elastic)) {
		job->tasks = between(random, 2, flavour->gang_tasks);
		job->min_available = between(random, 1, job->tasks);
	}
}

static void draw_constraints(struct generator *generator, struct job_record *job)
{
	static const char *const labels[] = { "", "disk=ssd", "disk=ssd\nnet=fast", "gone=yes" };
	uint64_t *random = &generator->random;

	job->gpu_models = job->node_labels = "";
	if (!chance(random, generator->flavour.constrained))
		return;
	if (chance(random, 40))
		job->gpu_models = generator->world.hardware.models[between(random, 0, 1)];
	if (chance(random, 5))
		job->gpu_models = "no such model";
	job->node_labels = ONE_OF(random, labels);
	job->closeness = (int32_t)between(random, CLOSE_ANY, CLOSE_RACK);
	job->closeness_required = chance(random, 50);
}

static void draw_template(struct generator *generator, struct template *template)
{
	uint64_t *random = &generator->random;
	struct job_record *job = &template->job;

	*template = (struct template){ .job = { .name = "" } };
	draw_gpus(generator, template);
	draw_tasks(generator, job);
	draw_constraints(generator, job);
	job->cpu_milli = chance(random, 50) ? 0 : 250 * between(random, 0, 32);
	if (job->gpu_kind == GPU_NONE && !rarely(random, 20))
		job->cpu_milli = 1000 * between(random, 1, 16);
	job->host_bytes = chance(random, 50) ? 0 : MIB * between(random, 1, 32768);
	job->preemptible = chance(random, generator->flavour.preemptible);
	job->movable = chance(random, generator->flavour.movable);
	job->suspend = (int32_t)between(random, 0, 2);
	job->program = between(random, 0, 5);
	job->lease_loss = chance(random, 40) ? LEASE_STOP : LEASE_KEEP;
	job->payload = job->idempotency_key = "";
}

void generator_draw_templates(struct generator *generator)
{
	for (int i = 0; i < TEMPLATES; i++)
		draw_template(generator, &generator->flavour.templates[i]);
}

static const char *numbered(struct generator *generator, const char *word, int64_t number)
{
	char text[64];

	snprintf(text, sizeof(text), "%s-%lld", word, (long long)number);
	return arena_string(&generator->arena, text);
}

static void draw_times(struct generator *generator, struct job_record *job)
{
	uint64_t *random = &generator->random;

	if (chance(random, 10))
		job->max_runtime_ms = between(random, 1, 7200) * SECOND_MS;
	if (chance(random, 20))
		job->estimate_ms = between(random, 1, 7200) * SECOND_MS;
	if (rarely(random, 20))
		job->begin_ms = generator->now_ms + between(random, -60, 600) * SECOND_MS;
	if (chance(random, 10))
		job->deadline_ms = generator->now_ms + between(random, 1, 7200) * SECOND_MS;
}

/* On a few jobs of the same tenant, and now and then on one that is not. */
static void draw_depends(struct generator *generator, struct job_record *job)
{
	uint64_t *random = &generator->random;
	size_t jobs = keeper_job_count(generator->keeper);
	int64_t *rows = arena_alloc(&generator->arena, 6 * sizeof(*rows));
	int64_t count = 0;

	for (int tries = 0; jobs > 0 && tries < 12 && count < 3; tries++) {
		const struct job_record *other =
		    keeper_job(generator->keeper, random_below(random, jobs));
		if (other->tenant_id != job->tenant_id && !rarely(random, 5))
			continue;
		rows[2 * count] = other->id;
		rows[2 * count++ + 1] = chance(random, 50) ? AFTER_SUCCESS : AFTER_ANY;
	}
	job->depends = (struct rows){ rows, count };
	if (count > 0 && rarely(random, 3)) {
		int64_t *array = arena_alloc(&generator->arena, 3 * sizeof(*array));
		array[0] = rows[0];
		array[1] = rows[1];
		array[2] = 0;
		job->depends_arrays = (struct rows){ array, 1 };
	}
}

static void draw_array(struct generator *generator, struct submit_command *submit)
{
	uint64_t *random = &generator->random;

	submit->array_from = between(random, 0, 2);
	submit->array_to = submit->array_from + between(random, 1, 10);
	if (rarely(random, 4)) {
		int64_t *indices = arena_alloc(&generator->arena, 3 * sizeof(*indices));
		indices[0] = submit->array_from;
		indices[1] = submit->array_to;
		indices[2] = submit->array_to = submit->array_to + 5;
		submit->array_indices = (struct rows){ indices, 3 };
	}
	submit->job.array_limit = chance(random, 60) ? between(random, 1, 4) : 0;
}

static const char *long_name(struct generator *generator)
{
	char name[300];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	return arena_string(&generator->arena, name);
}

/* Something that must be refused, or nearly. */
static void spoil(struct generator *generator, struct submit_command *submit)
{
	struct job_record *job = &submit->job;

	switch (between(&generator->random, 0, 9)) {
	case 0:
		job->tenant_id = 999999;
		break;
	case 1:
		job->gpu_count = (int32_t)between(&generator->random, -1, PARTS_MAX + 1);
		break;
	case 2:
		job->memory_mib = -1;
		break;
	case 3:
		job->cpu_milli = -1;
		break;
	case 4:
		job->min_available = job->tasks + 1;
		break;
	case 5:
		job->deadline_ms = 1;
		break;
	case 6:
		job->name = long_name(generator);
		break;
	case 7:
		job->gpu_kind = 17;
		break;
	case 8:
		submit->array_to = submit->array_from + 100000;
		break;
	default:
		job->priority = INT64_MAX;
		break;
	}
}

static struct job_record draw_job(struct generator *generator)
{
	uint64_t *random = &generator->random;
	struct template *template = arena_alloc(&generator->arena, sizeof(*template));

	*template = generator->flavour.templates[between(random, 0, TEMPLATES - 1)];
	if (chance(random, 10))
		draw_template(generator, template);
	if (template->job.gpu_kind == GPU_UNEVEN)
		template->job.uneven = (struct rows){ template->uneven, template->job.gpu_count };
	return template->job;
}

bool generate_submit(struct generator *generator, struct command *command)
{
	static const char *const names[] = { "train", "eval", "sweep", "notebook" };
	uint64_t *random = &generator->random;
	struct submit_command *submit = &command->submit;
	size_t tenants = keeper_tenant_count(generator->keeper);

	if (tenants == 0)
		return false;
	command->kind = COMMAND_SUBMIT;
	*submit = (struct submit_command){ .job = draw_job(generator) };
	submit->job.tenant_id = keeper_tenant(generator->keeper, random_below(random, tenants))->id;
	submit->job.name = numbered(generator, ONE_OF(random, names), ++generator->number);
	submit->job.priority = 100 * between(random, 0, 9);
	if (chance(random, 10))
		submit->job.idempotency_key = numbered(generator, "key", between(random, 0, 60));
	draw_times(generator, &submit->job);
	if (chance(random, generator->flavour.dependent))
		draw_depends(generator, &submit->job);
	if (chance(random, generator->flavour.arrays))
		draw_array(generator, submit);
	size_t windows = keeper_window_count(generator->keeper);
	if (windows > 0 && chance(random, 20))
		submit->job.window =
		    keeper_window(generator->keeper, random_below(random, windows))->name;
	submit->hold = chance(random, 4);
	submit->check_possible = chance(random, 85);
	if (chance(random, 3))
		spoil(generator, submit);
	return true;
}
