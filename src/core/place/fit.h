/* fit.h - what a request takes of a GPU, and what a search may take */
#ifndef CORE_PLACE_FIT_H
#define CORE_PLACE_FIT_H

#include "core/place/place.h"

/* MiB that the request takes of this GPU; for a whole one, all that is usable
 * beside tolerated foreign memory; of uneven parts the smallest; 1 where parts
 * add up to a total. */
int64_t fit_mib(const struct shape_request *request, const struct gpu *gpu);
/* The least that must be free for that: not all of a whole GPU that has more. */
int64_t fit_least_mib(const struct shape_request *request, const struct gpu *gpu);
/* A part of that size, with its share. */
struct part fit_part(const struct shape_request *request, struct gpu *gpu, int64_t mib);
/* How many parts of the search's the GPU has compute for, in its view; TASKS_MAX where it asks for
 * none and may take turns there. */
int64_t fit_compute_room(const struct placement *placement, const struct search *search,
                         const struct gpu *gpu);
/* Free for the search, in its view: of a GPU's memory, of CPU or host memory. */
int64_t fit_gpu_free(const struct search *search, const struct gpu *gpu);
int64_t fit_cpu_free(const struct search *search, const struct node *node);
int64_t fit_host_free(const struct search *search, const struct node *node);
/* Whether the GPU could be used if enough of it were free. */
bool fit_may_use(const struct placement *placement, const struct search *search,
                 const struct gpu *gpu);
/* The policy of the configuration. */
policy_score *fit_policy(const struct placement *placement);

#endif
