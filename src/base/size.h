/* size.h - amounts of memory in MiB, as people write and read them */
#ifndef BASE_SIZE_H
#define BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/text.h"

#define SIZE_MAX_MIB (INT64_C(1) << 40)

/* Reads 20G, 512M, 1.5T, 20GiB, 64k, or whole MiB without a unit, rounded up to MiB; units are
 * powers of 1024 in either case. False: it is none of these, 0, or more than SIZE_MAX_MIB. */
bool size_read(struct text text, int64_t *mib);
/* Appends 512M, 20G, 1.5T. */
void size_print(struct buffer *to, int64_t mib);

#endif
