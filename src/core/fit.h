/* fit.h - what a request takes of a GPU, and what a search may take */
#ifndef CORE_FIT_H
#define CORE_FIT_H

#include "core/place.h"

/* MiB that the request takes of this GPU; for a whole one, all that is usable
 * beside tolerated foreign memory; of uneven parts the smallest. */
int64_t fit_mib(const struct request *request, const struct gpu *gpu);
/* A part of that size, with its share. */
struct part fit_part(const struct request *request, struct gpu *gpu, int64_t mib);
/* Free for the search, in its view: of a GPU's memory, of CPU or host memory. */
int64_t fit_gpu_free(const struct search *search, const struct gpu *gpu);
int64_t fit_host_free(const struct search *search, const struct host_books *books, int64_t total);
/* The policy of the configuration. */
policy_score *fit_policy(const struct sched *sched);

#endif
