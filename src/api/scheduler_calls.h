/* scheduler_calls.h - the requests about what the scheduler decided, loaded, and has waiting */
#ifndef API_SCHEDULER_CALLS_H
#define API_SCHEDULER_CALLS_H

#include "api/request/request.h"

void scheduler_calls_decisions(struct request *request);
void scheduler_calls_slots(struct request *request);
void scheduler_calls_queue(struct request *request);

#endif
