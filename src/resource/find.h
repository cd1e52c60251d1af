/* find.h - fields by their names, in one step: a perfect hash for each resource, made when it is
 * built */
#ifndef RESOURCE_FIND_H
#define RESOURCE_FIND_H

#include "resource/resource.h"

enum { INDEX_SLOTS = 512, INDEX_FACTORS = 6 };

/* Each name of the resource has a slot of its own. A slot has the field's place plus 1; 0 is
 * free. */
struct name_index {
	uint32_t factors[INDEX_FACTORS];
	uint8_t slots[INDEX_SLOTS];
};

/* By the resource's id, printed by generate.c. */
extern const struct name_index name_indexes[RESOURCE_COUNT];

/* The slot of a name that is not empty: five of its bytes and its size tell all names apart. */
static inline uint32_t name_slot(const uint32_t factors[INDEX_FACTORS], const char *name,
                                 size_t size)
{
	const unsigned char *bytes = (const unsigned char *)name;
	uint32_t hash = (uint32_t)size * factors[0] + bytes[0] * factors[1] +
	                bytes[size > 1] * factors[2] + bytes[size / 2] * factors[3] +
	                bytes[size - 1 - size / 4] * factors[4] + bytes[size - 1] * factors[5];
	return hash >> 16 & (INDEX_SLOTS - 1);
}

#endif
