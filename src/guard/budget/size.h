/* size.h - sizes of memory as people write them */
#ifndef GUARD_BUDGET_SIZE_H
#define GUARD_BUDGET_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Reads "20G", "512M", "64K", "1T" or bytes; the units are powers of 1024. False if it
 * is none, or too large. */
bool size_parse(const char *text, int64_t *bytes);

/* Writes whole MiB with their unit, or "no limit". */
void size_format(int64_t bytes, char text[32]);

#endif
