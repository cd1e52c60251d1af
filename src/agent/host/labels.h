/* labels.h - what is said about a node, as the scheduler wants it: sorted lines */
#ifndef AGENT_HOST_LABELS_H
#define AGENT_HOST_LABELS_H

#include "base/error.h"
#include "base/memory.h"

/* "rack=7,disk=nvme" and more of the same to lines of key=value, sorted by their bytes, each key
 * once: what comes later counts. `list` may be NULL. NULL with a reason where it is not that. */
const char *labels_read(struct arena *arena, const char *list, const char *address,
                        struct error *error);

#endif
