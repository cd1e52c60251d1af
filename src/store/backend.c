/* backend.c - questions that are asked of either database */
#include "store/backend.h"

#include <stdio.h>
#include <string.h>

#include "base/number_text.h"
#include "store/cell.h"

static bool backend_take_number(void *context, const char *const *values, struct error *error)
{
	return !values[0] || number_read(text_of(values[0]), INT64_MIN, INT64_MAX, context) ||
	       error_set(error, ERROR_CORRUPT, "a number is stored as '%s'", values[0]);
}

bool backend_number(struct backend *backend, const char *sql, int64_t *number, struct error *error)
{
	return backend->query(backend, sql, backend_take_number, number, error);
}

bool backend_highest(struct backend *backend, int64_t highest[TABLES_MAX], struct error *error)
{
	for (int i = 0; i < backend->schema->count; i++) {
		const struct table *table = &backend->schema->tables[i];
		char sql[160];
		snprintf(sql, sizeof(sql), "SELECT max(\"%s\") FROM \"%s\"", table->columns[0].name,
		         table->name);
		highest[i] = INT64_MIN;
		if (!backend_number(backend, sql, &highest[i], error))
			return false;
	}
	return true;
}
