/* gpu_watch.h - which GPUs have changed since somebody last looked */
#ifndef API_LIVE_GPU_WATCH_H
#define API_LIVE_GPU_WATCH_H

#include "api/read/identity.h"
#include "wire/text/json_writer.h"

struct service;

/* What was seen of each GPU, so that only what differs is told again. */
struct gpu_watch;

struct gpu_watch *gpu_watch_new(const struct service *service);
void gpu_watch_free(struct gpu_watch *watch);

/* Compares with the look before; true: there is something to tell. */
bool gpu_watch_look(struct gpu_watch *watch);
/* The changes of the last look, as members of an object: `gpus`, those whose ledger changed,
 * with their owners as far as the identity may see them; and `samples`, by UUID:
 * [temperature in °C, power in W, utilization from 0 to 1, memory in MiB]. */
void gpu_watch_write(const struct gpu_watch *watch, struct json_writer *json,
                     const struct identity *identity);

#endif
