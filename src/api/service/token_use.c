/* token_use.c - tokens of models that were used, by day: kept, loaded, summed up */
#include "api/service/token_use.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/calendar.h"
#include "base/clock.h"
#include "base/map.h"
#include "core/tenant/tenant.h"

#define DAY_MS INT64_C(86400000)

enum { KEY_TEXT_MAX = 96 };

/* What was used on a day by a tenant with a key of a model and its adapter. */
struct token_row {
	int64_t day, tenant_id, model_id, owner_id; /* owner: the model's tenant, at the last */
	char key[KEY_TEXT_MAX], adapter[KEY_TEXT_MAX];
	struct token_use use;
};

struct token_uses {
	struct text_map rows;   /* of struct token_row, by their names */
	struct text_map totals; /* of struct token_total, by tenant/model */
	struct text_map months; /* of struct key_month, by key */
	int64_t month;          /* of `months` */
};

/* In all time, for metrics. */
struct token_total {
	int64_t tenant_id, model_id;
	struct token_use use;
};

/* What a key cost in the month. */
struct key_month {
	int64_t cost;
};

int64_t token_uses_of_key(const struct token_uses *uses, const char *key)
{
	const struct key_month *month = text_map_get(&uses->months, key);

	return month && uses->month == month_of(clock_unix_ms()) ? month->cost : 0;
}

void token_use_add(struct token_use *to, const struct token_use *more)
{
	to->requests += more->requests;
	to->prompt += more->prompt;
	to->cached += more->cached;
	to->completion += more->completion;
	to->errors += more->errors;
	to->cut += more->cut;
	to->cost += more->cost;
}

static void add_total(struct token_uses *uses, const struct token_row *row,
                      const struct token_use *use)
{
	char name[64];

	snprintf(name, sizeof(name), "%" PRId64 "/%" PRId64, row->tenant_id, row->model_id);
	struct token_total *total = text_map_get(&uses->totals, name);
	if (!total) {
		total = NEW(struct token_total);
		total->tenant_id = row->tenant_id;
		total->model_id = row->model_id;
		text_map_put(&uses->totals, name, total);
	}
	token_use_add(&total->use, use);
}

static void empty_months(struct token_uses *uses)
{
	for (size_t i = 0; i < uses->months.capacity; i++)
		free(uses->months.entries[i].value);
	text_map_free(&uses->months);
	uses->months = (struct text_map){ 0 };
}

static void add_month(struct token_uses *uses, const struct token_row *row, int64_t cost)
{
	int64_t now = month_of(clock_unix_ms());

	if (uses->month != now)
		empty_months(uses);
	uses->month = now;
	if (month_of(row->day * DAY_MS) != now)
		return;
	struct key_month *month = text_map_get(&uses->months, row->key);
	if (!month) {
		month = NEW(struct key_month);
		text_map_put(&uses->months, row->key, month);
	}
	month->cost += cost;
}

static void token_row_add(struct token_uses *uses, struct token_row *row,
                          const struct token_use *use)
{
	token_use_add(&row->use, use);
	add_total(uses, row, use);
	add_month(uses, row, use->cost);
}

/* What is up to the next slash, or the end. */
static struct text next_part(const char **at)
{
	size_t size = strcspn(*at, "/");
	struct text part = { *at, size };

	*at += size + ((*at)[size] == '/');
	return part;
}

static void part_copy(char to[KEY_TEXT_MAX], struct text part)
{
	snprintf(to, KEY_TEXT_MAX, "%.*s", (int)part.size, part.data);
}

/* NULL: that is not the name of a row. */
static struct token_row *row_of(struct token_uses *uses, const char *name)
{
	struct token_row *row = text_map_get(&uses->rows, name);
	const char *at = name;
	int64_t day_ms = 0;

	if (row)
		return row;
	if (!calendar_read_day(next_part(&at), &day_ms))
		return NULL;
	row = NEW(struct token_row);
	row->day = day_ms / DAY_MS;
	row->tenant_id = atoll(next_part(&at).data);
	part_copy(row->key, next_part(&at));
	row->model_id = atoll(next_part(&at).data);
	part_copy(row->adapter, next_part(&at));
	text_map_put(&uses->rows, name, row);
	return row;
}

struct token_uses *token_uses_new(void)
{
	return NEW(struct token_uses);
}

void token_uses_free(struct token_uses *uses)
{
	if (!uses)
		return;
	for (size_t i = 0; i < uses->rows.capacity; i++)
		free(uses->rows.entries[i].value);
	for (size_t i = 0; i < uses->totals.capacity; i++)
		free(uses->totals.entries[i].value);
	empty_months(uses);
	text_map_free(&uses->rows);
	text_map_free(&uses->totals);
	free(uses);
}

void token_uses_load(struct token_uses *uses, const struct kept *keep)
{
	struct token_row *row = row_of(uses, keep->key);
	struct token_use use = { 0 };

	if (!row)
		return;
	/* Those of before there were prices have six numbers. */
	sscanf(keep->value,
	       "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
	       " %" SCNd64,
	       &use.requests, &use.prompt, &use.cached, &use.completion, &use.errors, &use.cut,
	       &use.cost, &row->owner_id);
	token_row_add(uses, row, &use);
}

static const char *sums_text(struct arena *arena, const struct token_row *row)
{
	const struct token_use *use = &row->use;
	struct buffer text = { 0 };

	buffer_print(&text,
	             "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
	             " %" PRId64 " %" PRId64,
	             use->requests, use->prompt, use->cached, use->completion, use->errors,
	             use->cut, use->cost, row->owner_id);
	const char *copy = arena_string(arena, text.data);
	buffer_free(&text);
	return copy;
}

struct kept token_uses_add(struct token_uses *uses, const char *name, int64_t owner_id,
                           const struct token_use *use, struct arena *arena)
{
	struct token_row *row = row_of(uses, name);

	INVARIANT(row);
	row->owner_id = owner_id;
	token_row_add(uses, row, use);
	return (struct kept){ TOKEN_USE_KIND, arena_string(arena, name), sums_text(arena, row) };
}

static struct token_line line_of(const struct token_row *row)
{
	return (struct token_line){ .day_ms = row->day * DAY_MS,
		                    .tenant_id = row->tenant_id,
		                    .model_id = row->model_id,
		                    .owner_id = row->owner_id,
		                    .key = row->key,
		                    .adapter = row->adapter,
		                    .use = &row->use };
}

void token_uses_each(const struct token_uses *uses, int64_t from_ms, int64_t until_ms,
                     void (*each)(void *context, const struct token_line *line), void *context)
{
	for (size_t i = 0; i < uses->rows.capacity; i++) {
		const struct token_row *row = uses->rows.entries[i].value;
		if (!row || row->day < from_ms / DAY_MS || row->day * DAY_MS >= until_ms)
			continue;
		struct token_line line = line_of(row);
		each(context, &line);
	}
}

void token_uses_each_total(const struct token_uses *uses,
                           void (*each)(void *context, const struct token_line *line),
                           void *context)
{
	for (size_t i = 0; i < uses->totals.capacity; i++) {
		const struct token_total *total = uses->totals.entries[i].value;
		if (!total)
			continue;
		struct token_line line = { .tenant_id = total->tenant_id,
			                   .model_id = total->model_id,
			                   .key = "",
			                   .adapter = "",
			                   .use = &total->use };
		each(context, &line);
	}
}
