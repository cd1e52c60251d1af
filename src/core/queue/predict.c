/* predict.c - how long a job will take, learned from those that were like it */
#include "core/queue/predict.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/state.h"

#define GPU_MIB 65536 /* what a GPU is taken to have, to compare memory with whole GPUs */
#define MAXIMUM_CONFIDENCE 100
#define CONFIDENCE_LEAST 100 /* below, nothing is said */
#define SAMPLES_DOUBT 1      /* samples that are worth half of many */
#define P90 (CHANCE_ONE * 9 / 10)

/* A guess and how many jobs that are not over share it. */
struct kept_guess {
	int64_t jobs;
	int64_t p50_ms, p90_ms;
	struct guess *guess;
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

static int64_t job_size(const struct job_record *job)
{
	return job->split_gpus > 0 ? muldiv_down(job->split_gpus, WHOLE_GPU, 1)
	                           : muldiv_down(max64(task_gpus(job), 0), max64(job->tasks, 1), 1);
}

struct traits predict_traits(const struct job_record *job)
{
	uint64_t tenant = hash_number((uint64_t)job->tenant_id) | 1;
	struct traits traits = {
		.user = job->user && *job->user ? hash_combine(tenant, hash_text(job->user)) | 1
		                                : tenant,
		.tenant = tenant,
		.size = job_size(job),
		.limit_ms = max64(job->max_runtime_ms, 0),
	};

	traits_set_name(&traits, job->name);
	return traits;
}

void predictor_init(struct predictor *predictor)
{
	*predictor = (struct predictor){ 0 };
	mixture_init(&predictor->mixture, EXPERTS_MIN);
}

static void kept_guess_free(struct kept_guess *kept)
{
	if (kept)
		free(kept->guess);
	free(kept);
}

void predictor_free(struct predictor *predictor)
{
	mixture_free(&predictor->mixture);
	for (size_t i = 0; i < predictor->guesses.capacity; i++)
		kept_guess_free(predictor->guesses.entries[i].value);
	map_free(&predictor->guesses);
}

static struct prediction prediction_without_experience(const struct job_record *job)
{
	if (job->max_runtime_ms <= 0)
		return (struct prediction){ .basis = "nothing" };
	return (struct prediction){
		.expected_ms = job->max_runtime_ms,
		.p90_ms = job->max_runtime_ms,
		.confidence = MAXIMUM_CONFIDENCE,
		.basis = "maximum runtime",
	};
}

/* The chance to be right within a factor of two, less where few were seen. */
static int64_t foresight_confidence(const struct foresight *foresight, int64_t expected_ms)
{
	int64_t twice = lifetime_within_twice(&foresight->lifetime, expected_ms);

	return 1000 * twice / CHANCE_ONE * foresight->samples /
	       (foresight->samples + SAMPLES_DOUBT);
}

static struct prediction prediction_from(const struct foresight *foresight,
                                         const struct job_record *job)
{
	int64_t expected_ms = lifetime_duration(&foresight->lifetime, 0, CHANCE_ONE / 2);
	struct prediction prediction = {
		.expected_ms = max64(expected_ms, 1),
		.p90_ms = max64(lifetime_duration(&foresight->lifetime, 0, P90), 1),
		.confidence = foresight_confidence(foresight, expected_ms),
		.samples = foresight->samples,
		.basis = foresight->basis,
	};

	return foresight->samples > 0 && prediction.confidence >= CONFIDENCE_LEAST
	           ? prediction
	           : prediction_without_experience(job);
}

static void foresee_job(const struct sched *sched, const struct job *job,
                        struct foresight *foresight)
{
	mixture_foresee(&sched->predictor.mixture, &job->traits, sched_now(sched), foresight);
}

struct prediction predict_job(const struct sched *sched, const struct job *job)
{
	struct foresight foresight;

	foresee_job(sched, job, &foresight);
	return prediction_from(&foresight, &job->r);
}

struct lifetime predict_lifetime(const struct sched *sched, const struct job *job)
{
	struct foresight foresight;

