/* listing.c - what a command shows, in the form that was asked for */
#include "cli/listing.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/size.h"
#include "cli/cli.h"
#include "cli/field_print.h"
#include "cli/text/quantity.h"
#include "cli/text/yaml_text.h"
#include "json/member.h"

const struct option listing_options[] = {
	OPTION("--columns", NULL, "NAME,...", "show these fields instead: id,name,state"),
	{ 0 },
};

static void listing_print_json(const json_t *document)
{
	json_dumpf(document, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
	putchar('\n');
}

static void print_yaml(const json_t *document)
{
	struct buffer text = { 0 };
	yaml_text_print(&text, document);
	fwrite(text.data, 1, text.size, stdout);
	buffer_free(&text);
}

static void listing_print_name(const json_t *item, const char *key)
{
	const json_t *value = json_object_get(item, key);
	if (json_is_integer(value))
		printf("%lld\n", (long long)json_integer_value(value));
	else if (json_is_string(value))
		puts(json_string_value(value));
}

bool listing_print_document(const struct session *session, const json_t *document,
                            const char *name_key)
{
	if (session->form == FORM_JSON)
		listing_print_json(document);
	else if (session->form == FORM_YAML)
		print_yaml(document);
	else if (session->form == FORM_NAME)
		listing_print_name(document, name_key);
	return session->form != FORM_TABLE && session->form != FORM_WIDE;
}

static void write_field(struct table *table, const struct resource_field *field, const json_t *item)
{
	struct buffer text = { 0 };
	buffer_text(&text, "");
	field_print(&text, field, json_object_get(item, field->name));
	table_cell(table, "%s", text.data);
	buffer_free(&text);
}

static void write_cell(struct session *session, const struct resource *resource,
                       struct table *table, const struct column *column, const json_t *item)
{
	if (column->write) {
		column->write(session, table, item);
		return;
	}
	const struct resource_field *field = column->field;
	if (!field) {
		assert(resource);
		int place = resource_find(resource, column->key, strlen(column->key));
		assert(place >= 0);
		field = &resource->fields[place];
	}
	write_field(table, field, item);
}

/* With `room` all columns are written, and the table leaves out what does not fit. */
static void listing_fill(struct session *session, const json_t *items,
                         const struct listing_source *source, bool room, struct table *table)
{
	const struct column *columns = source->columns;
	size_t count = source->column_count, place;
	json_t *item;

	for (size_t i = 0; i < count; i++) {
		if (columns[i].extra && !room)
			continue;
		unsigned bit = 1U << table->columns++;
		table->right |= columns[i].right ? bit : 0;
		table->shrinks |= columns[i].shrinks ? bit : 0;
		table->drops |= columns[i].extra ? bit : 0;
		table_coloured(table, COLOUR_BOLD, "%s", columns[i].title);
	}
	json_array_foreach(items, place, item)
	{
		for (size_t i = 0; i < count; i++)
			if (!columns[i].extra || room)
				write_cell(session, source->resource, table, &columns[i], item);
	}
}

void listing_write(struct session *session, const json_t *items,
                   const struct listing_source *source, const struct terminal *terminal, FILE *to)
{
	struct table table = { .terminal = *terminal };

	listing_fill(session, items, source, true, &table);
	table_print(&table, to);
	table_free(&table);
}

static void listing_print_table(struct session *session, const json_t *items,
                                const struct column *columns, size_t count)
{
	struct listing_source source = { .resource = session->arguments->command->shows,
		                         .columns = columns,
		                         .column_count = count };
	struct table table = { 0 };
	bool all = session->form == FORM_WIDE;

	if (!all)
		table.terminal = session->terminal;
	table.terminal.colours = session->terminal.colours;
	table.terminal.pictures = session->terminal.pictures;
	/* What goes to a file is the same whatever the width of anything. */
	listing_fill(session, items, &source, all || session->terminal.is_terminal, &table);
	table_print(&table, stdout);
	table_free(&table);
}

/* Takes the list of --columns apart: how many there are, or -1 with the reason. */
static int chosen_columns(const struct arguments *arguments, const char *list,
                          struct column columns[TABLE_COLUMNS_MAX], struct error *error)
{
	const struct resource *resource = arguments->command->shows;
	int count = 0;
	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		size_t size = strcspn(at, ",");
		int place = resource_find(resource, at, size);
		if (count == TABLE_COLUMNS_MAX) {
			error_set(error, ERROR_INVALID, "--columns: at most %d fields",
			          TABLE_COLUMNS_MAX);
			return -1;
		}
		if (place >= 0 && resource->fields[place].hidden) {
			error_set(error, ERROR_INVALID, "--columns: %s is %s",
			          resource->fields[place].name, resource->fields[place].hidden);
			return -1;
		}
		if (place < 0) {
			const struct resource_field *meant = resource_nearest(resource, at, size);
			error_set(error, ERROR_INVALID, "--columns: a %s has no field '%.*s'%s%s%s",
			          resource->name, (int)(size < 80 ? size : 80), at,
			          meant ? "; did you mean '" : "", meant ? meant->name : "",
			          meant ? "'?" : "");
			return -1;
		}
		const struct resource_field *field = &resource->fields[place];
		columns[count++] = (struct column){ .field = field,
			                            .right = field_print_is_number(field),
			                            .shrinks = field->kind == VALUE_TEXT };
	}
	return count;
}

