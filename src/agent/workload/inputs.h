/* inputs.h - the standard input of tasks, as it comes from the scheduler */
#ifndef AGENT_WORKLOAD_INPUTS_H
#define AGENT_WORKLOAD_INPUTS_H

#include <uv.h>

#include "agent/uplink/envelope.h"
#include "agent/workload/works.h"

/* In the loop's thread alone. Each part is answered once, when all of it is in the FIFO of the
 * work (see keeper/input.h), when the work reads no more, or when it is stopped. At most one part
 * of a work is held; a new one answers the one before. How far a work's input was written outlives
 * the agent. */
struct inputs;

struct inputs *inputs_new(uv_loop_t *loop, const struct works *works,
                          void (*send)(void *context, const struct envelope *envelope),
                          void *context);
void inputs_free(struct inputs *inputs);

void inputs_take(struct inputs *inputs, const struct input_chunk *chunk);
void inputs_stop(struct inputs *inputs, int64_t request_id);
/* The connection that parts came by is gone: nobody waits for their answers. */
void inputs_clear(struct inputs *inputs);
/* The work is gone. */
void inputs_forget(struct inputs *inputs, int64_t reservation_id);

#endif
