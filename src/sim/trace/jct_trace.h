/* jct_trace.h - the jobs that share a cluster in jct, from either kind of trace */
#ifndef SIM_TRACE_JCT_TRACE_H
#define SIM_TRACE_JCT_TRACE_H

#include "sim/trace/jct.h"

/* Reads a trace like philly.csv or, if it has a column submit_s, a history of jobs with
 * users, of which jobs without GPUs do not count. False with a reason. To be freed with
 * philly_free() in any case. */
bool jct_trace_read(struct philly *philly, const char *path, struct error *error);

/* Stretches the time between submissions so that the jobs ask for `percent` of the GPU time
 * of the world until the last is submitted. If the world has no nodes yet it gets as many as
 * they ask for, and at the least what the largest job needs. */
void jct_trace_load(struct philly *philly, struct jct_world *world, int64_t percent);

#endif
