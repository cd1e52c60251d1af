/* mixture.h - how long a job will take: experts, and how far each has been right */
#ifndef CORE_PREDICT_MIXTURE_H
#define CORE_PREDICT_MIXTURE_H

#include "core/predict/crowd.h"
#include "core/predict/experts.h"
#include "core/predict/lifetime.h"

/* Each voice speaks in a context: how many jobs it has seen, and how sure it is. */
#define CONTEXTS 24
/* Logits are base-2 logarithms in 1/65536. */
#define LOGIT_ONE 65536
#define LOGIT_MAX (12 * LOGIT_ONE)

/* What voices said when a job was submitted. The voices are judged by this when
 * it ends: what they would say by then may come from jobs that were submitted
 * with it. Bins of half an octave, probabilities as 4 * log2. One piece of
 * memory; see guess_size(). */
#define GUESS_BINS (DURATION_BINS / 2)
#define GUESS_LEVELS 64
struct guess_voice {
	uint8_t voice, context;
	uint16_t weight; /* of 65535 */
	uint8_t levels[GUESS_BINS];
};
struct guess {
	int count;
	struct guess_voice voices[];
};
/* The size of a guess with this many voices. */
size_t guess_size(int count);

/* An online mixture of experts. `learned` counts the jobs learned from. All is
 * integers: equal calls in equal order give equal state on every machine. */
struct mixture {
	struct experts experts;
	struct crowd crowd;
	int64_t learned;
	int32_t logits[VOICES][CONTEXTS];
};

/* What is expected of a job. */
struct foresight {
	struct lifetime lifetime;
	int64_t samples;   /* jobs that the weightiest expert has seen */
	const char *basis; /* which expert that is: for people */
	int count;         /* of what follows: what each voice says */
	struct guess_voice voices[VOICES];
};

void mixture_init(struct mixture *mixture, int64_t capacity);
void mixture_free(struct mixture *mixture);

/* What is expected of a job as of `now_ms`. */
void mixture_foresee(const struct mixture *mixture, const struct traits *traits, int64_t now_ms,
                     struct foresight *foresight);
/* Its voices, to be kept with the job and freed with free(). */
struct guess *foresight_guess(const struct foresight *foresight);

/* Experts that make room for a new one: two, so that their number falls to the
 * capacity where that was lowered. */
#define EVICTIONS 2

/* What mixture_learn() changed besides the logits.. */
struct learned {
	struct expert *experts[EXPERT_KINDS];
	int count;
	int64_t evicted[EVICTIONS * EXPERT_KINDS]; /* ids */
	int evicted_count;
};

/* Learns that a job took `took_ms`. `guess` is what was said when it was submitted;
 * NULL: not known, then the weights stay. The job may still be part of the crowd. */
void mixture_learn(struct mixture *mixture, const struct traits *traits, const struct guess *guess,
                   int64_t took_ms, struct learned *learned);

/* The logit that a voice begins with. */
int32_t logit_initial(int voice);

#endif
