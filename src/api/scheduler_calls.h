/* scheduler_calls.h - the requests about what the scheduler decided, loaded, and has waiting */
#ifndef API_SCHEDULER_CALLS_H
#define API_SCHEDULER_CALLS_H

#include "api/request/call.h"

void scheduler_calls_decisions(struct call *call);
void scheduler_calls_slots(struct call *call);
void scheduler_calls_queue(struct call *call);

#endif
