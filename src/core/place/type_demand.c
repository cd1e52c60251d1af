/* type_demand.c - the models of GPUs that jobs insist on, and how much they ask for */
#include "core/place/type_demand.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void type_demand_free(struct type_demand *type_demand)
{
	for (size_t i = 0; i < type_demand->count; i++)
		free(type_demand->models[i]);
	buffer_free(&type_demand->text);
	*type_demand = (struct type_demand){ .version = type_demand->version + 1 };
}

/* Makes the text that of the sets. */
static void spell(struct type_demand *type_demand)
{
	buffer_clear(&type_demand->text);
	for (size_t i = 0; i < type_demand->count; i++)
		buffer_print(&type_demand->text, "%s%s", i > 0 ? "\n" : "", type_demand->models[i]);
}

static void type_demand_drop(struct type_demand *type_demand, size_t at)
{
	INVARIANT(at < type_demand->count);
	free(type_demand->models[at]);
	type_demand->count--;
	for (size_t i = at; i < type_demand->count; i++) {
		type_demand->models[i] = type_demand->models[i + 1];
		type_demand->milli[i] = type_demand->milli[i + 1];
	}
}

static size_t least_asked(const struct type_demand *type_demand)
{
	size_t least = 0;

	for (size_t i = 1; i < type_demand->count; i++)
		if (type_demand->milli[i] < type_demand->milli[least])
			least = i;
	return least;
}

static void type_demand_append(struct type_demand *type_demand, const char *models, size_t size,
                               int64_t milli)
{
	char *copy = memory_alloc(size + 1);

	INVARIANT(type_demand->count < TYPE_DEMAND_SETS && milli > 0);
	memcpy(copy, models, size);
	copy[size] = '\0';
	type_demand->models[type_demand->count] = copy;
	type_demand->milli[type_demand->count++] = milli;
}

void type_demand_add(struct type_demand *type_demand, const char *models, int64_t milli)
{
	size_t at = 0;

	INVARIANT(*models != '\0' && type_demand->count <= TYPE_DEMAND_SETS);
	if (milli <= 0 || strchr(models, '\n')) /* no model has a name of two lines */
		return;
	type_demand->version++;
	while (at < type_demand->count && strcmp(type_demand->models[at], models) != 0)
		at++;
	if (at < type_demand->count) {
		type_demand->milli[at] += milli;
		return;
	}
	if (type_demand->count == TYPE_DEMAND_SETS)
		type_demand_drop(type_demand, least_asked(type_demand));
	type_demand_append(type_demand, models, strlen(models), milli);
	spell(type_demand);
}

void type_demand_halve(struct type_demand *type_demand)
{
	type_demand->version++;
	for (size_t i = type_demand->count; i-- > 0;) {
		type_demand->milli[i] /= 2;
		if (type_demand->milli[i] == 0)
			type_demand_drop(type_demand, i);
	}
	spell(type_demand);
}

static int64_t count_lines(const char *text)
{
	int64_t lines = *text != '\0';

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static bool type_demand_check(const char *text, struct rows rows, int64_t most, struct error *error)
{
	if (rows.count < 0 || rows.count > TYPE_DEMAND_SETS || rows.count != count_lines(text))
		return error_set(error, ERROR_CORRUPT,
		                 "the mix has %" PRId64 " sets of models and %" PRId64
		                 " amounts for them, it can have 0 to %d",
		                 count_lines(text), rows.count, TYPE_DEMAND_SETS);
	for (int64_t i = 0; i < rows.count; i++)
		if (rows.at[i] < 1 || rows.at[i] > most)
			return error_set(error, ERROR_CORRUPT,
			                 "set %" PRId64 " of models in the mix asks for %" PRId64
			                 " thousandths of GPUs, it can ask for 1 to %" PRId64,
			                 i + 1, rows.at[i], most);
	return true;
}

bool type_demand_load(struct type_demand *type_demand, const char *text, struct rows rows,
                      int64_t most, struct error *error)
{
	if (!text)
		text = "";
	if (!type_demand_check(text, rows, most, error))
		return false;
	type_demand_free(type_demand);
	for (int64_t i = 0; i < rows.count; i++) {
		size_t size = strcspn(text, "\n");
		type_demand_append(type_demand, text, size, rows.at[i]);
		text += size + 1;
	}
	spell(type_demand);
	return true;
}

const char *type_demand_text(const struct type_demand *type_demand)
{
	return type_demand->count > 0 ? type_demand->text.data : "";
}

struct rows type_demand_rows(const struct type_demand *type_demand)
{
	return (struct rows){ .at = type_demand->milli, .count = (int64_t)type_demand->count };
}
