/* job_request.h - the job that options ask for */
#ifndef CLI_JOB_JOB_REQUEST_H
#define CLI_JOB_JOB_REQUEST_H

#include "cli/session.h"

/* The job as the service wants it (json_decref), but for its tenant; NULL with a reason. */
json_t *job_request(struct session *session, struct error *error);

/* Sets in `job` what options say, and leaves the rest. False with the reason. */
bool job_request_overlay(struct session *session, json_t *job, struct error *error);

#endif
