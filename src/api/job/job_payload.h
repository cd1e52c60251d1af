/* job_payload.h - what the core does not read of a job: what to run, and with what */
#ifndef API_JOB_JOB_PAYLOAD_H
#define API_JOB_JOB_PAYLOAD_H

#include "resource/resource.h"
#include "seal/secret.h"
#include "wire/text/json_scan.h"
#include "wire/text/json_writer.h"

/* A payload that is being written: a JSON object with the members that were given, as they
 * were given. Secrets wait, as they stand, until the tenant is known. */
struct job_payload {
	struct buffer *buffer;
	bool may_notify, may_notify_private; /* the caller's: as in struct job_reading */
	const char *notify_only;             /* the same */
	bool has_items;
	bool has_work; /* a command, a script or an image */
	bool has_image;
	uint64_t program;              /* hash of these; 0: none */
	struct text secrets;           /* data NULL: none */
	struct text notify, notify_on; /* as they stand; data NULL: none. They come first, so that
	                                  who looks for them need not read the rest */
};

void job_payload_begin(struct job_payload *payload, struct buffer *buffer);
/* Reads the value of a field that is kept in the payload. False with a reason that names it. */
bool job_payload_member(struct job_payload *payload, const struct resource_field *field,
                        struct json_scan *scan, struct error *error);
/* Seals the secrets, and copies the whole into the arena; "" where nothing was given. */
bool job_payload_finish(struct job_payload *payload, const struct secret_keys *keys,
                        int64_t tenant_id, struct arena *arena, const char **text,
                        struct error *error);

/* Appends the members of a payload to an object that is open, for people: secrets are
 * shown as "sealed". What is not a payload is left out. */
void job_payload_show(struct json_writer *json, const char *payload, struct arena *arena);

/* A member of the payload that is a text; data NULL: there is none. */
struct text job_payload_text(const char *payload, struct text name, struct arena *arena);
/* The value of a label in the payload, or data NULL. */
struct text job_payload_label(const char *payload, struct text name, struct arena *arena);

#endif
