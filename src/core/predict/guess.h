/* guess.h - what was said of a job when it was submitted */
#ifndef CORE_PREDICT_GUESS_H
#define CORE_PREDICT_GUESS_H

#include <stddef.h>

#include "core/predict/experts.h"

/* What voices said when a job was submitted. The voices are judged by this when
 * it ends: what they would say by then may come from jobs that were submitted
 * with it. Bins of an octave, probabilities as 4 * log2. One piece of
 * memory; see guess_size(). */
#define GUESS_BIN_LOG (4 * BIN_LOG)
#define GUESS_BINS (DURATION_BINS * BIN_LOG / GUESS_BIN_LOG)
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

/* The level of a probability, which is in 1/PROBABILITY_ONE, and the middle of its range in
 * units that all levels share. */
uint8_t guess_level(uint64_t probability);
uint32_t guess_level_value(uint8_t level);

/* All that the voices said, by their weights. Without a voice all durations are equally
 * likely. */
void guess_durations(const struct guess *guess, struct distribution *durations);

#endif
