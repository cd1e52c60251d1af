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

/* Stopping replicas of a model by hand. */
struct model_eviction {
	struct text model;  /* its id or name */
	struct text node;   /* without data or empty: all nodes */
	bool now;           /* without waiting for requests in flight */
	const char *object; /* its path, for the audit log */
};
void model_calls_evict_named(struct request *request, const struct model_eviction *eviction,
                             void (*done)(struct engine_request *engine));
/* What comes of it, in a sentence. */
const char *model_calls_evicted_message(const struct engine_request *engine);

/* The model of the path, by id or name, the caller's to use; or answers 404. */
bool model_calls_of_path(struct request *request, int64_t *id);

void model_calls_logs(struct request *request);

#endif