	foresee_job(sched, job, &foresight);
	return foresight.lifetime;
}

static void expect_of(struct job *job, const struct prediction *prediction)
{
	job->s.expected_ms = prediction->expected_ms;
	job->s.expected_p90_ms = prediction->p90_ms;
	job->s.confidence = prediction->confidence;
}

static int64_t guess_id(const struct job_record *job)
{
	return job->array_id > 0 ? job->array_id : job->id;
}

static void put_guess(struct sched *sched, int64_t id, const struct kept_guess *kept)
{
	const struct guess *guess = kept->guess;
	char levels[VOICES * GUESS_BINS + 1], *to = levels;
	int64_t voices[VOICES * GUESS_WIDTH];

	for (int i = 0; i < guess->count; i++) {
		const struct guess_voice *voice = &guess->voices[i];
		int64_t *row = voices + (size_t)i * GUESS_WIDTH;
		row[0] = voice->voice;
		row[1] = voice->context;
		row[2] = voice->weight;
		for (int bin = 0; bin < GUESS_BINS; bin++)
			*to++ = (char)('0' + voice->levels[bin]);
	}
	*to = '\0';
	effects_put(sched->effects, RECORD_GUESS,
	            &(struct guess_record){ .id = id,
	                                    .p50_ms = kept->p50_ms,
	                                    .p90_ms = kept->p90_ms,
	                                    .levels = levels,
	                                    .voices = { voices, guess->count } });
}

/* What is expected of an element of an array, like that of the first: nothing has
 * happened since. */
void predict_submitted(struct sched *sched, struct job *job, bool shared)
{
	int64_t id = guess_id(&job->r);
	struct kept_guess *kept = map_get(&sched->predictor.guesses, id);
	const struct job *first = map_get(&sched->jobs, id);
	struct foresight foresight;

	if (shared && kept && first) {
		job->s.expected_ms = first->s.expected_ms;
		job->s.expected_p90_ms = first->s.expected_p90_ms;
		job->s.confidence = first->s.confidence;
		kept->jobs++;
		return;
	}
	foresee_job(sched, job, &foresight);
	struct prediction prediction = prediction_from(&foresight, &job->r);
	expect_of(job, &prediction);
	INVARIANT(!kept);
	kept = NEW(struct kept_guess);
	kept->jobs = 1;
	kept->p50_ms = prediction.expected_ms;
	kept->p90_ms = prediction.p90_ms;
	kept->guess = foresight_guess(&foresight);
	map_put(&sched->predictor.guesses, id, kept);
	put_guess(sched, id, kept);
}

void predict_started(struct sched *sched, struct job *job)
{
	INVARIANT(job->s.started_ms > 0);
	struct prediction prediction = predict_job(sched, job);

	expect_of(job, &prediction);
	crowd_enter(&sched->predictor.mixture.crowd, &job->traits, job->s.started_ms);
}

void predict_stopped(struct sched *sched, const struct job *job)
{
	INVARIANT(job->s.started_ms > 0);
	crowd_leave(&sched->predictor.mixture.crowd, &job->traits, job->s.started_ms);
}

static void put_expert(struct sched *sched, const struct expert *expert)
{
	int64_t bins[DURATION_BINS * EXPERT_BIN_WIDTH], offsets[VOICES * EXPERT_OFFSET_WIDTH];
	const uint32_t *fast = expert->histograms[PACE_FAST].bins;
	const uint32_t *slow = expert->histograms[PACE_SLOW].bins;
	struct expert_record record = {
		.id = expert->id,
		.kind = (int64_t)expert->kind,
		.samples = expert->samples,
		.used = expert->used,
		.bins.at = bins,
		.offsets.at = offsets,
	};

	for (int bin = 0; bin < DURATION_BINS; bin++) {
		if (fast[bin] == 0 && slow[bin] == 0)
			continue;
		int64_t *row = bins + record.bins.count++ * EXPERT_BIN_WIDTH;
		row[0] = bin;
		row[1] = fast[bin];
		row[2] = slow[bin];
	}
	for (int voice = 0; expert->offsets && voice < VOICES; voice++) {
		if (expert->offsets[voice] == 0)
			continue;
		int64_t *row = offsets + record.offsets.count++ * EXPERT_OFFSET_WIDTH;
		row[0] = voice;
		row[1] = expert->offsets[voice];
	}
	effects_put(sched->effects, RECORD_EXPERT, &record);
}

static void put_mixture(struct sched *sched)
{
	const struct mixture *mixture = &sched->predictor.mixture;
	int64_t logits[VOICES * CONTEXTS * MIXTURE_WIDTH];
	struct mixture_record record = { .id = 1,
		                         .learned = mixture->learned,
		                         .logits.at = logits };

	for (int voice = 0; voice < VOICES; voice++)
		for (int context = 0; context < CONTEXTS; context++) {
			if (mixture->logits[voice][context] == logit_initial(voice))
				continue;
			int64_t *row = logits + record.logits.count++ * MIXTURE_WIDTH;
			row[0] = voice;
			row[1] = context;
			row[2] = mixture->logits[voice][context];
		}
	effects_put(sched->effects, RECORD_MIXTURE, &record);
}

/* Deletes first: an expert may have made room and then been needed again. */
static void learn_from(struct sched *sched, const struct job *job, const struct guess *guess)
{
	struct mixture *mixture = &sched->predictor.mixture;
	struct learned learned;

	mixture->experts.capacity = max64(sched->config.predict_experts, EXPERTS_MIN);
	mixture_learn(mixture, &job->traits, guess, sched_now(sched) - job->s.started_ms, &learned);
	for (int i = 0; i < learned.evicted_count; i++)
		effects_delete(sched->effects, RECORD_EXPERT, learned.evicted[i], 0);
	for (int i = 0; i < learned.count; i++)
		put_expert(sched, learned.experts[i]);
	put_mixture(sched);
}

void predict_ended(struct sched *sched, const struct job *job)
{
	int64_t id = guess_id(&job->r);
	struct kept_guess *kept = map_get(&sched->predictor.guesses, id);

	if (job->s.started_ms > 0 && sched_now(sched) > job->s.started_ms)
		learn_from(sched, job, kept ? kept->guess : NULL);
	if (job->s.started_ms > 0)
		predict_stopped(sched, job);
	if (kept && --kept->jobs == 0) {
		map_remove(&sched->predictor.guesses, id);
		kept_guess_free(kept);
		effects_delete(sched->effects, RECORD_GUESS, id, 0);
	}
}

static bool predict_is_within(int64_t number, int64_t least, int64_t most)
{
	return number >= least && number <= most;
}

static bool refuse_expert(int64_t id, const char *why, struct error *error)
{
	return error_set(error, ERROR_CORRUPT, "expert %lld is stored %s", (long long)id, why);
}

static bool load_bins(struct expert *expert, struct rows bins)
{
	for (int64_t i = 0; i < bins.count; i++) {
		const int64_t *row = bins.at + i * EXPERT_BIN_WIDTH;
		int64_t after = i > 0 ? row[-EXPERT_BIN_WIDTH] : -1;
		if (!predict_is_within(row[0], after + 1, DURATION_BINS - 1))
			return false;
		for (int pace = 0; pace < PACES; pace++) {
			struct histogram *histogram = &expert->histograms[pace];
			if (!predict_is_within(row[1 + pace], 0, HISTOGRAM_MAX - histogram->total))
				return false;
			histogram->bins[row[0]] = (uint32_t)row[1 + pace];
			histogram->total += (uint32_t)row[1 + pace];
		}
	}
	return true;
}

static bool load_offsets(struct expert *expert, struct rows offsets)
{
	for (int64_t i = 0; i < offsets.count; i++) {
		const int64_t *row = offsets.at + i * EXPERT_OFFSET_WIDTH;
		if (!expert->offsets || !predict_is_within(row[0], 0, VOICES - 1) ||
		    !predict_is_within(row[1], -LOGIT_MAX, LOGIT_MAX))
			return false;
		expert->offsets[row[0]] = (int32_t)row[1];
	}
	return true;
}

bool predict_load_expert(struct predictor *predictor, const struct expert_record *record,
                         struct error *error)
{
	struct experts *experts = &predictor->mixture.experts;

