/* job_forecast.h - whether, when and where a job would start, before it is submitted */
#ifndef API_JOB_JOB_FORECAST_H
#define API_JOB_JOB_FORECAST_H

#include "api/request/request.h"

/* Answers what would become of the submission that was read into the request's command, which is
 * not made. */
void job_forecast(struct request *request);

#endif
