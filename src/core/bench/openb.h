/* openb.h - the nodes and tasks of the openb trace, or some that are like them */
#ifndef CORE_BENCH_OPENB_H
#define CORE_BENCH_OPENB_H

#include "core/bench/fixture.h"

struct openb_task {
	int gpus;
	int milli; /* thousandths of each GPU */
	int64_t cpu_milli, host_mib;
};

struct openb {
	struct node_kind *nodes;
	size_t node_count, node_capacity;
	struct openb_task *tasks;
	size_t task_count, task_capacity;
	bool from_trace;
};

/* Reads the trace from its folder or, if it is not there, makes the same nodes
 * and as many tasks of each of the most frequent kinds. */
void openb_read(struct openb *openb, const char *folder);
void openb_free(struct openb *openb);

#endif
