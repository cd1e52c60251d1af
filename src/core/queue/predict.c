/* predict.c - how long a job will take, learned from those that were like it */
#include "core/queue/predict.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Durations are multiplicative: twice as long is as far off as half as long.
 * So what is kept is log2(ms), in 1/1024, and its running mean and deviation,
 * which forget: after the first samples each new one weighs 1/WINDOW. */
#define LOG_BITS 10
#define LOG_ONE (1 << LOG_BITS)
#define LOG_MAX (63 * LOG_ONE)
#define WINDOW 32
#define SAMPLES_MAX 1000000
#define SAMPLES_ENOUGH 3 /* a narrower kind with fewer is passed over for a wider one */

#define NAME_MAX_BYTES 128
#define NAME_PREFIX "name:"
#define SIZE_PREFIX "size:"
#define HASH_MIN_BYTES 8 /* shorter runs of hexadecimal digits are words or numbers */
#define UUID_BYTES 36

#define GPU_MIB 65536 /* what a GPU is taken to have, to compare memory with whole GPUs */
#define MAXIMUM_CONFIDENCE 100

enum level { TENANT_NAME, NAME, TENANT_SIZE, SIZE, LEVELS };

static const char *const level_names[LEVELS] = {
	[TENANT_NAME] = "tenant and name",
	[NAME] = "name",
	[TENANT_SIZE] = "tenant and size",
	[SIZE] = "size",
};

struct lesson {
	int64_t id, tenant_id, last_ms;
	int32_t samples, mean, spread;
	char pattern[];
};

/* What a job is known by, at each level. */
struct kinds {
	int64_t tenant_id;
	char name[sizeof(NAME_PREFIX) + NAME_MAX_BYTES];
	char size[sizeof(SIZE_PREFIX) + 3];
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}
static char lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}
static bool is_hex(char c)
{
	return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'f');
}

/* How many bytes of `name` count: no more than fit, and no half characters. */
static size_t name_size(const char *name)
{
	size_t size = strnlen(name, NAME_MAX_BYTES + 1);
	if (size <= NAME_MAX_BYTES)
		return size;
	size = NAME_MAX_BYTES;
	while (size > 0 && ((unsigned char)name[size] & 0xc0) == 0x80)
		size--;
	return size;
}

static size_t run_of(bool (*is)(char c), const char *text, const char *end)
{
	const char *at = text;
	while (at < end && is(*at))
		at++;
	return (size_t)(at - text);
}

static bool is_uuid(const char *text, const char *end)
{
	if (end - text < UUID_BYTES)
		return false;
	for (int i = 0; i < UUID_BYTES; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (dash ? text[i] != '-' : !is_hex(text[i]))
			return false;
	}
	return true;
}

/* Whether a run of hexadecimal digits is a hash: long, with a digit, and not
 * just a word with a number behind it, such as 'decade2024'. */
static bool is_hash(const char *text, size_t size)
{
	const char *end = text + size;
	const char *at = text;
	while (at < end && !is_digit(*at))
		at++;
	size_t digits = run_of(is_digit, at, end);
	return size >= HASH_MIN_BYTES && digits > 0 && (digits == size || at + digits < end);
}

/* How many bytes at `text` are a number, a hash or the like; 0: none. */
static size_t variable_size(const char *text, const char *end)
{
	if (is_uuid(text, end))
		return UUID_BYTES;
	size_t size = run_of(is_hex, text, end);
	return is_hash(text, size) ? size : run_of(is_digit, text, end);
}

/* Writes the pattern of `name` and a NUL to `out`, which is never longer than
 * the name; returns its size. */
static size_t write_pattern(char *out, const char *name)
{
	const char *end = name + name_size(name);
	char *to = out;
	while (name < end) {
		size_t size = variable_size(name, end);
		*to++ = size > 0 ? '#' : lower(*name);
		name += size > 0 ? size : 1;
	}
	*to = '\0';
	return (size_t)(to - out);
}

void predict_pattern(struct buffer *buffer, const char *name)
{
	char pattern[NAME_MAX_BYTES + 1];
	write_pattern(pattern, name);
	buffer_text(buffer, pattern);
}

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
	write_pattern(kinds->name + strlen(NAME_PREFIX), job->name);
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
	return level == TENANT_NAME || level == TENANT_SIZE ? kinds->tenant_id : 0;
}

static const char *kind_pattern(const struct kinds *kinds, enum level level)
{
	return level == TENANT_NAME || level == NAME ? kinds->name : kinds->size;
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

/* log2(value) in 1/LOG_ONE, to the nearest; value > 0. Each squaring of a
 * number between 1 and 2 yields the next binary digit of its logarithm. */
static int32_t log_of(int64_t value)
{
	int whole = 63 - __builtin_clzll((uint64_t)value);
	uint64_t x = (uint64_t)value << (63 - whole);
	int32_t log = whole;
	for (int i = 0; i <= LOG_BITS; i++) {
		x = (uint64_t)((uint128)x * x >> 64);
		bool digit = x >> 63;
		if (!digit)
			x <<= 1;
		log = 2 * log + digit;
	}
	return (log + 1) / 2;
}

/* 2^(1/2), 2^(1/4), ... in 1/2^63. */
static const uint64_t roots[LOG_BITS] = {
	0xb504f333f9de6484U, 0x9837f0518db8a96fU, 0x8b95c1e3ea8bd6e7U, 0x85aac367cc487b15U,
	0x82cd8698ac2ba1d7U, 0x8164d1f3bc030773U, 0x80b1ed4fd999ab6cU, 0x8058d7d2d5e5f6b1U,
	0x802c6436d0e04f51U, 0x8016302f17467628U,
};

/* 2^(log/LOG_ONE), to the nearest; log >= 0. Saturates at INT64_MAX. */
static int64_t power_of(int32_t log)
{
	uint64_t x = UINT64_C(1) << 63;
	if (log >= LOG_MAX)
		return INT64_MAX;
	for (int i = 0; i < LOG_BITS; i++)
		if (log >> (LOG_BITS - 1 - i) & 1)
			x = (uint64_t)((uint128)x * roots[i] >> 63);
	return (int64_t)(((x >> (62 - log / LOG_ONE)) + 1) / 2);
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
