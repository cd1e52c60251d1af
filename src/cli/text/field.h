/* field.h - what is in the answers of the service, taken without fuss */
#ifndef CLI_TEXT_FIELD_H
#define CLI_TEXT_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* "" where there is none; 0, false, -1 likewise. A null is as good as none. */
const char *field_text(const json_t *object, const char *key);
int64_t field_integer(const json_t *object, const char *key);
double field_number(const json_t *object, const char *key);
bool field_flag(const json_t *object, const char *key);
/* A moment in milliseconds since 1970; -1: there is none. */
int64_t field_moment(const json_t *object, const char *key);
/* Whether it is there and not null. */
bool field_has(const json_t *object, const char *key);

#endif
