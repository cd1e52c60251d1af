/* model_request.h - the model that options ask for */
#ifndef CLI_JOB_MODEL_REQUEST_H
#define CLI_JOB_MODEL_REQUEST_H

#include <jansson.h>

#include "cli/session.h"

/* The model as the service wants it (json_decref), but for its name and tenant; NULL with a
 * reason. Where a model's files are given, their memory is estimated. */
json_t *model_request(struct session *session, bool is_new, struct error *error);

#endif