	if (record->id < 1 || experts_find(experts, record->id))
		return refuse_expert(record->id, "twice, or under an id that it cannot have",
		                     error);
	if (!predict_is_within(record->kind, 0, EXPERT_KINDS - 1) ||
	    !predict_is_within(record->samples, 1, SAMPLES_MAX) ||
	    !predict_is_within(record->used, 1, INT64_MAX / 4))
		return refuse_expert(record->id, "with a number that cannot be", error);
	struct expert *expert = experts_add(experts, record->id, (enum expert_kind)record->kind);
	expert->samples = record->samples;
	expert->used = record->used;
	return (load_bins(expert, record->bins) && load_offsets(expert, record->offsets)) ||
	       refuse_expert(record->id, "with rows that cannot be", error);
}

bool predict_load_mixture(struct predictor *predictor, const struct mixture_record *record,
                          struct error *error)
{
	struct mixture *mixture = &predictor->mixture;
	bool fine = record->id == 1 && predict_is_within(record->learned, 1, INT64_MAX / 4);

	mixture->learned = record->learned;
	for (int64_t i = 0; fine && i < record->logits.count; i++) {
		const int64_t *row = record->logits.at + i * MIXTURE_WIDTH;
		fine = predict_is_within(row[0], 0, VOICES - 1) &&
		       predict_is_within(row[1], 0, CONTEXTS - 1) &&
		       predict_is_within(row[2], -LOGIT_MAX, LOGIT_MAX);
		if (fine)
			mixture->logits[row[0]][row[1]] = (int32_t)row[2];
	}
	return fine || error_set(error, ERROR_CORRUPT,
	                         "how far experts are believed is stored with numbers that "
	                         "cannot be");
}

static bool load_voice(struct guess_voice *voice, const int64_t *row, const char *levels)
{
	if (!predict_is_within(row[0], 0, VOICES - 1) ||
	    !predict_is_within(row[1], 0, CONTEXTS - 1) ||
	    !predict_is_within(row[2], 0, UINT16_MAX))
		return false;
	voice->voice = (uint8_t)row[0];
	voice->context = (uint8_t)row[1];
	voice->weight = (uint16_t)row[2];
	for (int bin = 0; bin < GUESS_BINS; bin++) {
		if (!predict_is_within(levels[bin], '0', '0' + GUESS_LEVELS - 1))
			return false;
		voice->levels[bin] = (uint8_t)(levels[bin] - '0');
	}
	return true;
}

bool predict_load_guess(struct predictor *predictor, const struct guess_record *record,
                        struct error *error)
{
	int64_t count = record->voices.count;
	bool fine = record->id > 0 && !map_get(&predictor->guesses, record->id) &&
	            count <= VOICES && record->p50_ms >= 0 && record->p90_ms >= 0 &&
	            strlen(record->levels) == (size_t)count * GUESS_BINS;

