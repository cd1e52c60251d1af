/* member.h - members of a JSON object, without complaints about what is missing */
#ifndef JSON_MEMBER_H
#define JSON_MEMBER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* For documents from a trusted source, such as the answers of the service. json_reader.h is for
 * input that may be wrong. A member that is missing, null or of another type reads as "", 0 or
 * false. `object` may be NULL or not an object: it then has no members. Strings live as long as
 * the document. */
const char *member_text(const json_t *object, const char *name);
/* Without its decimals; 0 if it does not fit 64 bits. */
int64_t member_integer(const json_t *object, const char *name);
double member_number(const json_t *object, const char *name);
bool member_flag(const json_t *object, const char *name);
/* A time (RFC 3339) in milliseconds since 1970; -1 if there is none. */
int64_t member_moment(const json_t *object, const char *name);
/* True if the member is there and not null. */
bool member_has(const json_t *object, const char *name);
/* The first of `names` (ends with NULL) that member_has() finds; NULL if it finds none. */
const char *member_first(const json_t *object, const char *const *names);
#define MEMBER_NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })

#endif
