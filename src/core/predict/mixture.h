/* mixture.h - how long a job will take: experts, and how far each has been right */
#ifndef CORE_PREDICT_MIXTURE_H
#define CORE_PREDICT_MIXTURE_H

#include "core/predict/crowd.h"
#include "core/predict/experts.h"
#include "core/predict/guess.h"
#include "core/predict/lifetime.h"

/* Each voice speaks in a context: how many jobs it has seen, and how sure it is. */
#define CONTEXTS 24
/* Logits are base-2 logarithms in 1/65536. */
#define LOGIT_ONE 65536
#define LOGIT_MAX (12 * LOGIT_ONE)

/* A job that ended: what it is known by, what it took, and what voices had said of that. */
struct judged_voice {
	uint8_t voice, context, level;
	uint16_t weight;
};
struct experience {
	struct traits traits;
	int64_t took_ms, ended_ms;
	int64_t peers; /* jobs of its user that ran when it ended */
	int count;     /* of `voices`; 0: not known, then the weights stay */
	struct judged_voice voices[VOICES];
};

/* An online mixture of experts. All is integers: equal calls in equal order give equal
 * state on every machine. The past is cut into segments, of which the last whole one and
 * the current one are remembered; the current one by itself too, because when it is
 * whole, that is all that is left. */
struct mixture {
	struct experts experts;
	struct logits {
		int32_t of[VOICES][CONTEXTS];
	} now, next;
};

/* What is expected of a job. */
struct foresight {
	struct lifetime lifetime;
	int64_t samples;       /* jobs that the weightiest expert has seen */
	enum expert_kind kind; /* which expert that is; EXPERT_KINDS: none */
	int count;             /* of what follows: what each voice says */
	struct guess_voice voices[VOICES];
};

/* The first segment is 1. */
void mixture_init(struct mixture *mixture);
void mixture_free(struct mixture *mixture);
/* The current segment is whole, and the next one begins. */
void mixture_advance(struct mixture *mixture);

/* Who speaks about a job as of some time. Jobs with equal keys, which are never 0,
 * are expected to take equally long until the mixture learns again. */
struct audience {
	const struct memory *memories[EXPERT_KINDS]; /* of experts; NULL: there is none */
	struct crowd_view crowd[2];                  /* of the same size, of all sizes */
	int64_t limit_ms;
	uint64_t key;
};
/* Finds the experts, who stay the same until the mixture learns again. Nobody runs. */
void audience_gather(const struct mixture *mixture, const struct traits *traits,
                     struct audience *audience);
/* True if it is also the audience of a job that differs from its own in the name alone. */
bool audience_ignores_name(const struct audience *audience, const struct mixture *mixture,
                           const struct traits *traits);
/* Adds those who run; once. */
void audience_add_crowd(struct audience *audience, const struct crowd *crowd,
                        const struct traits *traits, int64_t now_ms);
/* What they expect. */
void mixture_hear(const struct mixture *mixture, const struct audience *audience,
                  struct foresight *foresight);
/* Both at once. */
void mixture_foresee(const struct mixture *mixture, const struct crowd *crowd,
                     const struct traits *traits, int64_t now_ms, struct foresight *foresight);
/* Its voices, to be kept with the job and freed with free(). */
struct guess *foresight_guess(const struct foresight *foresight);
/* What the guess said of the duration that came true. */
void guess_judge(const struct guess *guess, int64_t took_ms, struct experience *experience);

/* Learns from a job that ended, with `most` experts at the most (EXPERTS_MIN or more). */
void mixture_learn(struct mixture *mixture, const struct experience *experience, int64_t most);

#endif
