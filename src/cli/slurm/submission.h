/* submission.h - what sbatch and srun submit */
#ifndef CLI_SLURM_SUBMISSION_H
#define CLI_SLURM_SUBMISSION_H

#include "cli/slurm/program.h"
#include "slurm/request.h"

/* Warns of options that were given and have no effect. */
void submission_warn(const struct slurm_call *call, const struct slurm_asked *asked);

/* Submits a request, which is given away. The answer (json_decref); NULL, told. */
json_t *submission_send(struct slurm_call *call, json_t *job);

/* Fills in who submits: the directory, the environment, the time. */
void submission_begin(struct slurm_job *job, const struct slurm_asked *asked, char *directory,
                      size_t size);

/* The number of a job, without 'job-'. */
const char *submission_number(const char *id);

#endif
