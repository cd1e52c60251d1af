/* request.h - the job that options of Slurm ask for, as the service wants it */
#ifndef SLURM_REQUEST_H
#define SLURM_REQUEST_H

#include <jansson.h>
#include <stdint.h>

#include "slurm/asked.h"

/* What a request is made of. `script` and `command` exclude each other. */
struct slurm_job {
	const struct slurm_asked *asked;
	const char *script; /* its text; NULL: none */
	size_t script_size;
	const char *script_name;    /* for the job's name; NULL: none */
	const char *const *command; /* or the script's arguments */
	size_t command_count;
	const char *directory;    /* where it is submitted */
	char *const *environment; /* of the caller, NAME=VALUE; ends with NULL */
	int64_t now_ms;
};

/* The request (json_decref), without its tenant unless --account names one. NULL with a reason.
 * A job of several nodes or tasks becomes one job with that many tasks, each of which runs the
 * script or the command. */
json_t *slurm_request(const struct slurm_job *job, struct error *error);

#endif
