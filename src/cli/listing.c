/* listing.c - what a command shows, in the form that was asked for */
#include "cli/listing.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/size.h"
#include "cli/text/field.h"
#include "cli/text/quantity.h"
#include "cli/text/yaml_text.h"

static void print_json(const json_t *document)
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

static void print_name(const json_t *item, const char *key)
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
		print_json(document);
	else if (session->form == FORM_YAML)
		print_yaml(document);
	else if (session->form == FORM_NAME)
		print_name(document, name_key);
	return session->form != FORM_TABLE && session->form != FORM_WIDE;
}

static void print_table(struct session *session, const json_t *items, const struct column *columns,
                        size_t count)
{
	struct table table = { 0 };
	size_t place;
	json_t *item;
	bool all = session->form == FORM_WIDE;
	/* What goes to a file is the same whatever the width of anything. */
	bool room = all || session->terminal.is_terminal;

	if (!all)
		table.terminal = session->terminal;
	table.terminal.colours = session->terminal.colours;
	table.terminal.pictures = session->terminal.pictures;
	for (size_t i = 0; i < count; i++) {
		if (columns[i].extra && !room)
			continue;
		unsigned bit = 1U << table.columns++;
		table.right |= columns[i].right ? bit : 0;
		table.shrinks |= columns[i].shrinks ? bit : 0;
		table.drops |= columns[i].extra ? bit : 0;
		table_coloured(&table, COLOUR_BOLD, "%s", columns[i].title);
	}
	json_array_foreach(items, place, item)
	{
		for (size_t i = 0; i < count; i++)
			if (!columns[i].extra || room)
				columns[i].write(session, &table, item);
	}
	table_print(&table, stdout);
	table_free(&table);
}

void listing_print(struct session *session, const json_t *items, const struct column *columns,
                   size_t count, const char *name_key)
{
	size_t place;
	json_t *item;
	if (session->form == FORM_NAME) {
		json_array_foreach(items, place, item) print_name(item, name_key);
	} else if (!listing_print_document(session, items, name_key)) {
		print_table(session, items, columns, count);
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
		return cli_misused(arguments->command, "'%.80s' is one argument too many%s",
		                   arguments->operands[0], hint);
	if (text && !quantity_integer("--limit", text, 1, LISTING_MAX, &limit, &error))
		return cli_misused(arguments->command, "%s", error.text);
	if (!session_open(&session, arguments, &status))
		return status;
	status = show(&session, limit);
	session_close(&session);
	return status;
}
