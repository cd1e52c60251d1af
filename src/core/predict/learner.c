/* learner.c - a mixture that is a function of the last jobs that ended */
#include "core/predict/learner.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"

/* Jobs that arrive or start together are often alike. */
#define MEMO_ENTRIES 64
#define SECOND_MS 1000

struct memo {
	uint64_t keys[MEMO_ENTRIES]; /* 0: empty */
	struct foresight foresights[MEMO_ENTRIES];
	struct gathered {
		bool known;
		struct traits traits;
		struct audience audience; /* without those who run */
	} gathered[MEMO_ENTRIES];
};

void learner_init(struct learner *learner)
{
	*learner = (struct learner){ 0 };
	mixture_init(&learner->mixture);
}

void learner_free(struct learner *learner)
{
	mixture_free(&learner->mixture);
	free(learner->memo);
	*learner = (struct learner){ 0 };
}

int64_t learner_segment(const struct learner *learner)
{
	return learner->mixture.experts.segment;
}

bool learner_accepts(const struct learner *learner, int64_t now_ms)
{
	return now_ms / SECOND_MS != learner->second || learner->learned < LEARNED_PER_S;
}

static void memo_forget(struct learner *learner)
{
	if (!learner->memo)
		return;
	memset(learner->memo->keys, 0, sizeof(learner->memo->keys));
	for (int i = 0; i < MEMO_ENTRIES; i++)
		learner->memo->gathered[i].known = false;
}

static void learner_add(struct learner *learner, const struct experience *experience, int64_t most,
                        bool closes)
{
	int64_t second = experience->ended_ms / SECOND_MS;

	learner->learned = second == learner->second ? learner->learned + 1 : 1;
	learner->second = second;
	memo_forget(learner);
	mixture_learn(&learner->mixture, experience, most);
	learner->filled++;
	if (!closes)
		return;
	mixture_advance(&learner->mixture);
	learner->before = learner->filled;
	learner->filled = 0;
}

bool learner_learn(struct learner *learner, const struct experience *experience, int64_t most,
                   int64_t size)
{
	bool closes = learner->filled + 1 >= size;

	learner_add(learner, experience, most, closes);
	return closes;
}

void learner_replay(struct learner *learner, const struct experience *experience, int64_t most,
                    int64_t segment, bool closes)
{
	INVARIANT(segment == learner_segment(learner) || learner->filled + learner->before == 0);
	learner->mixture.experts.segment = segment;
	learner_add(learner, experience, most, closes);
}

static bool gathered_is_alike(const struct traits *a, const struct traits *b)
{
	return a->user == b->user && a->tenant == b->tenant && a->pattern == b->pattern &&
	       a->size == b->size && a->limit_ms == b->limit_ms &&
	       (a->pattern == a->name) == (b->pattern == b->name) &&
	       (a->name == 0) == (b->name == 0);
}

/* The experts for a job. Those of one user are often alike but for a number in their names. */
static void gather(const struct learner *learner, const struct traits *traits,
                   struct audience *audience)
{
	uint64_t hash =
	    traits->user ^ traits->pattern ^ (uint64_t)traits->size ^ (uint64_t)traits->limit_ms;
	struct gathered *gathered =
	    &learner->memo->gathered[hash_number(hash) & (MEMO_ENTRIES - 1)];

	if (!gathered->known || !gathered_is_alike(&gathered->traits, traits) ||
	    (gathered->traits.name != traits->name &&
	     !audience_ignores_name(&gathered->audience, &learner->mixture, traits))) {
		audience_gather(&learner->mixture, traits, &gathered->audience);
		gathered->traits = *traits;
		gathered->known = true;
	}
	*audience = gathered->audience;
}

const struct foresight *learner_foresee(struct learner *learner, const struct crowd *crowd,
                                        const struct traits *traits, int64_t now_ms, uint64_t *key)
{
	struct audience audience;

	if (!learner->memo)
		learner->memo = NEW(struct memo);
	gather(learner, traits, &audience);
	audience_add_crowd(&audience, crowd, traits, now_ms);
	*key = audience.key;
	size_t place = audience.key >> 1 & (MEMO_ENTRIES - 1);
	struct foresight *foresight = &learner->memo->foresights[place];
	if (learner->memo->keys[place] != audience.key)
		mixture_hear(&learner->mixture, &audience, foresight);
	learner->memo->keys[place] = audience.key;
	return foresight;
}

int64_t learner_experts(const struct learner *learner)
{
	return (int64_t)learner->mixture.experts.by_id.count;
}
