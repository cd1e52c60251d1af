/* benches.h - the benchmarks of the core, each for one part of the report */
#ifndef CORE_BENCH_BENCHES_H
#define CORE_BENCH_BENCHES_H

#include "core/bench/report.h"

/* Each measures at `size`, puts what it measured into the report and says in a
 * line on standard output what it was measured on. Seeds are fixed. */

/* One queue of 100,000 waiting jobs. */
void queue_bench(struct report *report, enum size size);
/* A cluster like that of the openb trace, with jobs arriving and ending all the
 * time. `trace` is the folder with its files: without them, one like it is made. */
void placement_bench(struct report *report, enum size size, const char *trace);
/* A gang of 4,096 tasks, placed in one pass. */
void gang_bench(struct report *report, enum size size);
/* 100,000 GPUs and a million waiting jobs. */
void big_bench(struct report *report, enum size size);
/* A full cluster of which most is reclaimed by others in one pass. */
void reclaim_bench(struct report *report, enum size size);
/* 1,000 warm models on 1,000 GPUs, and many requests. */
void route_bench(struct report *report, enum size size);
/* Run times predicted and learned after a million jobs have ended. */
void predict_bench(struct report *report, enum size size);
/* 1,000 GPUs full of idle slots, and requests for models that have none. */
void evict_bench(struct report *report, enum size size);

#endif
