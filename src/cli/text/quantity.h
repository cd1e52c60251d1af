/* quantity.h - sizes, durations and moments as people write and read them */
#ifndef CLI_TEXT_QUANTITY_H
#define CLI_TEXT_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/* Memory in MiB, rounded up: 20G, 512M, 1.5T, 20GiB, 20000 (MiB). `name` is the option. */
bool quantity_memory(const char *name, const char *text, int64_t *mib, struct error *error);
/* A duration in milliseconds: 90m, 2h30m, 1d, 45s, 1d12h, 90 (seconds), 2:00:00, 1-12:00:00.
 * More than none. */
bool quantity_duration(const char *name, const char *text, int64_t *ms, struct error *error);
/* A decimal with at most three digits after the point, in thousandths: 0.5 is 500. */
bool quantity_thousandths(const char *name, const char *text, int64_t most, int64_t *thousandths,
                          struct error *error);
/* A whole number from `least` to `most`. */
bool quantity_integer(const char *name, const char *text, int64_t least, int64_t most,
                      int64_t *number, struct error *error);

/* A moment of RFC 3339 (2026-01-31T12:00:00.25Z) in milliseconds since 1970; -1: it is none. */
int64_t quantity_moment(const char *text);
/* A moment as an option gives it: as above, or without a time zone (2026-01-31T12:00, 2026-01-31
 * 12:00:30) the local time of this machine; -1: it is none. */
int64_t quantity_local_moment(const char *text);
/* The moment of --since: one of those, or so long ago. */
bool quantity_since(const char *name, const char *text, int64_t *unix_ms, struct error *error);
/* Appends a moment as people at this machine read it: today 14:05:09, else 31 Jan 14:05. */
void quantity_print_moment(struct buffer *to, int64_t ms);
/* Appends a text of the service with its moments (2026-01-31T12:00:00Z) as the same people read
 * them, and without what would command a terminal. */
void quantity_print_sentence(struct buffer *to, const char *text);

#endif
