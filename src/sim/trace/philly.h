/* philly.h - the trace of a training cluster: jobs that arrive and end */
#ifndef SIM_TRACE_PHILLY_H
#define SIM_TRACE_PHILLY_H

#include <stddef.h>

#include "base/memory.h"
#include "sim/world/csv.h"

/* A job of the trace: columns timestamp (2017-10-09 07:01:55), duration in seconds,
 * num_gpus and cluster; others are not read. */
struct philly_job {
	int64_t submit_ms; /* since 1970, as if the trace's time were UTC */
	int64_t duration_ms;
	int64_t gpus;
	size_t cluster;          /* its virtual cluster */
	const char *user, *name; /* NULL: the trace has none */
	int64_t limit_ms;        /* 0: none */
};

/* By time, in the order of the list among equals. */
struct philly {
	struct philly_job *jobs;
	size_t count, capacity;
	const char **clusters; /* their names, in the order in which they come up */
	size_t cluster_count, cluster_capacity;
	struct arena arena; /* has the names */
};

/* Which jobs of a trace count: submitted on or between two days ("2017-10-01"), in a
 * virtual cluster of the list, which has blanks between names; NULL: all. */
struct philly_choice {
	const char *from_day, *to_day, *clusters;
};
/* The eleven virtual clusters and two months that keep 512 GPUs busy. */
extern const struct philly_choice philly_usual;

/* Reads the rows that count. A trace that has nothing of the usual choice is taken
 * as a whole where that was asked for. False with a reason that names the line. To
 * be freed in any case. */
bool philly_read_rows(struct philly *philly, struct csv *csv, const struct philly_choice *choice,
                      struct error *error);
bool philly_read(struct philly *philly, const char *path, const struct philly_choice *choice,
                 struct error *error);
void philly_free(struct philly *philly);

#endif
