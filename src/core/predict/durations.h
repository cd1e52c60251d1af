/* durations.h - durations on a logarithmic scale, in integers */
#ifndef CORE_PREDICT_DURATIONS_H
#define CORE_PREDICT_DURATIONS_H

#include <stdint.h>

/* Durations are multiplicative: twice as long is as far off as half as long.
 * The scale is log2(ms) in 1/1024, cut into bins of a quarter octave, from
 * 256 ms to 49 days. What is shorter or longer counts for the outermost bin. */
#define LOG_BITS 10
#define LOG_ONE (1 << LOG_BITS)
#define LOG_MAX (63 * LOG_ONE)

#define DURATION_BINS 96
#define BIN_LOG (LOG_ONE / 4)       /* width of a bin */
#define BIN_LOG_FIRST (8 * LOG_ONE) /* where the first one begins */

/* log2(value) in 1/LOG_ONE, to the nearest; value > 0. */
int32_t log_of(int64_t value);
/* 2^(log/LOG_ONE), to the nearest; log >= 0. Saturates at INT64_MAX. */
int64_t power_of(int32_t log);

/* Where a duration is on the scale, in 1/BIN_LOG of a bin: 0 to
 * DURATION_BINS * BIN_LOG - 1. */
int32_t duration_place(int64_t duration_ms);
/* The bin of that place, which is found sooner. */
int32_t duration_bin(int64_t duration_ms);
/* The duration at a place; 0 <= place <= DURATION_BINS * BIN_LOG. */
int64_t duration_at(int32_t place);

#endif
