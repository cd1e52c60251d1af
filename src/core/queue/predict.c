/* predict.c - how long a job will take, learned from those that were like it */
#include "core/queue/predict.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/predict/durations.h"
#include "core/predict/traits.h"

/* Durations are multiplicative: twice as long is as far off as half as long.
 * So what is kept is log2(ms), in 1/1024, and its running mean and deviation,
 * which forget: after the first samples each new one weighs 1/WINDOW. */
#define WINDOW 32
#define SAMPLES_MAX 1000000
#define SAMPLES_ENOUGH 3 /* a narrower kind with fewer is passed over for a wider one */

#define NAME_PREFIX "name:"
#define SIZE_PREFIX "size:"

#define GPU_MIB 65536 /* what a GPU is taken to have, to compare memory with whole GPUs */
#define MAXIMUM_CONFIDENCE 100

enum level { LEVEL_TENANT_NAME, LEVEL_NAME, LEVEL_TENANT_SIZE, LEVEL_SIZE, LEVELS };

static const char *const level_names[LEVELS] = {
	[LEVEL_TENANT_NAME] = "tenant and name",
	[LEVEL_NAME] = "name",
	[LEVEL_TENANT_SIZE] = "tenant and size",
	[LEVEL_SIZE] = "size",
};

struct lesson {
	int64_t id, tenant_id, last_ms;
	int32_t samples, mean, spread;
	char pattern[];
};

/* What a job is known by, at each level. */
struct kinds {
	int64_t tenant_id;
	char name[sizeof(NAME_PREFIX) + PATTERN_BYTES_MAX];
	char size[sizeof(SIZE_PREFIX) + 3];
};

static int64_t memory_share(int64_t memory_mib)
{
	return min64(muldiv_up(max64(memory_mib, 0), WHOLE_GPU, GPU_MIB), WHOLE_GPU);
}

/* Thousandths of GPUs that one task asks for. */
static int64_t task_gpus(const struct job_record *job)
{
	int64_t sum = 0;
	switch ((enum gpu_kind)job->gpu_kind) {
	case GPU_NONE:
		return 0;
	case GPU_WHOLE:
		return (int64_t)job->gpu_count * WHOLE_GPU;
	case GPU_FRACTION:
		return (int64_t)job->gpu_count * job->fraction;
	case GPU_MEMORY:
		return job->gpu_count * memory_share(job->memory_mib);
	case GPU_UNEVEN:
		for (int64_t i = 0; i < job->uneven.count; i++)
			sum += memory_share(job->uneven.at[i]);
		return sum;
	}
	return 0;
}

/* Jobs are of one size if they ask for GPUs in the same power of two, and 0 is none. */
static int job_size(const struct job_record *job)
{
	int64_t gpus = job->split_gpus > 0
	                   ? muldiv_down(job->split_gpus, WHOLE_GPU, 1)
	                   : muldiv_down(max64(task_gpus(job), 0), max64(job->tasks, 1), 1);
	return gpus > 0 ? 64 - __builtin_clzll((uint64_t)gpus) : 0;
}

static void kinds_of(struct kinds *kinds, const struct job_record *job)
{
	int size = job_size(job);
	kinds->tenant_id = job->tenant_id;
	memcpy(kinds->name, NAME_PREFIX, sizeof(NAME_PREFIX));
	pattern_write(kinds->name + strlen(NAME_PREFIX), job->name);
	memcpy(kinds->size, SIZE_PREFIX, sizeof(SIZE_PREFIX));
	char *digits = kinds->size + strlen(SIZE_PREFIX);
	if (size >= 10)
		*digits++ = (char)('0' + size / 10);
	*digits++ = (char)('0' + size % 10);
	*digits = '\0';
}

_Static_assert(LEVELS == LESSON_LEVELS, "a lesson for each level");

static int64_t kind_tenant(const struct kinds *kinds, enum level level)
{
	return level == LEVEL_TENANT_NAME || level == LEVEL_TENANT_SIZE ? kinds->tenant_id : 0;
}

static const char *kind_pattern(const struct kinds *kinds, enum level level)
{
	return level == LEVEL_TENANT_NAME || level == LEVEL_NAME ? kinds->name : kinds->size;
}

/* Positive, as ids are. Two kinds with one id would learn as one, which spoils
 * a guess and nothing else. */
static int64_t lesson_id(int64_t tenant_id, uint64_t pattern_hash)
{
	uint64_t hash = hash_combine(pattern_hash, (uint64_t)tenant_id);
	return (int64_t)(hash >> 1 | 1);
}

static void find_likeness(struct likeness *likeness, const struct job_record *job)
{
	struct kinds kinds;

	if (likeness->lessons[0] != 0)
		return;
	kinds_of(&kinds, job);
	uint64_t name = hash_text(kinds.name), size = hash_text(kinds.size);
	for (enum level level = 0; level < LEVELS; level++)
		likeness->lessons[level] =
		    lesson_id(kind_tenant(&kinds, level),
		              kind_pattern(&kinds, level) == kinds.name ? name : size);
}

static struct lesson *lesson_new(struct predictor *predictor, int64_t tenant_id,
                                 const char *pattern)
{
	size_t size = strlen(pattern) + 1;
	struct lesson *lesson = memory_zero(1, sizeof(*lesson) + size);
	lesson->id = lesson_id(tenant_id, hash_text(pattern));
	lesson->tenant_id = tenant_id;
	memcpy(lesson->pattern, pattern, size);
	map_put(&predictor->lessons, lesson->id, lesson);
	return lesson;
}

