/* find.c - fields by their names */
#include "resource/find.h"

#include "base/text.h"

static bool field_is_named(const struct resource_field *field, const char *name, size_t size)
{
	return field->name_size == size && bytes_equal(field->name, name, size);
}

int resource_find(const struct resource *resource, const char *name, size_t size)
{
	if (size == 0)
		return -1;
	if (resource->id != RESOURCE_NESTED) {
		const struct name_index *index = &name_indexes[resource->id];
		int place = index->slots[name_slot(index->factors, name, size)] - 1;
		return place >= 0 && field_is_named(&resource->fields[place], name, size) ? place
		                                                                          : -1;
	}
	for (int i = 0; i < resource->field_count; i++)
		if (field_is_named(&resource->fields[i], name, size))
			return i;
	return -1;
}
