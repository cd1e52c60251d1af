/* job_page.h - all there is to say about a job */
#ifndef CLI_JOB_JOB_PAGE_H
#define CLI_JOB_JOB_PAGE_H

#include "cli/session.h"

/* Prints it. `events` is its history, `why` the sentences about it and `runs` when and where
 * its tasks ran; each may be NULL. */
void job_page_print(struct session *session, const json_t *job, const json_t *events,
                    const json_t *why, const json_t *runs);

#endif
