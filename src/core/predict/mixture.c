/* mixture.c - how long a job will take: experts, and how far each has been right */
#include "core/predict/mixture.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"

#define SHRINK 19661      /* of 65536: what all jobs count in an expert's opinion, 0.3 */
#define CROWD_DOUBT 6554  /* of 65536: part of all jobs in the crowd's opinion, 0.1 */
#define CROWD_LEAST_BIN 8 /* an age below 1 s says nothing */
#define RATE_ALL 9455     /* of 65536: how fast logits move, 0.1 / ln 2 */
#define RATE_USER 14182   /* a user's offsets, 0.15 / ln 2 */
#define WEIGHT_LEAST 256  /* of 65536: voices that weigh less are not kept and not judged */

enum { VOICE_CROWD_SIZE = EXPERT_KINDS * PACES, VOICE_CROWD };

/* In 1/8 octave: the narrower the better, until shown otherwise. */
static const int8_t initial_logits[EXPERT_KINDS] = {
	[BY_USER_NAME_SIZE] = 14, [BY_USER_NAME] = 14,
	[BY_USER_PATTERN] = 12,   [BY_NAME] = 6,
	[BY_PATTERN] = 3,         [BY_USER_LIMIT_SIZE] = 14,
	[BY_USER_LIMIT] = 12,     [BY_LIMIT_SIZE] = 3,
	[BY_USER_SIZE] = 12,      [BY_USER] = 9,
};

static int32_t logit_initial(int voice)
{
	INVARIANT(voice >= 0 && voice < VOICES);
	return voice < VOICE_CROWD_SIZE ? initial_logits[voice / PACES] * (LOGIT_ONE / 8) : 0;
}

static void logits_init(struct logits *logits)
{
	for (int voice = 0; voice < VOICES; voice++)
		for (int context = 0; context < CONTEXTS; context++)
			logits->of[voice][context] = logit_initial(voice);
}

void mixture_init(struct mixture *mixture)
{
	*mixture = (struct mixture){ .experts.segment = 1 };
	logits_init(&mixture->now);
	logits_init(&mixture->next);
}

void mixture_advance(struct mixture *mixture)
{
	mixture->experts.segment++;
	mixture->now = mixture->next;
	logits_init(&mixture->next);
}

void mixture_free(struct mixture *mixture)
{
	experts_free(&mixture->experts);
}

/* The first of the ascending bounds that the value does not exceed. */
static int bucket_of(int64_t value, const int64_t *bounds, int count)
{
	int at = 0;

	while (at < count && value > bounds[at])
		at++;
	return at;
}

static int context_of_expert(int64_t samples, int64_t concentration)
{
	static const int64_t counts[] = { 1, 2, 4, 9, 29 };
	static const int64_t concentrations[] = { 3932, 7209, 14418 }; /* 0.06, 0.11, 0.22 */

	return bucket_of(samples, counts, 5) * 4 + bucket_of(concentration, concentrations, 3);
}

static int context_of_crowd(const struct crowd_view *view)
{
	static const int64_t counts[] = { 1, 3, 9 };
	/* The last bins that begin by 1 and 10 minutes, 1 and 4 hours, and a day. */
	static const int64_t bins[] = { 31, 44, 55, 63, 73 };

	return bucket_of(view->count, counts, 3) * 6 + bucket_of(view->place / BIN_LOG, bins, 5);
}

/* Whoever learns for a key learns for a wider one too, and forgets that no sooner: where
 * there is none for that, the narrower ones need not be looked for. */
static const enum expert_kind wider[EXPERT_KINDS] = {
	[BY_USER_NAME_SIZE] = BY_USER_NAME, [BY_USER_NAME] = BY_NAME,
	[BY_USER_PATTERN] = BY_PATTERN,     [BY_NAME] = BY_NOTHING,
	[BY_PATTERN] = BY_NOTHING,          [BY_USER_LIMIT_SIZE] = BY_USER_LIMIT,
	[BY_USER_LIMIT] = BY_USER,          [BY_LIMIT_SIZE] = BY_SIZE,
	[BY_USER_SIZE] = BY_USER,           [BY_USER] = BY_NOTHING,
	[BY_TENANT] = BY_NOTHING,           [BY_SIZE] = BY_NOTHING,
	[BY_NOTHING] = BY_NOTHING,
};

void audience_gather(const struct mixture *mixture, const struct traits *traits,
                     struct audience *audience)
{
	uint64_t key = hash_number((uint64_t)max64(traits->limit_ms, 0));

