/* job_json.h - a job as people send it, made into a command */
#ifndef API_JOB_JOB_JSON_H
#define API_JOB_JOB_JSON_H

#include "api/read/roster.h"
#include "core/record/command.h"
#include "seal/secret.h"
#include "wire/text/json_scan.h"

/* What reading a job needs beside its text. */
struct job_reading {
	struct arena *arena;   /* of what the command points to */
	struct buffer *buffer; /* to write the payload in; used again and again */
	const struct roster *roster;
	const struct identity *identity;       /* who asks */
	const struct secret_keys *secret_keys; /* NULL: secret_environment is refused */
	int64_t node_gpus;       /* of the largest node; 0: unknown. A larger gang is split */
	struct text key;         /* an idempotency key from the headers; data NULL: none */
	int64_t key_hash;        /* of the request that it came with; 0: it does not matter */
	bool check_possible;     /* where the job does not say */
	bool may_notify;         /* jobs may name recipients of notifications */
	bool may_notify_private; /* also in a private network */
	const char *notify_only; /* domains and addresses, with commas; empty or NULL: any */
};

/* Reads one object at the scan's place and leaves it behind. False with a sentence that
 * names the field and what would be right: ERROR_INVALID, ERROR_NOT_FOUND for a tenant that
 * is not there or not the caller's to see, ERROR_FORBIDDEN. */
bool job_json_read(struct json_scan *scan, const struct job_reading *reading,
                   struct submit_command *submit, struct error *error);

/* The context in which the secrets of a tenant's jobs are sealed. */
void job_secret_context(char out[32], int64_t tenant_id);

#endif
