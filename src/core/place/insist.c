/* insist.c - the models of GPUs that jobs insist on, and how much they ask for */
#include "core/place/insist.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void insist_free(struct insist *insist)
{
	for (size_t i = 0; i < insist->count; i++)
		free(insist->models[i]);
	buffer_free(&insist->text);
	*insist = (struct insist){ .version = insist->version + 1 };
}

/* Makes the text that of the sets. */
static void spell(struct insist *insist)
{
	buffer_clear(&insist->text);
	for (size_t i = 0; i < insist->count; i++)
		buffer_print(&insist->text, "%s%s", i > 0 ? "\n" : "", insist->models[i]);
}

static void drop(struct insist *insist, size_t at)
{
	INVARIANT(at < insist->count);
	free(insist->models[at]);
	insist->count--;
	for (size_t i = at; i < insist->count; i++) {
		insist->models[i] = insist->models[i + 1];
		insist->milli[i] = insist->milli[i + 1];
	}
}

static size_t least_asked(const struct insist *insist)
{
	size_t least = 0;

	for (size_t i = 1; i < insist->count; i++)
		if (insist->milli[i] < insist->milli[least])
			least = i;
	return least;
}

static void append(struct insist *insist, const char *models, size_t size, int64_t milli)
{
	char *copy = memory_alloc(size + 1);

	INVARIANT(insist->count < INSIST_SETS && milli > 0);
	memcpy(copy, models, size);
	copy[size] = '\0';
	insist->models[insist->count] = copy;
	insist->milli[insist->count++] = milli;
}

void insist_add(struct insist *insist, const char *models, int64_t milli)
{
	size_t at = 0;

	INVARIANT(*models != '\0' && insist->count <= INSIST_SETS);
	if (milli <= 0 || strchr(models, '\n')) /* no model has a name of two lines */
		return;
	insist->version++;
	while (at < insist->count && strcmp(insist->models[at], models) != 0)
		at++;
	if (at < insist->count) {
		insist->milli[at] += milli;
		return;
	}
	if (insist->count == INSIST_SETS)
		drop(insist, least_asked(insist));
	append(insist, models, strlen(models), milli);
	spell(insist);
}

void insist_halve(struct insist *insist)
{
	insist->version++;
	for (size_t i = insist->count; i-- > 0;) {
		insist->milli[i] /= 2;
		if (insist->milli[i] == 0)
			drop(insist, i);
	}
	spell(insist);
}

static int64_t count_lines(const char *text)
{
	int64_t lines = *text != '\0';

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static bool check(const char *text, struct rows rows, int64_t most, struct error *error)
{
	if (rows.count < 0 || rows.count > INSIST_SETS || rows.count != count_lines(text))
		return error_set(error, ERROR_CORRUPT,
		                 "the mix has %" PRId64 " sets of models and %" PRId64
		                 " amounts for them, it can have 0 to %d",
		                 count_lines(text), rows.count, INSIST_SETS);
	for (int64_t i = 0; i < rows.count; i++)
		if (rows.at[i] < 1 || rows.at[i] > most)
			return error_set(error, ERROR_CORRUPT,
			                 "set %" PRId64 " of models in the mix asks for %" PRId64
			                 " thousandths of GPUs, it can ask for 1 to %" PRId64,
			                 i + 1, rows.at[i], most);
	return true;
}

bool insist_load(struct insist *insist, const char *text, struct rows rows, int64_t most,
                 struct error *error)
{
	if (!text)
		text = "";
	if (!check(text, rows, most, error))
		return false;
	insist_free(insist);
	for (int64_t i = 0; i < rows.count; i++) {
		size_t size = strcspn(text, "\n");
		append(insist, text, size, rows.at[i]);
		text += size + 1;
	}
	spell(insist);
	return true;
}

const char *insist_text(const struct insist *insist)
{
	return insist->count > 0 ? insist->text.data : "";
}

struct rows insist_rows(const struct insist *insist)
{
	return (struct rows){ .at = insist->milli, .count = (int64_t)insist->count };
}