	*audience = (struct audience){ .limit_ms = max64(traits->limit_ms, 0) };
	for (int kind = EXPERT_KINDS - 1; kind >= 0; kind--) {
		bool known = kind == BY_NOTHING || audience->memories[wider[kind]];
		int64_t id = known ? traits_key(traits, (enum expert_kind)kind) : 0;
		audience->memories[kind] = experts_memory(&mixture->experts, id);
		if (audience->memories[kind])
			key = hash_combine(key, (uint64_t)id);
	}
	audience->key = key;
}

/* Whose key has the name learns for the name alone, too. */
bool audience_ignores_name(const struct audience *audience, const struct mixture *mixture,
                           const struct traits *traits)
{
	int64_t id = audience->memories[BY_NOTHING] ? traits_key(traits, BY_NAME) : 0;

	return !audience->memories[BY_NAME] && !experts_memory(&mixture->experts, id);
}

void audience_add_crowd(struct audience *audience, const struct crowd *crowd,
                        const struct traits *traits, int64_t now_ms)
{
	uint64_t key = audience->key;

	for (int i = 0; i < 2; i++) {
		struct crowd_view view = crowd_see(crowd, traits, i == 0, now_ms);
		if (view.count > 0 && view.place / BIN_LOG < CROWD_LEAST_BIN)
			view.count = 0;
		audience->crowd[i] = view;
		uint64_t context = (uint64_t)context_of_crowd(&view);
		key = hash_combine(key,
		                   view.count > 0 ? context << 32 | ((uint64_t)view.place + 1) : 0);
	}
	audience->key = key | 1;
}

/* A voice: the counts of a histogram, beside which all jobs count `extra`. */
struct speaker {
	const uint32_t *bins;
	int from, to;
	uint64_t inverse; /* 2^56 / (all counts) */
	uint32_t extra;
	int64_t samples;
	uint32_t weight; /* of 65536 */
};

struct hearing {
	const struct mixture *mixture;
	const struct audience *audience;
	struct distribution base; /* of all jobs */
	struct foresight *foresight;
	struct distribution crowd[2];
	struct speaker speakers[VOICES];
	struct histogram single[EXPERT_KINDS]; /* of those that have seen one job */
};

static struct speaker *hearing_add(struct hearing *hearing, int voice, int context)
{
	struct guess_voice *said = &hearing->foresight->voices[hearing->foresight->count];

	said->voice = (uint8_t)voice;
	said->context = (uint8_t)context;
	return &hearing->speakers[hearing->foresight->count++];
}

static void hear_experts(struct hearing *hearing)
{
	for (enum expert_kind kind = 0; kind < EXPERT_KINDS; kind++) {
		const struct memory *memory = hearing->audience->memories[kind];
		for (enum pace pace = 0; memory && pace < PACES; pace++) {
			const struct histogram *histogram =
			    memory_histogram(memory, pace, &hearing->single[kind]);
			uint32_t extra = (uint32_t)((uint64_t)histogram->one * SHRINK >> 16);
			int context = context_of_expert(memory->samples,
			                                histogram_concentration(histogram, extra));
			*hearing_add(hearing, (int)kind * PACES + (int)pace, context) =
			    (struct speaker){ .bins = histogram->bins,
				              .from = histogram->from,
				              .to = histogram->to,
				              .inverse = (UINT64_C(1) << 56) /
				                         ((uint64_t)histogram->total + extra),
				              .extra = extra,
				              .samples = memory->samples };
		}
	}
}

/* The slow opinion of an expert about all durations. */
static void spread_out(const struct memory *memory, const struct distribution *base,
                       struct distribution *out)
{
	struct histogram space;
	const struct histogram *histogram = memory_histogram(memory, PACE_SLOW, &space);
	uint64_t extra = (uint64_t)histogram->one * SHRINK >> 16;
	uint64_t inverse = (UINT64_C(1) << 56) / (histogram->total + extra);

	for (int i = 0; i < DURATION_BINS; i++) {
		uint64_t count = histogram->bins[i] + (extra * base->bins[i] >> PROBABILITY_BITS);
		out->bins[i] = (uint32_t)(count * inverse >> 32) + 1;
	}
}

/* "Longer than others have been running": what the user's jobs of that size took,
 * or what all took, beyond that age. */
static void hear_crowd(struct hearing *hearing, int which)
{
	const struct crowd_view *view = &hearing->audience->crowd[which];
	struct distribution *opinion = &hearing->crowd[which];
	const struct memory *source = NULL;

	if (view->count == 0)
		return;
	if (which == 0) {
		source = hearing->audience->memories[BY_USER_SIZE];
		if (!source)
			source = hearing->audience->memories[BY_USER];
	}
	if (source)
		spread_out(source, &hearing->base, opinion);
	else
		*opinion = hearing->base;
	distribution_beyond(opinion, view->place, &hearing->base, CROWD_DOUBT);
	*hearing_add(hearing, which == 0 ? VOICE_CROWD_SIZE : VOICE_CROWD, context_of_crowd(view)) =
	    (struct speaker){ .bins = opinion->bins,
		              .to = DURATION_BINS - 1,
		              .inverse = UINT64_C(1) << (56 - PROBABILITY_BITS),
		              .samples = source ? source->samples : 0 };
}

