/* mixture.c - how long a job will take: experts, and how far each has been right */
#include "core/predict/mixture.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"

#define SHRINK 19661        /* of 65536: what all jobs count in an expert's opinion, 0.3 */
#define CROWD_DOUBT 6554    /* of 65536: part of all jobs in the crowd's opinion, 0.1 */
#define CROWD_LEAST_MS 1000 /* an age below says nothing */
#define RATE_ALL 9455       /* of 65536: how fast logits move, 0.1 / ln 2 */
#define RATE_USER 14182     /* a user's offsets, 0.15 / ln 2 */
#define LEVEL_SHIFT 8       /* probabilities below 1/65536 count as that */

enum { VOICE_CROWD_SIZE = EXPERT_KINDS * PACES, VOICE_CROWD };

/* In 1/8 octave: the narrower the better, until shown otherwise. */
static const int8_t initial_logits[EXPERT_KINDS] = {
	[BY_USER_NAME_SIZE] = 14, [BY_USER_NAME] = 14,
	[BY_USER_PATTERN] = 12,   [BY_NAME] = 6,
	[BY_PATTERN] = 3,         [BY_USER_LIMIT_SIZE] = 14,
	[BY_USER_LIMIT] = 12,     [BY_LIMIT_SIZE] = 3,
	[BY_USER_SIZE] = 12,      [BY_USER] = 9,
};

int32_t logit_initial(int voice)
{
	INVARIANT(voice >= 0 && voice < VOICES);
	return voice < VOICE_CROWD_SIZE ? initial_logits[voice / PACES] * (LOGIT_ONE / 8) : 0;
}

size_t guess_size(int count)
{
	INVARIANT(count >= 0 && count <= VOICES);
	return sizeof(struct guess) + (size_t)count * sizeof(struct guess_voice);
}

void mixture_init(struct mixture *mixture, int64_t capacity)
{
	INVARIANT(capacity >= EXPERTS_MIN);
	*mixture = (struct mixture){ .experts.capacity = capacity };
	for (int voice = 0; voice < VOICES; voice++)
		for (int context = 0; context < CONTEXTS; context++)
			mixture->logits[voice][context] = logit_initial(voice);
}

void mixture_free(struct mixture *mixture)
{
	experts_free(&mixture->experts);
	crowd_free(&mixture->crowd);
}

/* The first of the ascending bounds that the value does not exceed. */
static int bucket_of(int64_t value, const int64_t *bounds, int count)
{
	int at = 0;

	while (at < count && value > bounds[at])
		at++;
	return at;
}

static int context_of_expert(int64_t samples, const struct distribution *opinion)
{
	static const int64_t counts[] = { 1, 2, 4, 9, 29 };
	static const int64_t concentrations[] = { 3932, 7209, 14418 }; /* 0.06, 0.11, 0.22 */

	return bucket_of(samples, counts, 5) * 4 +
	       bucket_of(distribution_concentration(opinion), concentrations, 3);
}

static int context_of_crowd(int64_t count, int64_t age_ms)
{
	static const int64_t counts[] = { 1, 3, 9 };
	static const int64_t ages_ms[] = { 60000, 600000, 3600000, 14400000, 86400000 };

	return bucket_of(count, counts, 3) * 6 + bucket_of(age_ms, ages_ms, 5);
}

/* What is being added up while the voices are heard. */
struct hearing {
	const struct mixture *mixture;
	const struct traits *traits;
	struct distribution base; /* of all jobs */
	struct foresight *foresight;
	struct distribution opinions[VOICES];
	int64_t samples[VOICES];
	uint32_t weights[VOICES]; /* of 65536 */
};

static struct distribution *hearing_add(struct hearing *hearing, int voice, int64_t samples)
{
	struct foresight *foresight = hearing->foresight;
	int at = foresight->count++;

	foresight->voices[at].voice = (uint8_t)voice;
	hearing->samples[at] = samples;
	return &hearing->opinions[at];
}

static void hear_experts(struct hearing *hearing)
{
	const struct experts *experts = &hearing->mixture->experts;
	struct foresight *foresight = hearing->foresight;

	for (enum expert_kind kind = 0; kind < EXPERT_KINDS; kind++) {
		const struct expert *expert =
		    experts_find(experts, traits_key(hearing->traits, kind));
		for (int pace = 0; expert && pace < PACES; pace++) {
			struct distribution *opinion =
			    hearing_add(hearing, (int)kind * PACES + pace, expert->samples);
			histogram_shrunk(&expert->histograms[pace], &hearing->base, SHRINK,
			                 opinion);
			foresight->voices[foresight->count - 1].context =
			    (uint8_t)context_of_expert(expert->samples, opinion);
		}
	}
}

