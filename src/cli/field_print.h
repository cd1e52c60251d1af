/* field_print.h - the value of a field as people read it, by its kind and unit */
#ifndef CLI_FIELD_PRINT_H
#define CLI_FIELD_PRINT_H

#include <jansson.h>

#include "base/buffer.h"
#include "resource/resource.h"

/* Appends the value; nothing where it is missing, null or empty. */
void field_print(struct buffer *to, const struct resource_field *field, const json_t *value);
/* True if numbers of the field are aligned to the right in a table. */
bool field_print_is_number(const struct resource_field *field);

#endif
