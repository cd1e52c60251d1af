/* depends.h - the jobs that a job depends on */
#ifndef CORE_QUEUE_DEPENDS_H
#define CORE_QUEUE_DEPENDS_H

#include "core/record/record.h"

struct job;
struct sched;

/* Where a walk over dependencies is; begins as zeros. */
struct dependency_walk {
	int64_t row, element;
};

/* The next job in memory that the record depends on, alone or as part of an array, with the kind
 * of the dependency; NULL: there is no other. A job that is named twice comes twice. */
struct job *dependency_next(const struct sched *sched, const struct job_record *record,
                            struct dependency_walk *walk, enum dependency *kind);

#endif
