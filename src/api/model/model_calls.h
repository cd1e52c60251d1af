/* model_calls.h - the requests about models */
#ifndef API_MODEL_MODEL_CALLS_H
#define API_MODEL_MODEL_CALLS_H

#include "api/request/request.h"

void model_calls_create(struct request *request);
void model_calls_list(struct request *request);
void model_calls_get(struct request *request);
void model_calls_put(struct request *request);
void model_calls_delete(struct request *request);
void model_calls_evict(struct request *request);
void model_calls_why(struct request *request);

/* The model of the path, by id or name, the caller's to use; or answers 404. */
bool model_calls_of_path(struct request *request, int64_t *id);

void model_calls_logs(struct request *request);

#endif
