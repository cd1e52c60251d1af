/* measurement.h - readings of the GPUs, taken in a thread of their own */
#ifndef AGENT_WORKLOAD_MEASUREMENT_H
#define AGENT_WORKLOAD_MEASUREMENT_H

#include <uv.h>

#include "agent/gpu/gpu_source.h"
#include "agent/workload/works.h"

/* One is taken at a time. Asked for while one is taken, another begins when that is done. */
struct measurements;

/* The source and `mps`, which may be NULL, become theirs. `done` is called in the loop's thread;
 * what it is given is valid until it returns. */
struct measurements *measurements_new(uv_loop_t *loop, struct gpu_source *source,
                                      const struct works *works, const struct cgroups *cgroups,
                                      struct mps *mps,
                                      void (*done)(void *context, const struct measured *measured),
                                      void *context);
/* One that is being taken is waited for by the loop, and told to nobody. */
void measurements_free(struct measurements *measurements);
/* Begins one that has seen all that has happened up to now. */
void measurements_ask(struct measurements *measurements, int64_t number);

/* Begins one that has seen all that has happened up to now, without a number: `done` is called for
 * it with measurements_told() at least what this gives. */
int64_t measurements_ask_now(struct measurements *measurements);
/* Counts the measurements that have begun, up to the one that `done` is told of. */
int64_t measurements_told(const struct measurements *measurements);

#endif
