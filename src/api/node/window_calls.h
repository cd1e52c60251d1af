/* window_calls.h - windows: made, shown and deleted */
#ifndef API_NODE_WINDOW_CALLS_H
#define API_NODE_WINDOW_CALLS_H

#include "api/request/request.h"

/* Answers with a window, which is there as JSON in the request's body. */
typedef void window_shown(struct request *request);

/* Makes the window that `json` asks for. `object` is its path for the audit log. */
void window_calls_make(struct request *request, struct text json, const char *object,
                       window_shown *shown);
/* Shows the window of that name, or answers that there is none. */
void window_calls_find(struct request *request, struct text name, window_shown *shown);
/* Writes all of them into the request's body, as the list of REST. */
void window_calls_write_all(struct request *request);
void window_calls_remove(struct request *request, struct text name, const char *object,
                         void (*done)(struct engine_request *engine));

/* Over REST. */
void window_calls_create(struct request *request);
void window_calls_list(struct request *request);
void window_calls_get(struct request *request);
void window_calls_delete(struct request *request);

#endif