static struct lesson_record lesson_row(const struct lesson *lesson)
{
	return (struct lesson_record){
		.id = lesson->id,
		.tenant_id = lesson->tenant_id,
		.pattern = lesson->pattern,
		.samples = lesson->samples,
		.mean = lesson->mean,
		.spread = lesson->spread,
		.last_ms = lesson->last_ms,
	};
}

static int32_t divide_nearest(int32_t a, int32_t b)
{
	return (a < 0 ? a - b / 2 : a + b / 2) / b;
}

static void lesson_add(struct lesson *lesson, int32_t log)
{
	if (lesson->samples == 0)
		lesson->mean = log;
	if (lesson->samples < SAMPLES_MAX)
		lesson->samples++;
	int32_t weight = lesson->samples < WINDOW ? lesson->samples : WINDOW;
	int32_t off = log - lesson->mean;
	lesson->mean += divide_nearest(off, weight);
	lesson->spread += divide_nearest((off < 0 ? -off : off) - lesson->spread, weight);
}

/* The job's lesson of this level; a new one if there is none yet. */
static struct lesson *lesson_of(struct predictor *predictor, const struct job_record *job,
                                const struct likeness *likeness, enum level level)
{
	struct lesson *lesson = map_get(&predictor->lessons, likeness->lessons[level]);
	struct kinds kinds;

	if (lesson)
		return lesson;
	kinds_of(&kinds, job);
	return lesson_new(predictor, kind_tenant(&kinds, level), kind_pattern(&kinds, level));
}

void predict_learn(struct predictor *predictor, const struct job_record *job,
                   struct likeness *likeness, int64_t took_ms, int64_t now_ms,
                   void (*changed)(void *context, const struct lesson_record *lesson),
                   void *context)
{
	int32_t log = log_of(max64(took_ms, 1));

	find_likeness(likeness, job);
	for (enum level level = 0; level < LEVELS; level++) {
		struct lesson *lesson = lesson_of(predictor, job, likeness, level);
		lesson_add(lesson, log);
		lesson->last_ms = now_ms;
		struct lesson_record row = lesson_row(lesson);
		changed(context, &row);
	}
}

/* Half of what it could be at a spread of a factor of 1.4, and at two samples. */
static int64_t lesson_confidence(const struct lesson *lesson)
{
	int64_t samples = lesson->samples;
	return 1000 * LOG_ONE * samples / ((LOG_ONE + 2 * (int64_t)lesson->spread) * (samples + 2));
}

static struct prediction from_lesson(const struct lesson *lesson, const char *basis)
{
	return (struct prediction){
		.expected_ms = power_of(lesson->mean),
		.confidence = lesson_confidence(lesson),
		.samples = lesson->samples,
		.basis = basis,
	};
}

static struct prediction without_lessons(const struct job_record *job)
{
	if (job->max_runtime_ms <= 0)
		return (struct prediction){ .basis = "nothing" };
	return (struct prediction){
		.expected_ms = job->max_runtime_ms,
		.confidence = MAXIMUM_CONFIDENCE,
		.basis = "maximum runtime",
	};
}

/* The narrowest level with enough samples, else the narrowest with any. */
struct prediction predict_job(const struct predictor *predictor, const struct job_record *job,
                              struct likeness *likeness)
{
	struct prediction best = without_lessons(job);
	find_likeness(likeness, job);
	for (enum level level = 0; level < LEVELS && best.samples < SAMPLES_ENOUGH; level++) {
		const struct lesson *lesson =
		    map_get(&predictor->lessons, likeness->lessons[level]);
		if (lesson && (best.samples == 0 || lesson->samples >= SAMPLES_ENOUGH))
			best = from_lesson(lesson, level_names[level]);
	}
	if (job->max_runtime_ms > 0)
		best.expected_ms = min64(best.expected_ms, job->max_runtime_ms);
	return best;
}

bool predict_load(struct predictor *predictor, const struct lesson_record *lesson,
                  struct error *error)
{
	if (lesson->id != lesson_id(lesson->tenant_id, hash_text(lesson->pattern)))
		return error_set(
		    error, ERROR_CORRUPT, "lesson %lld is not of pattern '%s' of tenant %lld",
		    (long long)lesson->id, lesson->pattern, (long long)lesson->tenant_id);
	if (lesson->samples < 1 || lesson->samples > SAMPLES_MAX || lesson->mean < 0 ||
	    lesson->mean > LOG_MAX || lesson->spread < 0 || lesson->spread > LOG_MAX)
		return error_set(
		    error, ERROR_CORRUPT,
		    "lesson %lld has %lld samples of mean %lld and spread %lld, which cannot be",
		    (long long)lesson->id, (long long)lesson->samples, (long long)lesson->mean,
		    (long long)lesson->spread);
	if (map_get(&predictor->lessons, lesson->id))
		return error_set(error, ERROR_CORRUPT, "lesson %lld is there twice",
		                 (long long)lesson->id);

	struct lesson *loaded = lesson_new(predictor, lesson->tenant_id, lesson->pattern);
	loaded->samples = (int32_t)lesson->samples;
	loaded->mean = (int32_t)lesson->mean;
	loaded->spread = (int32_t)lesson->spread;
	loaded->last_ms = lesson->last_ms;
	return true;
}

void predict_free(struct predictor *predictor)
{
	for (size_t i = 0; i < predictor->lessons.capacity; i++)
		free(predictor->lessons.entries[i].value);
	map_free(&predictor->lessons);
}
