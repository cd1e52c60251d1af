/* uuid.h - UUIDs of GPUs as text: "GPU-" or "MIG-" and 32 hexadecimal digits */
#ifndef GUARD_BUDGET_UUID_H
#define GUARD_BUDGET_UUID_H

#include <stdbool.h>
#include <stdint.h>

enum { UUID_TEXT_MAX = 41 };

/* Reads one, with or without its first four characters. False if it is none. */
bool uuid_parse(const char *text, uint8_t uuid[16]);

/* Writes one, beginning with `prefix` ("GPU-"). */
void uuid_format(const uint8_t uuid[16], const char *prefix, char text[UUID_TEXT_MAX]);

#endif