/* "Longer than others have been running": what the user's jobs of that size took,
 * or what all took, beyond that age. */
static void hear_crowd(struct hearing *hearing, bool same_size, int64_t now_ms)
{
	const struct mixture *mixture = hearing->mixture;
	const struct traits *traits = hearing->traits;
	struct crowd_group group = crowd_of(&mixture->crowd, traits, same_size);
	const struct expert *source = NULL;

	if (group.count == 0)
		return;
	int64_t age_ms = crowd_age(&group, now_ms);
	if (age_ms < CROWD_LEAST_MS)
		return;
	if (same_size)
		source = experts_find(&mixture->experts, traits_key(traits, BY_USER_SIZE));
	if (same_size && !source)
		source = experts_find(&mixture->experts, traits_key(traits, BY_USER));
	struct distribution *opinion = hearing_add(
	    hearing, same_size ? VOICE_CROWD_SIZE : VOICE_CROWD, source ? source->samples : 0);
	if (source)
		histogram_shrunk(&source->histograms[PACE_SLOW], &hearing->base, SHRINK, opinion);
	else
		*opinion = hearing->base;
	distribution_beyond(opinion, duration_place(age_ms), &hearing->base, CROWD_DOUBT);
	hearing->foresight->voices[hearing->foresight->count - 1].context =
	    (uint8_t)context_of_crowd(group.count, age_ms);
}

/* Softmax of the logits. */
static void weigh_voices(struct hearing *hearing)
{
	const struct mixture *mixture = hearing->mixture;
	const struct expert *user = experts_user(&mixture->experts, hearing->traits);
	struct foresight *foresight = hearing->foresight;
	int32_t logits[VOICES], most = INT32_MIN;
	int64_t parts[VOICES], sum = 0;

	for (int i = 0; i < foresight->count; i++) {
		const struct guess_voice *voice = &foresight->voices[i];
		logits[i] = mixture->logits[voice->voice][voice->context] +
		            (user ? user->offsets[voice->voice] : 0);
		most = logits[i] > most ? logits[i] : most;
	}
	for (int i = 0; i < foresight->count; i++) {
		int32_t log = 24 * LOG_ONE - (most - logits[i]) / (LOGIT_ONE / LOG_ONE);
		parts[i] = log > 0 ? power_of(log) : 1;
		sum += parts[i];
	}
	for (int i = 0; i < foresight->count; i++) {
		hearing->weights[i] = (uint32_t)(parts[i] * 65536 / sum);
		foresight->voices[i].weight = (uint16_t)min64(hearing->weights[i], UINT16_MAX);
	}
}

static void mix_opinions(struct hearing *hearing)
{
	struct distribution *mixed = &hearing->foresight->lifetime.durations;
	uint64_t sums[DURATION_BINS] = { 0 };

	for (int i = 0; i < hearing->foresight->count; i++)
		for (int bin = 0; bin < DURATION_BINS; bin++)
			sums[bin] += (uint64_t)hearing->weights[i] * hearing->opinions[i].bins[bin];
	for (int bin = 0; bin < DURATION_BINS; bin++)
		mixed->bins[bin] = (uint32_t)(sums[bin] >> 16) + 1;
	if (hearing->foresight->count == 0)
		*mixed = hearing->base;
}

/* The probability of two bins as 4 * log2, cut off at 1/65536. */
static uint8_t level_of(uint32_t probability)
{
	uint32_t value = probability >> LEVEL_SHIFT;

	if (value < 1)
		return 0;
	if (value >= 65536)
		return GUESS_LEVELS - 1;
	int whole = 31 - __builtin_clz(value);
	uint32_t quarter = whole >= 2 ? value >> (whole - 2) & 3 : value << (2 - whole) & 3;
	return (uint8_t)(4 * whole + (int)quarter);
}

static uint32_t level_value(uint8_t level)
{
	return (uint32_t)(9 + 2 * (level & 3)) << (level >> 2); /* the middle of its range */
}

static void keep_opinions(struct hearing *hearing)
{
	for (int i = 0; i < hearing->foresight->count; i++) {
		const uint32_t *bins = hearing->opinions[i].bins;
		uint8_t *levels = hearing->foresight->voices[i].levels;
		for (int at = 0; at < GUESS_BINS; at++)
			levels[at] = level_of(bins[2 * at] + bins[2 * at + 1]);
	}
}

