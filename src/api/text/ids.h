/* ids.h - "job-12" and back */
#ifndef API_TEXT_IDS_H
#define API_TEXT_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "wire/text/json_writer.h"

/* What an id begins with. */
#define ID_JOB "job-"
#define ID_TENANT "tenant-"
#define ID_MODEL "model-"
#define ID_SLOT "slot-"
#define ID_LEASE "lease-"
#define ID_DECISION "decision-"

/* Reads "job-12", or a bare "12". False: it is neither, or not from 1 to INT64_MAX. */
bool id_read(struct text text, const char *prefix, int64_t *id);

/* Writes it, with a NUL behind it; returns the size without that. */
enum { ID_TEXT_MAX = 32 };
size_t id_write(char out[ID_TEXT_MAX], const char *prefix, int64_t id);
/* Writes the id as a value of JSON; null for 0. */
void json_put_id(struct json_writer *json, const char *key, const char *prefix, int64_t id);

#endif
