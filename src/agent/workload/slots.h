/* slots.h - servers of models: are they ready, are they well, what have they to do */
#ifndef AGENT_WORKLOAD_SLOTS_H
#define AGENT_WORKLOAD_SLOTS_H

#include "agent/workload/works.h"

/* In the loop's thread alone. Each slot is asked by HTTP through its proxy. Without a network
 * of its own it is asked only if every socket that listens on its server's port is held by a
 * process of its own group: another user may have been quicker. Until it answers that it is ready,
 * often; then once in a while whether it is well, and how many requests it has in flight. */
struct slots;

/* `address`: what others reach this node by. */
struct slots *slots_new(uv_loop_t *loop, const char *address,
                        void (*event)(void *context, enum input_kind kind,
                                      const struct work_event *event),
                        void *context);
void slots_free(struct slots *slots);
void slots_watch(struct slots *slots, int64_t reservation_id, const struct works_slot *slot);
void slots_forget(struct slots *slots, int64_t reservation_id);

/* What a page tells about requests in flight: vLLM's metrics, llama.cpp's slots; -1: nothing. */
int64_t slots_read_active(int32_t runtime, const char *page);

#endif
