/* measure.h - what processes and commands cost and say, for benchmarks */
#ifndef WIRE_BENCH_MEASURE_H
#define WIRE_BENCH_MEASURE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"

/* Processor time that a process has used so far, all its threads together. */
double process_cpu_s(pid_t process);

/* Runs a command and finds the number that follows (or, if `before`, precedes) a word in
 * its output, the first time; -1 if it is not there. */
double command_number(const char *command, const char *word, bool before);

#endif
