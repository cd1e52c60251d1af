/* job_events.h - finds events of jobs in what listeners read */
#ifndef SERVER_BENCH_JOB_EVENTS_H
#define SERVER_BENCH_JOB_EVENTS_H

#include "wire/bench/listeners.h"

/* A listeners_take. An event that is cut off at the end of what was read is counted where
 * its topic and the name of its time are whole. */
void job_events_take(const char *data, size_t size, struct listeners_result *result);

#endif