/* The kind of expert with the most weight, both of its opinions together. */
static void name_basis(struct hearing *hearing)
{
	struct foresight *foresight = hearing->foresight;
	uint32_t weights[EXPERT_KINDS] = { 0 }, most = 0;

	foresight->basis = "nothing";
	for (int i = 0; i < foresight->count; i++) {
		int kind = foresight->voices[i].voice / PACES;
		if (kind >= EXPERT_KINDS)
			continue;
		weights[kind] += hearing->weights[i];
		if (weights[kind] > most) {
			most = weights[kind];
			foresight->samples = hearing->samples[i];
			foresight->basis = expert_kind_name((enum expert_kind)kind);
		}
	}
}

void mixture_foresee(const struct mixture *mixture, const struct traits *traits, int64_t now_ms,
                     struct foresight *foresight)
{
	static const struct histogram empty;
	const struct expert *all = experts_find(&mixture->experts, traits_key(traits, BY_NOTHING));
	struct hearing hearing = { .mixture = mixture, .traits = traits, .foresight = foresight };

	foresight->count = 0;
	foresight->samples = 0;
	foresight->lifetime.limit_ms = max64(traits->limit_ms, 0);
	histogram_base(all ? &all->histograms[PACE_SLOW] : &empty, &hearing.base);
	hear_experts(&hearing);
	hear_crowd(&hearing, true, now_ms);
	hear_crowd(&hearing, false, now_ms);
	weigh_voices(&hearing);
	mix_opinions(&hearing);
	keep_opinions(&hearing);
	name_basis(&hearing);
}

struct guess *foresight_guess(const struct foresight *foresight)
{
	struct guess *guess = memory_alloc(guess_size(foresight->count));

	guess->count = foresight->count;
	memcpy(guess->voices, foresight->voices,
	       (size_t)foresight->count * sizeof(*foresight->voices));
	return guess;
}

static int64_t root_of(int64_t value)
{
	int64_t root = 0;

	for (int64_t bit = INT64_C(1) << 30; bit > 0; bit >>= 1)
		if ((root + bit) * (root + bit) <= value)
			root += bit;
	return root;
}

static int32_t logit_moved(int32_t logit, int64_t step)
{
	return (int32_t)max64(min64(logit + step, LOGIT_MAX), -LOGIT_MAX);
}

/* Each logit moves by rate * (responsibility - weight). Where many jobs of a user
 * run they tend to end together and to say the same: each of them says less. */
static void judge_voices(struct mixture *mixture, const struct traits *traits,
                         const struct guess *guess, int32_t place)
{
	struct expert *user = experts_user(&mixture->experts, traits);
	int64_t peers = crowd_of(&mixture->crowd, traits, false).count;
	int64_t root = root_of(max64(min64(peers, 1 << 20), 1) << 16); /* in 1/256 */
	uint64_t parts[VOICES], sum = 0;
	int bin = place / (2 * BIN_LOG);

	for (int i = 0; i < guess->count; i++) {
		const struct guess_voice *voice = &guess->voices[i];
		parts[i] = (uint64_t)voice->weight * level_value(voice->levels[bin]);
		sum += parts[i];
	}
	for (int i = 0; i < guess->count && sum > 0; i++) {
		const struct guess_voice *voice = &guess->voices[i];
		int64_t off = (int64_t)(parts[i] * 65536 / sum) - voice->weight;
		int32_t *logit = &mixture->logits[voice->voice][voice->context];
		*logit = logit_moved(*logit, off * RATE_ALL / (root << 8));
		if (!user)
			continue;
		int32_t *offset = &user->offsets[voice->voice];
		*offset = logit_moved(*offset, off * RATE_USER / (root << 8));
	}
}

static void learn_expert(struct mixture *mixture, int64_t id, enum expert_kind kind, int32_t place,
                         struct learned *learned)
{
	struct experts *experts = &mixture->experts;
	struct expert *expert = experts_find(experts, id);

	for (int i = 0; !expert && i < EVICTIONS; i++) {
		int64_t evicted = experts_evict(experts, 1);
		if (evicted != 0)
			learned->evicted[learned->evicted_count++] = evicted;
	}
	if (!expert)
		expert = experts_add(experts, id, kind);
	expert_learn(expert, place);
	experts_touch(experts, expert, mixture->learned);
	learned->experts[learned->count++] = expert;
}

void mixture_learn(struct mixture *mixture, const struct traits *traits, const struct guess *guess,
                   int64_t took_ms, struct learned *learned)
{
	int32_t place = duration_place(took_ms);

	*learned = (struct learned){ 0 };
	mixture->learned++;
	for (enum expert_kind kind = 0; kind < EXPERT_KINDS; kind++) {
		int64_t id = traits_key(traits, kind);
		if (id != 0)
			learn_expert(mixture, id, kind, place, learned);
	}
	if (guess)
		judge_voices(mixture, traits, guess, place);
}