/* Titles are in upper case, like those of other columns. */
static const char *column_title(struct session *session, const struct resource_field *field)
{
	char *title = arena_string(&session->arena, field->name);
	for (char *at = title; *at; at++)
		*at = (char)toupper((unsigned char)*at);
	return title;
}

static void print_chosen(struct session *session, const json_t *items, const char *list)
{
	struct column columns[TABLE_COLUMNS_MAX];
	struct error error;
	int count = chosen_columns(session->arguments, list, columns, &error);
	for (int i = 0; i < count; i++)
		columns[i].title = column_title(session, columns[i].field);
	if (count < 0)
		cli_misused(session->arguments->command, "%s", error.text);
	else
		listing_print_table(session, items, columns, (size_t)count);
}

void listing_print(struct session *session, const json_t *items, const struct column *columns,
                   size_t count, const char *name_key)
{
	size_t place;
	json_t *item;
	if (session->form == FORM_NAME) {
		json_array_foreach(items, place, item) listing_print_name(item, name_key);
	} else if (!listing_print_document(session, items, name_key)) {
		const struct arguments *arguments = session->arguments;
		const char *list =
		    arguments->command->shows ? arguments_value(arguments, "--columns") : NULL;
		if (list)
			print_chosen(session, items, list);
		else
			listing_print_table(session, items, columns, count);
	}
}

void listing_memory(struct table *table, int64_t mib)
{
	struct buffer text = { 0 };
	size_print(&text, mib);
	table_cell(table, "%s", mib > 0 ? text.data : "-");
	buffer_free(&text);
}

void listing_duration(struct table *table, int64_t ms)
{
	struct buffer text = { 0 };
	duration_print(&text, ms);
	table_cell(table, "%s", ms >= 0 ? text.data : "");
	buffer_free(&text);
}

void listing_since(struct table *table, int64_t moment_ms)
{
	int64_t distance = clock_unix_ms() - moment_ms;
	listing_duration(table, moment_ms < 0 ? -1 : distance < 0 ? -distance : distance);
}

int listing_run(const struct arguments *arguments, int64_t limit, const char *hint,
                int (*show)(struct session *session, int64_t limit))
{
	const char *text = arguments_value(arguments, "--limit");
	struct session session;
	struct error error = { 0 };
	int status;
	if (arguments->operand_count > 0)
		return cli_misused(arguments->command, "unexpected argument '%.80s'%s",
		                   arguments->operands[0], hint);
	if (text && !quantity_integer("--limit", text, 1, LISTING_MAX, &limit, &error))
		return cli_misused(arguments->command, "%s", error.text);
	const char *list =
	    arguments->command->shows ? arguments_value(arguments, "--columns") : NULL;
	struct column columns[TABLE_COLUMNS_MAX];
	if (list && chosen_columns(arguments, list, columns, &error) < 0)
		return cli_misused(arguments->command, "%s", error.text);
	if (!session_open(&session, arguments, &status))
		return status;
	status = show(&session, limit);
	session_close(&session);
	return status;
}