/* Softmax of the logits. */
static void weigh_voices(struct hearing *hearing)
{
	const struct mixture *mixture = hearing->mixture;
	const struct memory *user = hearing->audience->memories[BY_USER];
	struct foresight *foresight = hearing->foresight;
	int32_t logits[VOICES], most = INT32_MIN;
	int64_t parts[VOICES], sum = 0;

	for (int i = 0; i < foresight->count; i++) {
		const struct guess_voice *voice = &foresight->voices[i];
		logits[i] = mixture->now.of[voice->voice][voice->context] +
		            (user ? user->full->offsets[voice->voice] : 0);
		most = logits[i] > most ? logits[i] : most;
	}
	for (int i = 0; i < foresight->count; i++) {
		int32_t log = 24 * LOG_ONE - (most - logits[i]) / (LOGIT_ONE / LOG_ONE);
		parts[i] = log > 0 ? power_of(log) : 1;
		sum += parts[i];
	}
	for (int i = 0; i < foresight->count; i++)
		hearing->speakers[i].weight = (uint32_t)(parts[i] * 65536 / sum);
}

/* A count of a speaker becomes its probability by `inverse`, and that its part of the
 * mixture by the weight: both are one factor. */
static void mix_opinions(struct hearing *hearing)
{
	struct distribution *mixed = &hearing->foresight->lifetime.durations;
	uint64_t sums[DURATION_BINS] = { 0 }, extras = 0;

	for (int i = 0; i < hearing->foresight->count; i++) {
		const struct speaker *speaker = &hearing->speakers[i];
		uint64_t factor = speaker->inverse * speaker->weight >> 16;
		for (int bin = speaker->from; bin <= speaker->to; bin++)
			sums[bin] += speaker->bins[bin] * factor;
		extras += speaker->extra * factor;
	}
	for (int bin = 0; bin < DURATION_BINS; bin++)
		mixed->bins[bin] = (uint32_t)((sums[bin] + hearing->base.bins[bin] *
		                                               (extras >> PROBABILITY_BITS)) >>
		                              32) +
		                   1;
	if (hearing->foresight->count == 0)
		*mixed = hearing->base;
}

static void keep_levels(const uint32_t *base, const struct speaker *speaker, uint8_t *levels)
{
	enum { EACH = DURATION_BINS / GUESS_BINS };

	for (int at = 0; at < GUESS_BINS; at++) {
		uint64_t count = (uint64_t)speaker->extra * base[at] >> PROBABILITY_BITS;
		for (int i = 0; i < EACH; i++)
			count += speaker->bins[at * EACH + i];
		levels[at] = guess_level(count * speaker->inverse >> 32);
	}
}

/* Keeps what those said that have some weight, and forgets the others. */
static void keep_opinions(struct hearing *hearing)
{
	struct foresight *foresight = hearing->foresight;
	uint32_t base[GUESS_BINS] = { 0 };
	int kept = 0;

	for (int i = 0; i < DURATION_BINS; i++)
		base[i * GUESS_BINS / DURATION_BINS] += hearing->base.bins[i];
	for (int i = 0; i < foresight->count; i++) {
		const struct speaker *speaker = &hearing->speakers[i];
		struct guess_voice *said = &foresight->voices[kept];
		if (speaker->weight < WEIGHT_LEAST)
			continue;
		*said = foresight->voices[i];
		said->weight = (uint16_t)min64(speaker->weight, UINT16_MAX);
		keep_levels(base, speaker, said->levels);
		kept++;
	}
	foresight->count = kept;
}

/* The kind of expert with the most weight, both of its opinions together. */
static void name_basis(struct hearing *hearing)
{
	struct foresight *foresight = hearing->foresight;
	uint32_t weights[EXPERT_KINDS] = { 0 }, most = 0;

	for (int i = 0; i < foresight->count; i++) {
		int kind = foresight->voices[i].voice / PACES;
		if (kind >= EXPERT_KINDS)
			continue;
		weights[kind] += hearing->speakers[i].weight;
		if (weights[kind] > most) {
			most = weights[kind];
			foresight->samples = hearing->speakers[i].samples;
			foresight->kind = (enum expert_kind)kind;
		}
	}
}

