/* model_calls.h - the requests about models */
#ifndef API_MODEL_MODEL_CALLS_H
#define API_MODEL_MODEL_CALLS_H

#include "api/request/call.h"

void model_calls_create(struct call *call);
void model_calls_list(struct call *call);
void model_calls_get(struct call *call);
void model_calls_put(struct call *call);
void model_calls_delete(struct call *call);
void model_calls_why(struct call *call);

/* The model of the path, by id or name, the caller's to use; or answers 404. */
bool model_calls_of_path(struct call *call, int64_t *id);

#endif
