/* window_calls.h - windows: made, shown and deleted */
#ifndef API_NODE_WINDOW_CALLS_H
#define API_NODE_WINDOW_CALLS_H

#include "api/request/request.h"

void window_calls_create(struct request *request);
void window_calls_list(struct request *request);
void window_calls_get(struct request *request);
void window_calls_delete(struct request *request);

#endif