void mixture_hear(const struct mixture *mixture, const struct audience *audience,
                  struct foresight *foresight)
{
	static const struct histogram empty;
	const struct memory *all = audience->memories[BY_NOTHING];
	struct histogram space;
	struct hearing hearing;

	hearing.mixture = mixture;
	hearing.audience = audience;
	hearing.foresight = foresight;
	foresight->count = 0;
	foresight->samples = 0;
	foresight->kind = EXPERT_KINDS;
	foresight->lifetime.limit_ms = audience->limit_ms;
	histogram_base(all ? memory_histogram(all, PACE_SLOW, &space) : &empty, &hearing.base);
	hear_experts(&hearing);
	hear_crowd(&hearing, 0);
	hear_crowd(&hearing, 1);
	weigh_voices(&hearing);
	mix_opinions(&hearing);
	name_basis(&hearing);
	keep_opinions(&hearing);
}

void mixture_foresee(const struct mixture *mixture, const struct crowd *crowd,
                     const struct traits *traits, int64_t now_ms, struct foresight *foresight)
{
	struct audience audience;

	audience_gather(mixture, traits, &audience);
	audience_add_crowd(&audience, crowd, traits, now_ms);
	mixture_hear(mixture, &audience, foresight);
}

struct guess *foresight_guess(const struct foresight *foresight)
{
	struct guess *guess = memory_alloc(guess_size(foresight->count));

	guess->count = foresight->count;
	memcpy(guess->voices, foresight->voices,
	       (size_t)foresight->count * sizeof(*foresight->voices));
	return guess;
}

void guess_judge(const struct guess *guess, int64_t took_ms, struct experience *experience)
{
	int bin = duration_place(took_ms) / GUESS_BIN_LOG;

	experience->count = guess->count;
	for (int i = 0; i < guess->count; i++) {
		const struct guess_voice *voice = &guess->voices[i];
		experience->voices[i] = (struct judged_voice){ voice->voice, voice->context,
			                                       voice->levels[bin], voice->weight };
	}
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

/* By how much voices move: for each, responsibility - weight, by the root of its peers. */
struct moves {
	int64_t off[VOICES];
	int64_t root; /* in 1/256 */
};

static bool moves_make(struct moves *moves, const struct experience *experience)
{
	int64_t peers = max64(min64(experience->peers, 1 << 20), 1);
	uint64_t parts[VOICES], sum = 0;

	moves->root = peers > 1 ? root_of(peers << 16) : 256;
	for (int i = 0; i < experience->count; i++) {
		const struct judged_voice *voice = &experience->voices[i];
		parts[i] = (uint64_t)voice->weight * guess_level_value(voice->level);
		sum += parts[i];
	}
	for (int i = 0; i < experience->count && sum > 0; i++)
		moves->off[i] = (int64_t)(parts[i] * 65536 / sum) - experience->voices[i].weight;
	return sum > 0;
}

/* Where many jobs of a user run they tend to end together and to say the same: each of
 * them says less. */
static void logits_learn(struct logits *logits, const struct experience *experience,
                         const struct moves *moves)
{
	for (int i = 0; i < experience->count; i++) {
		const struct judged_voice *voice = &experience->voices[i];
		int32_t *logit = &logits->of[voice->voice][voice->context];
		*logit = logit_moved(*logit, moves->off[i] * RATE_ALL / (moves->root << 8));
	}
}

static void offsets_learn(struct memory *user, const struct experience *experience,
                          const struct moves *moves)
{
	for (int i = 0; i < experience->count && user->full; i++) {
		int32_t *offset = &user->full->offsets[experience->voices[i].voice];
		*offset = logit_moved(*offset, moves->off[i] * RATE_USER / (moves->root << 8));
	}
}

void mixture_learn(struct mixture *mixture, const struct experience *experience, int64_t most)
{
	struct expert *user = NULL;
	struct kernel kernel;
	struct moves moves;

	INVARIANT(most >= EXPERTS_MIN);
	kernel_make(&kernel, duration_place(experience->took_ms));
	for (enum expert_kind kind = 0; kind < EXPERT_KINDS; kind++) {
		int64_t id = traits_key(&experience->traits, kind);
		struct expert *expert =
		    id != 0 ? experts_learn(&mixture->experts, id, kind, &kernel, most) : NULL;
		if (kind == BY_USER)
			user = expert;
	}
	if (!moves_make(&moves, experience))
		return;
	logits_learn(&mixture->now, experience, &moves);
	logits_learn(&mixture->next, experience, &moves);
	for (int i = 0; user && i < 2; i++)
		offsets_learn(&user->memories[i], experience, &moves);
}
