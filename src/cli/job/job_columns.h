/* job_columns.h - what tables say about a job */
#ifndef CLI_JOB_JOB_COLUMNS_H
#define CLI_JOB_JOB_COLUMNS_H

#include "cli/listing.h"

void job_column_id(struct session *session, struct table *table, const json_t *job);
void job_column_name(struct session *session, struct table *table, const json_t *job);
void job_column_tenant(struct session *session, struct table *table, const json_t *job);
void job_column_state(struct session *session, struct table *table, const json_t *job);
void job_column_gpus(struct session *session, struct table *table, const json_t *job);
void job_column_priority(struct session *session, struct table *table, const json_t *job);
void job_column_submitted(struct session *session, struct table *table, const json_t *job);
void job_column_node(struct session *session, struct table *table, const json_t *job);
void job_column_command(struct session *session, struct table *table, const json_t *job);

/* Whether it asks for a part of a GPU, by fraction or by memory. */
bool job_is_part(const json_t *job);
/* Appends what GPUs it asks for, as people write it: 4, 0.5, 20G, 2x(4), 40G+20G. */
void job_print_gpus(struct buffer *to, const json_t *job);
/* Appends what it runs. */
void job_print_command(struct buffer *to, const json_t *job);
/* The state as people want to read it: 'held' for one that waits to be released. */
const char *job_state(const json_t *job);

#endif
