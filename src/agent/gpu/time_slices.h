/* time_slices.h - under how many names a Kubernetes device plugin advertises each GPU */
#ifndef AGENT_GPU_TIME_SLICES_H
#define AGENT_GPU_TIME_SLICES_H

#include <stdint.h>

/* From the text of the plugin's configuration: sharing.timeSlicing.resources[].replicas, the
 * largest; 1 where it shares nothing. They are names of a GPU, and never GPUs. */
int64_t time_slices_in(const char *text);
/* Like time_slices_in(), from a file; 1 if there is none. */
int64_t time_slices_read(const char *path);

#endif
