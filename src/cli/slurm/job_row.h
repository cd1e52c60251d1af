/* job_row.h - a job as squeue, sacct and scontrol show it */
#ifndef CLI_SLURM_JOB_ROW_H
#define CLI_SLURM_JOB_ROW_H

#include "cli/slurm/program.h"

/* What a column prints from. */
struct job_row {
	struct session *session;
	const json_t *job;
	int64_t now_ms;
};

/* Columns by the letters of squeue and the names of sacct. */
extern const struct slurm_column job_columns[];

/* Slurm's word for a state: RUNNING, PENDING, TIMEOUT, ... */
const char *job_row_state(const json_t *job);
/* The short form: R, PD, TO, ... */
const char *job_row_short_state(const json_t *job);
/* The states of ours that can be one of Slurm's in a list such as 'R,PD' ("pending,running"), in
 * a buffer; false with a reason for a word that is none. */
bool job_row_states(const char *list, struct buffer *states, struct error *error);

/* A local time as Slurm prints it, or 'N/A' for none. */
void job_row_time(struct buffer *to, int64_t unix_ms);

#endif
