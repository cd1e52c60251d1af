/* predict.c - how long jobs will take, learned from those that ended */
#include "core/queue/predict.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/predict/guess_text.h"
#include "core/state.h"

#define GPU_MIB 65536 /* what a GPU is taken to have, to compare memory with whole GPUs */
#define LIMIT_CONFIDENCE 100
#define CONFIDENCE_LEAST 100 /* below, nothing is said */
#define SAMPLES_ENOUGH 3     /* below, nobody waits for a job to end */
#define SAMPLES_DOUBT 1      /* samples that are worth half of many */
#define P90 (CHANCE_ONE * 9 / 10)
#define DELETED_EACH 3 /* old outcomes that go with each new one */
#define FRESH_MS 60000 /* what was expected at submission holds for a start this soon after it */

struct kept_guess {
	int64_t id, key;
	int64_t after; /* the last outcome by then */
	int64_t jobs;  /* not over */
	struct prediction prediction;
	struct guess *guess;
	struct order *order; /* made when first needed */
};

/* Where a job belongs in the order of service, by how long it has run. */
struct order {
	int64_t indices[DURATION_BINS + 1]; /* at no age, and from each bin's begin on; 0: not known
	                                     */
};

const char *basis_name(int32_t basis)
{
	if (basis >= 0 && basis < EXPERT_KINDS)
		return expert_kind_name((enum expert_kind)basis);
	return basis == BASIS_LIMIT ? "maximum runtime" : "nothing";
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

/* Found when they are first needed: reading the name takes longer than all the rest. */
static const struct traits *traits_of(struct job *job)
{
	if (job->traits.tenant == 0)
		job->traits = predict_traits(&job->r);
	return &job->traits;
}

void predictor_init(struct predictor *predictor)
{
	*predictor = (struct predictor){ .segment_from = 1, .needed_from = 1, .stored_from = 1 };
	learner_init(&predictor->learner);
	for (int basis = 0; basis < BASES; basis++)
		predictor->accuracies[basis].id = basis + 1;
}

static void kept_free(struct kept_guess *kept)
{
	if (kept) {
		free(kept->guess);
		free(kept->order);
	}
	free(kept);
}

/* Outcomes as they are loaded, in any order. */
struct outcomes {
	struct {
		int64_t id, segment, experts;
		bool closes; /* it was the last of its segment */
		struct experience experience;
	} * at;
	size_t count, capacity;
};

static void outcomes_free(struct predictor *predictor)
{
	if (predictor->loaded)
		free(predictor->loaded->at);
	free(predictor->loaded);
	predictor->loaded = NULL;
}

void predictor_free(struct predictor *predictor)
{
	learner_free(&predictor->learner);
	crowd_free(&predictor->crowd);
	for (size_t i = 0; i < predictor->guesses.capacity; i++)
		kept_free(predictor->guesses.entries[i].value);
	map_free(&predictor->guesses);
	map_free(&predictor->by_key);
	outcomes_free(predictor);
}

static bool predict_is_on(const struct sched *sched)
{
	return sched->config.predict_jobs > 0;
}

static int64_t experts_most(const struct sched *sched)
{
	return max64(sched->config.predict_experts, EXPERTS_MIN);
}

int64_t predict_age(const struct job *job, int64_t now_ms)
{
	int64_t ran_ms = job_run_ms(job, now_ms);

	return job->r.movable ? ran_ms + job->s.served_ms : ran_ms;
}

/* Without any experience, the maximum runtime is all that is known. */
static struct prediction prediction_by_limit(const struct job *job)
{
	int64_t limit_ms = job->r.max_runtime_ms;

	if (limit_ms <= 0)
		return (struct prediction){ .basis = BASIS_NOTHING };
	return (struct prediction){ .expected_ms = limit_ms,
		                    .p90_ms = limit_ms,
		                    .confidence = LIMIT_CONFIDENCE,
		                    .basis = BASIS_LIMIT };
}

/* The chance to be right within a factor of two, less where few were seen. */
static int64_t confidence_of(const struct foresight *foresight, int64_t expected_ms)
{
	int64_t twice = lifetime_within_twice(&foresight->lifetime, expected_ms);

	return 1000 * twice / CHANCE_ONE * foresight->samples /
	       (foresight->samples + SAMPLES_DOUBT);
}

/* What it is still to take when it has run for `age_ms`. */
static struct prediction prediction_from(const struct foresight *foresight, const struct job *job,
                                         int64_t age_ms)
{
	const struct lifetime *lifetime = &foresight->lifetime;
	int64_t expected_ms = lifetime_duration(lifetime, age_ms, CHANCE_ONE / 2);
	struct prediction prediction = {
		.expected_ms = max64(expected_ms - age_ms, 1),
		.p90_ms = max64(lifetime_duration(lifetime, age_ms, P90) - age_ms, 1),
		.confidence = foresight->samples > 0 ? confidence_of(foresight, expected_ms) : 0,
		.samples = foresight->samples,
		.basis = (int32_t)foresight->kind,
	};

	return prediction.confidence >= CONFIDENCE_LEAST ? prediction : prediction_by_limit(job);
}

static const struct foresight *foresee(struct sched *sched, struct job *job, uint64_t *key)
{
	struct predictor *predictor = &sched->predictor;

	return learner_foresee(&predictor->learner, &predictor->crowd, traits_of(job),
	                       sched_now(sched), key);
}

bool predict_lifetime(struct sched *sched, struct job *job, struct lifetime *lifetime)
{
	uint64_t key;

	if (!predict_is_on(sched))
		return false;
	const struct foresight *foresight = foresee(sched, job, &key);
	struct prediction prediction = prediction_from(foresight, job, 0);
	*lifetime = foresight->lifetime;
	return prediction.samples >= SAMPLES_ENOUGH;
}

int64_t predict_index(const struct sched *sched, const struct job *job, int64_t ran_ms)
{
	struct kept_guess *kept = map_get(&sched->predictor.guesses, job->s.guess);
	int at = ran_ms > 0 ? 1 + duration_place(ran_ms) / BIN_LOG : 0;
	struct lifetime lifetime;

	if (!kept || kept->guess->count == 0)
		return ran_ms;
	if (!kept->order)
		kept->order = NEW(struct order);
	if (kept->order->indices[at] == 0) {
		guess_durations(kept->guess, &lifetime.durations);
		lifetime.limit_ms = job->r.max_runtime_ms;
		int64_t age_ms = at > 0 ? duration_at((at - 1) * BIN_LOG) : 0;
		kept->order->indices[at] = max64(lifetime_index(&lifetime, age_ms), 1);
	}
	return kept->order->indices[at];
}

static void expect_of(struct job *job, const struct prediction *prediction)
{
	job->s.expected_ms = prediction->expected_ms;
	job->s.expected_p90_ms = prediction->p90_ms;
	job->s.confidence = prediction->confidence;
}

static void put_guess(struct sched *sched, const struct kept_guess *kept)
{
	char voices[GUESS_TEXT_MAX + 1];

	guess_write(voices, kept->guess);
	effects_put(sched->effects, RECORD_GUESS,
	            &(struct guess_record){ .id = kept->id,
	                                    .key = kept->key,
	                                    .voices = voices,
	                                    .after = kept->after,
	                                    .p50_ms = kept->prediction.expected_ms,
	                                    .p90_ms = kept->prediction.p90_ms,
	                                    .confidence = kept->prediction.confidence,
	                                    .samples = kept->prediction.samples,
	                                    .basis = kept->prediction.basis });
}

static struct kept_guess *guess_make(struct sched *sched, const struct job *job,
                                     const struct foresight *foresight, uint64_t key)
{
	struct predictor *predictor = &sched->predictor;
	struct kept_guess *kept = NEW(struct kept_guess);

	kept->id = job->r.id;
	kept->key = (int64_t)key;
	kept->after = predictor->last_outcome;
	kept->prediction = prediction_from(foresight, job, 0);
	kept->guess = foresight_guess(foresight);
	map_put(&predictor->guesses, kept->id, kept);
	map_put(&predictor->by_key, kept->key, kept);
	put_guess(sched, kept);
	return kept;
}

/* Nothing happens between the elements of an array. */
static struct kept_guess *guess_of_array(const struct sched *sched, const struct job *job)
{
	const struct job *first =
	    job->r.array_id > 0 ? map_get(&sched->jobs, job->r.array_id) : NULL;

	return first && first != job ? map_get(&sched->predictor.guesses, first->s.guess) : NULL;
}

void predict_submitted(struct sched *sched, struct job *job)
{
	struct predictor *predictor = &sched->predictor;
	struct prediction prediction = prediction_by_limit(job);
	uint64_t key;

	if (!predict_is_on(sched)) {
		expect_of(job, &prediction);
		return;
	}
	struct kept_guess *kept = guess_of_array(sched, job);
	if (!kept) {
		const struct foresight *foresight = foresee(sched, job, &key);
		kept = map_get(&predictor->by_key, (int64_t)key);
		if (!kept || kept->after != predictor->last_outcome)
			kept = guess_make(sched, job, foresight, key);
	}
	kept->jobs++;
	job->s.guess = kept->id;
	expect_of(job, &kept->prediction);
}

void predict_expect(struct sched *sched, struct job *job)
{
	struct prediction prediction = prediction_by_limit(job);
	uint64_t key;

	if (predict_is_on(sched))
		prediction = prediction_from(foresee(sched, job, &key), job, 0);
	expect_of(job, &prediction);
}

/* Little can have ended since, and nothing of the job itself. */
static bool is_fresh(const struct job *job)
{
	return job->s.guess != 0 && job->s.served_ms == 0 &&
	       job->s.started_ms - job->r.submitted_ms <= FRESH_MS;
}

void predict_started(struct sched *sched, struct job *job)
{
	struct prediction prediction = prediction_by_limit(job);
	uint64_t key;

	INVARIANT(job->s.started_ms > 0);
	if (predict_is_on(sched) && !is_fresh(job))
		prediction = prediction_from(foresee(sched, job, &key), job,
		                             predict_age(job, job->s.started_ms));
	if (!predict_is_on(sched) || !is_fresh(job))
		expect_of(job, &prediction);
	crowd_enter(&sched->predictor.crowd, traits_of(job), job->s.started_ms);
}

void predict_stopped(struct sched *sched, struct job *job)
{
	INVARIANT(job->s.started_ms > 0);
	crowd_leave(&sched->predictor.crowd, traits_of(job), job->s.started_ms);
}

static void put_outcome(struct sched *sched, const struct job *job,
                        const struct experience *experience, const struct kept_guess *kept)
{
	char voices[JUDGED_TEXT_MAX + 1];

	judged_write(voices, experience);
	effects_put(sched->effects, RECORD_OUTCOME,
	            &(struct outcome_record){
			.id = sched->predictor.last_outcome,
			.segment = learner_segment(&sched->predictor.learner),
			.closes = sched->predictor.learner.filled + 1 >= sched->config.predict_jobs,
			.tenant_id = job->r.tenant_id,
			.user = (int64_t)experience->traits.user,
			.tenant = (int64_t)experience->traits.tenant,
			.name = (int64_t)experience->traits.name,
			.pattern = (int64_t)experience->traits.pattern,
			.size = experience->traits.size,
			.limit_ms = experience->traits.limit_ms,
			.took_ms = experience->took_ms,
			.ended_ms = experience->ended_ms,
			.peers = experience->peers,
			.experts = experts_most(sched),
			.basis = kept ? kept->prediction.basis : BASIS_NOTHING,
			.p50_ms = kept ? kept->prediction.expected_ms : 0,
			.p90_ms = kept ? kept->prediction.p90_ms : 0,
			.voices = voices,
		    });
}

/* What was said of the job has come true, or not. */
static void count_accuracy(struct sched *sched, const struct prediction *said, int64_t took_ms)
{
	struct accuracy_record *record = &sched->predictor.accuracies[said->basis];

	record->jobs++;
	record->within_p90 += took_ms <= said->p90_ms;
	record->within_twice += took_ms - said->expected_ms <= said->expected_ms &&
	                        said->expected_ms - took_ms <= took_ms;
	effects_put(sched->effects, RECORD_ACCURACY, record);
}

static void delete_outcomes(struct sched *sched)
{
	struct predictor *predictor = &sched->predictor;

	for (int i = 0; i < DELETED_EACH && predictor->stored_from < predictor->needed_from; i++)
		effects_delete(sched->effects, RECORD_OUTCOME, predictor->stored_from++, 0);
}

static void learn_from(struct sched *sched, struct job *job, const struct kept_guess *kept)
{
	struct predictor *predictor = &sched->predictor;
	struct experience experience = { .traits = *traits_of(job),
		                         .took_ms = predict_age(job, sched_now(sched)),
		                         .ended_ms = sched_now(sched) };

	experience.peers = crowd_count(&predictor->crowd, traits_of(job));
	if (kept)
		guess_judge(kept->guess, experience.took_ms, &experience);
	predictor->last_outcome++;
	put_outcome(sched, job, &experience, kept);
	if (kept && kept->prediction.expected_ms > 0)
		count_accuracy(sched, &kept->prediction, experience.took_ms);
	delete_outcomes(sched);
	if (!learner_learn(&predictor->learner, &experience, experts_most(sched),
	                   sched->config.predict_jobs))
		return;
	predictor->needed_from = predictor->segment_from;
	predictor->segment_from = predictor->last_outcome + 1;
}

static void guess_release(struct sched *sched, struct kept_guess *kept)
{
	struct predictor *predictor = &sched->predictor;

	if (--kept->jobs > 0)
		return;
	if (map_get(&predictor->by_key, kept->key) == kept)
		map_remove(&predictor->by_key, kept->key);
	map_remove(&predictor->guesses, kept->id);
	effects_delete(sched->effects, RECORD_GUESS, kept->id, 0);
	kept_free(kept);
}

void predict_ended(struct sched *sched, struct job *job)
{
	struct kept_guess *kept = map_get(&sched->predictor.guesses, job->s.guess);

	if (predict_is_on(sched) && job->s.started_ms > 0 && sched_now(sched) > job->s.started_ms &&
	    learner_accepts(&sched->predictor.learner, sched_now(sched)))
		learn_from(sched, job, kept);
	if (job->s.started_ms > 0)
		predict_stopped(sched, job);
	if (kept)
		guess_release(sched, kept);
	job->s.guess = 0;
}

static bool predict_is_within(int64_t number, int64_t least, int64_t most)
{
	return number >= least && number <= most;
}

bool predict_load_guess(struct predictor *predictor, const struct guess_record *record,
                        struct error *error)
{
	struct guess *guess = guess_read(record->voices);

	if (!guess || record->id < 1 || map_get(&predictor->guesses, record->id) ||
	    record->key == 0 || record->after < 0 || record->p50_ms < 0 || record->p90_ms < 0 ||
	    !predict_is_within(record->confidence, 0, 1000) || record->samples < 0 ||
	    !predict_is_within(record->basis, 0, BASES - 1)) {
		free(guess);
		return error_set(error, ERROR_CORRUPT,
		                 "what was expected of job-%lld is stored twice, or cannot be read",
		                 (long long)record->id);
	}
	struct kept_guess *kept = NEW(struct kept_guess);
	*kept =
	    (struct kept_guess){ .id = record->id,
		                 .key = record->key,
		                 .after = record->after,
		                 .prediction = { record->p50_ms, record->p90_ms, record->confidence,
		                                 record->samples, record->basis },
		                 .guess = guess };
	map_put(&predictor->guesses, kept->id, kept);
	return true;
}

bool predict_load_outcome(struct predictor *predictor, const struct outcome_record *record,
                          struct error *error)
{
	struct experience experience = {
		.traits = { .user = (uint64_t)record->user,
		            .tenant = (uint64_t)record->tenant,
		            .name = (uint64_t)record->name,
		            .pattern = (uint64_t)record->pattern,
		            .size = record->size,
		            .limit_ms = record->limit_ms },
		.took_ms = record->took_ms,
		.ended_ms = record->ended_ms,
		.peers = record->peers,
	};

	if (!predict_is_within(record->id, 1, INT64_MAX / 4) ||
	    !predict_is_within(record->segment, 1, record->id) || record->took_ms < 0 ||
	    record->peers < 0 || record->limit_ms < 0 || record->experts < EXPERTS_MIN ||
	    !judged_read(record->voices, &experience))
		return error_set(error, ERROR_CORRUPT,
		                 "outcome %lld is stored with something that cannot be",
		                 (long long)record->id);
	if (!predictor->loaded)
		predictor->loaded = NEW(struct outcomes);
	struct outcomes *loaded = predictor->loaded;
	array_reserve(loaded->at, loaded->capacity, loaded->count + 1);
	loaded->at[loaded->count].id = record->id;
	loaded->at[loaded->count].segment = record->segment;
	loaded->at[loaded->count].experts = record->experts;
	loaded->at[loaded->count].closes = record->closes;
	loaded->at[loaded->count++].experience = experience;
	return true;
}

bool predict_load_accuracy(struct predictor *predictor, const struct accuracy_record *record,
                           struct error *error)
{
	if (!predict_is_within(record->id, 1, BASES) ||
	    !predict_is_within(record->jobs, 0, INT64_MAX / 2) ||
	    !predict_is_within(record->within_p90, 0, record->jobs) ||
	    !predict_is_within(record->within_twice, 0, record->jobs))
		return error_set(error, ERROR_CORRUPT, "accuracy %lld cannot be",
		                 (long long)record->id);
	predictor->accuracies[record->id - 1] = *record;
	return true;
}

static int outcome_compare(const void *a, const void *b)
{
	int64_t one = *(const int64_t *)a, other = *(const int64_t *)b; /* the id comes first */

	return (one > other) - (one < other);
}

static bool outcomes_check(const struct outcomes *loaded, struct error *error)
{
	for (size_t i = 1; i < loaded->count; i++)
		if (loaded->at[i].id != loaded->at[i - 1].id + 1 ||
		    loaded->at[i].segment !=
		        loaded->at[i - 1].segment + (loaded->at[i - 1].closes ? 1 : 0))
			return error_set(error, ERROR_CORRUPT,
			                 "outcome %lld is stored twice, or out of order",
			                 (long long)loaded->at[i].id);
	return true;
}

/* Those of the segment that is being filled and the one before; what is older was to
 * be deleted. */
static void outcomes_replay(struct predictor *predictor)
{
	const struct outcomes *loaded = predictor->loaded;
	size_t last = loaded->count - 1;
	int64_t segment = loaded->at[last].segment + (loaded->at[last].closes ? 1 : 0);

	predictor->stored_from = loaded->at[0].id;
	predictor->last_outcome = loaded->at[last].id;
	predictor->segment_from = predictor->needed_from = predictor->last_outcome + 1;
	for (size_t i = 0; i <= last; i++) {
		if (loaded->at[i].segment < segment - 1)
			continue;
		predictor->needed_from = min64(predictor->needed_from, loaded->at[i].id);
		if (loaded->at[i].segment == segment)
			predictor->segment_from = min64(predictor->segment_from, loaded->at[i].id);
		learner_replay(&predictor->learner, &loaded->at[i].experience,
		               loaded->at[i].experts, loaded->at[i].segment, loaded->at[i].closes);
	}
}

/* A guess whose job was taken out of a damaged store is of no use and does no harm. */
bool predict_loaded(struct sched *sched, struct error *error)
{
	struct predictor *predictor = &sched->predictor;

	if (predictor->loaded) {
		struct outcomes *loaded = predictor->loaded;
		qsort(loaded->at, loaded->count, sizeof(*loaded->at), outcome_compare);
		if (!outcomes_check(loaded, error))
			return false;
		outcomes_replay(predictor);
		outcomes_free(predictor);
	}
	for (size_t i = 0; i < predictor->guesses.capacity; i++) {
		struct kept_guess *kept = predictor->guesses.entries[i].value;
		if (kept && kept->after == predictor->last_outcome)
			map_put(&predictor->by_key, kept->key, kept);
	}
	for (size_t i = 0; i < sched->jobs.capacity; i++) {
		struct job *job = sched->jobs.entries[i].value;
		if (!job || job_state_is_final((enum job_state)job->s.state))
			continue;
		struct kept_guess *kept = map_get(&predictor->guesses, job->s.guess);
		if (kept)
			kept->jobs++;
		if (job->s.started_ms > 0)
			crowd_enter(&predictor->crowd, traits_of(job), job->s.started_ms);
	}
	return true;
}

void predict_move(struct predictor *to, struct predictor *from)
{
	predictor_free(to);
	*to = *from;
	predictor_init(from);
	crowd_free(&to->crowd);
	map_free(&to->by_key);
	for (size_t i = 0; i < to->guesses.capacity; i++) {
		struct kept_guess *kept = to->guesses.entries[i].value;
		if (kept)
			kept->jobs = 0;
	}
}
