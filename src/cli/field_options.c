/* field_options.c - the options that set the fields of a resource, from its table */
#include "cli/field_options.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"

enum { TABLES_MAX = 8 };

/* True if `name` is one of the words of a list. */
static bool is_word_of(const char *list, const char *name)
{
	size_t size = strlen(name);
	for (const char *at = list; at && *at; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");
		if (length == size && memcmp(at, name, size) == 0)
			return true;
		at += length;
	}
	return false;
}

/* The words of a field with spaces between, for completion. They last as long as the program. */
static const char *field_words(const struct resource_field *field)
{
	struct buffer words = { 0 };
	const char *word;
	for (int i = 0; (word = field_word_at(field, i)) != NULL; i++)
		buffer_print(&words, "%s%s", i > 0 ? " " : "", word);
	buffer_text(&words, "");
	return words.data;
}

static void complete_option(struct option *option, const struct resource_field *field)
{
	if (field->kind == VALUE_WORD || field->kind == VALUE_WORDS) {
		option->completes = COMPLETES_WORDS;
		option->words = field_words(field);
	} else if (strcmp(option->value, "FILE") == 0 || strcmp(option->value, "DIR") == 0) {
		option->completes = COMPLETES_FILES;
	} else if (strcmp(option->value, "JOB") == 0) {
		option->completes = COMPLETES_JOBS;
	} else if (strcmp(option->value, "NODE") == 0) {
		option->completes = COMPLETES_NODES;
	} else if (strcmp(option->value, "TENANT") == 0) {
		option->completes = COMPLETES_TENANTS;
	} else if (strcmp(option->value, "MODEL") == 0 && field->refers) {
		option->completes = COMPLETES_MODELS;
	}
}

/* Help begins in lower case, as that of all options does, unless the first word is a name. */
static const char *option_help(const struct resource_field *field)
{
	if (field->option.help)
		return field->option.help;
	char *help = memory_text(field->help);
	if (isupper((unsigned char)help[0]) && !isupper((unsigned char)help[1]))
		help[0] = (char)tolower((unsigned char)help[0]);
	return help;
}

static int add_options(struct option *to, const struct resource_field *field)
{
	const struct field_option *from = &field->option;
	int count = 0;
	to[count] = (struct option){ .name = from->name,
		                     .letter = from->letter,
		                     .value = from->argument,
		                     .help = option_help(field),
		                     .repeats = from->repeats };
	if (from->argument)
		complete_option(&to[count], field);
	count++;
	if (from->negative) {
		struct buffer help = { 0 };
		buffer_print(&help, "the opposite of %s", from->name);
		to[count++] = (struct option){ .name = from->negative, .help = help.data };
	}
	return count;
}

const struct option *field_options(const struct resource *resource, const char *without)
{
	static struct {
		const struct resource *resource;
		const char *without;
		struct option *options;
	} tables[TABLES_MAX];
	int at = 0;
	for (; at < TABLES_MAX && tables[at].resource; at++)
		if (tables[at].resource == resource && tables[at].without == without)
			return tables[at].options;
	assert(at < TABLES_MAX);

	/* Each field has an option and its opposite at most; one without a name ends the table. */
	size_t most = 2 * (size_t)resource->field_count + 1;
	struct option *options = memory_alloc(most * sizeof(*options));
	memset(options, 0, most * sizeof(*options));
	int count = 0;
	for (int i = 0; i < resource->field_count; i++) {
		const struct resource_field *field = &resource->fields[i];
		if (field->option.name && !is_word_of(without, field->option.name))
			count += add_options(&options[count], field);
	}
	tables[at].resource = resource;
	tables[at].without = without;
	tables[at].options = options;
	return options;
}
