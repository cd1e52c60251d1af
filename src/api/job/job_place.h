/* job_place.h - where a task of a job runs */
#ifndef API_JOB_JOB_PLACE_H
#define API_JOB_JOB_PLACE_H

#include "api/read/catalogue.h"

enum { NODE_NAME_MAX = 256 };

/* The reservation that the task runs under, and the name of its node; 0: it does not run. The
 * catalogue is locked by the caller. */
int64_t job_place_find(struct catalogue *catalogue, const struct catalogue_job *job, int64_t number,
                       char node[NODE_NAME_MAX]);

#endif