	if (fine) {
		struct kept_guess *kept = NEW(struct kept_guess);
		kept->p50_ms = record->p50_ms;
		kept->p90_ms = record->p90_ms;
		kept->guess = memory_alloc(guess_size((int)count));
		kept->guess->count = (int)count;
		map_put(&predictor->guesses, record->id, kept);
		for (int64_t i = 0; fine && i < count; i++)
			fine =
			    load_voice(&kept->guess->voices[i], record->voices.at + i * GUESS_WIDTH,
			               record->levels + i * GUESS_BINS);
	}
	return fine || error_set(error, ERROR_CORRUPT,
	                         "what was expected of job %lld is stored twice, or cannot be read",
	                         (long long)record->id);
}

/* All of this adds up, so the order of the map does not matter. A guess whose job
 * was taken out of a damaged store is of no use and does no harm. */
bool predict_loaded(struct sched *sched, struct error *error)
{
	struct predictor *predictor = &sched->predictor;

	experts_sort(&predictor->mixture.experts);
	if (predictor->mixture.experts.newest &&
	    predictor->mixture.experts.newest->used > predictor->mixture.learned)
		return error_set(error, ERROR_CORRUPT,
		                 "an expert has learned from job %lld of %lld",
		                 (long long)predictor->mixture.experts.newest->used,
		                 (long long)predictor->mixture.learned);
	for (size_t i = 0; i < sched->jobs.capacity; i++) {
		const struct job *job = sched->jobs.entries[i].value;
		if (!job || job_state_is_final((enum job_state)job->s.state))
			continue;
		struct kept_guess *kept = map_get(&predictor->guesses, guess_id(&job->r));
		if (kept)
			kept->jobs++;
		if (job->s.started_ms > 0)
			crowd_enter(&predictor->mixture.crowd, &job->traits, job->s.started_ms);
	}
	return true;
}

void predict_move(struct predictor *to, struct predictor *from)
{
	predictor_free(to);
	*to = *from;
	predictor_init(from);
	crowd_free(&to->mixture.crowd);
	for (size_t i = 0; i < to->guesses.capacity; i++) {
		struct kept_guess *kept = to->guesses.entries[i].value;
		if (kept)
			kept->jobs = 0;
	}
}
