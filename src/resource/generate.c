/* generate.c - prints the tables of all resources as JSON, for what is generated from them; with
 * --index, the C source of the hash tables that find fields by name */
#include <stdio.h>
#include <string.h>

#include "resource/find.h"

enum { TRIALS_MAX = 10000000 };

/* JSON as it is printed: `has_items` says whether the next one needs a comma. */
struct printer {
	bool has_items;
	int depth;
};

static void generate_print_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

static void print_key(struct printer *printer, const char *key)
{
	printf("%s\n%*s", printer->has_items ? "," : "", 2 * printer->depth, "");
	printer->has_items = true;
	if (key) {
		generate_print_text(key);
		printf(": ");
	}
}

static void print_open(struct printer *printer, const char *key, char bracket)
{
	print_key(printer, key);
	putchar(bracket);
	printer->has_items = false;
	printer->depth++;
}

static void print_close(struct printer *printer, char bracket)
{
	printer->depth--;
	if (printer->has_items)
		printf("\n%*s", 2 * printer->depth, "");
	putchar(bracket);
	printer->has_items = true;
}

static void generate_put_text(struct printer *printer, const char *key, const char *text)
{
	if (!text || !*text)
		return;
	print_key(printer, key);
	generate_print_text(text);
}

static void generate_put_number(struct printer *printer, const char *key, int64_t number)
{
	print_key(printer, key);
	printf("%lld", (long long)number);
}

static void put_flag(struct printer *printer, const char *key, bool flag)
{
	if (!flag)
		return;
	print_key(printer, key);
	printf("true");
}

static void put_range(struct printer *printer, const struct resource_field *field)
{
	if (field->digits > 0)
		generate_put_number(printer, "digits", field->digits);
	if (field->least != 0 || field->most != 0) {
		generate_put_number(printer, "least", field->least);
		generate_put_number(printer, "most", field->most);
	}
	if (field->items > 0)
		generate_put_number(printer, "items", field->items);
	if (!field->words)
		return;
	print_open(printer, "words", '[');
	for (int i = 0; field_word_at(field, i); i++) {
		print_key(printer, NULL);
		generate_print_text(field_word_at(field, i));
	}
	print_close(printer, ']');
}

static void put_also(struct printer *printer, unsigned also)
{
	static const char *const names[] = { "list",      "name", "member",
		                             "unlimited", "flag", "seconds" };

	if (also == 0)
		return;
	print_open(printer, "also", '[');
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!(also & 1U << i))
			continue;
		print_key(printer, NULL);
		generate_print_text(names[i]);
	}
	print_close(printer, ']');
}

static void put_proto(struct printer *printer, const struct field_proto *proto)
{
	print_open(printer, "proto", '{');
	if (proto->request > 0)
		generate_put_number(printer, "request", proto->request);
	if (proto->reply > 0)
		generate_put_number(printer, "reply", proto->reply);
	generate_put_text(printer, "type", proto->type);
	if (proto->extra > 0) {
		generate_put_number(printer, "extra", proto->extra);
		generate_put_text(printer, "extra_name", proto->extra_name);
		generate_put_text(printer, "extra_type", proto->extra_type);
	}
	generate_put_text(printer, "absent", proto->absent);
	print_close(printer, '}');
}

static void put_option(struct printer *printer, const struct resource_field *field)
{
	const struct field_option *option = &field->option;

	print_open(printer, "option", '{');
	generate_put_text(printer, "name", option->name);
	generate_put_text(printer, "letter", option->letter);
	generate_put_text(printer, "argument", option->argument);
	generate_put_text(printer, "negative", option->negative);
	generate_put_text(printer, "help", option->help);
	put_flag(printer, "repeats", option->repeats);
	generate_put_text(printer, "absent", option->absent);
	print_close(printer, '}');
}

static void put_fields(struct printer *printer, const struct resource *resource);

static void generate_put_field(struct printer *printer, const struct resource_field *field)
{
	print_open(printer, NULL, '{');
	generate_put_text(printer, "name", field->name);
	generate_put_text(printer, "label", field->label);
	generate_put_text(printer, "help", field->help);
	generate_put_text(printer, "kind", value_kind_name(field->kind));
	generate_put_text(printer, "unit", value_unit_name(field->unit));
	put_also(printer, field->also);
	put_range(printer, field);
	generate_put_text(printer, "refers", field->refers);
	generate_put_text(printer, "pattern", field->pattern);
	put_flag(printer, "required", field->required);
	generate_put_text(printer, "initial", field->initial);
	generate_put_text(printer, "setter", field_setter_name(field->setter));
	put_flag(printer, "repeatable", field->repeatable);
	generate_put_text(printer, "hidden", field->hidden);
	generate_put_text(printer, "shown_as", field->shown_as);
	generate_put_text(printer, "empty", field_empty_name(field->empty));
	put_flag(printer, "nullable", field->nullable);
	put_flag(printer, "owner_only", field->owner_only);
	generate_put_text(printer, "since", field->since);
	put_proto(printer, &field->proto);
	if (field_is_settable(field)) {
		put_option(printer, field);
		print_open(printer, "form", '{');
		generate_put_text(printer, "section", form_section_name(field->form.section));
		generate_put_text(printer, "absent", field->form.absent);
		print_close(printer, '}');
	}
	if (field->nested) {
		print_open(printer, "nested", '{');
		put_fields(printer, field->nested);
		print_close(printer, '}');
	}
	print_close(printer, '}');
}

static void put_fields(struct printer *printer, const struct resource *resource)
{
	generate_put_text(printer, "name", resource->name);
	generate_put_text(printer, "help", resource->help);
	put_flag(printer, "null_is_default", resource->null_is_default);
	generate_put_text(printer, "schema", resource->schema);
	generate_put_text(printer, "request_schema", resource->request_schema);
	generate_put_text(printer, "request_message", resource->request_message);
	generate_put_text(printer, "reply_message", resource->reply_message);
	generate_put_text(printer, "no_proto", resource->no_proto);
	generate_put_text(printer, "no_option", resource->no_option);
	generate_put_text(printer, "no_form", resource->no_form);
	print_open(printer, "fields", '[');
	for (int i = 0; i < resource->field_count; i++)
		generate_put_field(printer, &resource->fields[i]);
	print_close(printer, ']');
}

/* True if the factors give each name a slot of its own; fills the slots. */
static bool index_try(const struct resource *resource, struct name_index *index)
{
	memset(index->slots, 0, sizeof(index->slots));
	for (int i = 0; i < resource->field_count; i++) {
		const struct resource_field *field = &resource->fields[i];
		uint32_t slot = name_slot(index->factors, field->name, field->name_size);
		if (index->slots[slot] != 0)
			return false;
		index->slots[slot] = (uint8_t)(i + 1);
	}
	return true;
}

static bool index_find(const struct resource *resource, struct name_index *index)
{
	uint64_t random = 1;

	for (int trial = 0; trial < TRIALS_MAX; trial++) {
		for (int i = 0; i < INDEX_FACTORS; i++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			index->factors[i] = (uint32_t)(random >> 32);
		}
		if (index_try(resource, index))
			return true;
	}
	return false;
}

static bool print_index(const struct resource *resource)
{
	struct name_index index;

	if (resource->field_count > UINT8_MAX || !index_find(resource, &index)) {
		fprintf(stderr, "no perfect hash for the fields of a %s: see find.h\n",
		        resource->name);
		return false;
	}
	printf("\t[%d] = {\n\t\t{ ", (int)resource->id);
	for (int i = 0; i < INDEX_FACTORS; i++)
		printf("%uU, ", index.factors[i]);
	printf("},\n\t\t{ ");
	for (int i = 0; i < INDEX_SLOTS; i++)
		if (index.slots[i] != 0)
			printf("[%d] = %d, ", i, index.slots[i]);
	printf("},\n\t},\n");
	return true;
}

static bool print_indexes(void)
{
	bool good = true;

	printf("#include \"resource/find.h\"\n\nconst struct name_index "
	       "name_indexes[RESOURCE_COUNT] = {\n");
	for (int i = RESOURCE_NESTED + 1; good && i < RESOURCE_COUNT; i++)
		good = print_index(resources[i]);
	printf("};\n");
	return good;
}

static void print_tables(void)
{
	struct printer printer = { .depth = 1 };

	putchar('[');
	for (int i = RESOURCE_NESTED + 1; i < RESOURCE_COUNT; i++) {
		print_open(&printer, NULL, '{');
		put_fields(&printer, resources[i]);
		print_close(&printer, '}');
	}
	printf("\n]\n");
}

int main(int count, char **arguments)
{
	bool good = true;

	if (count > 1 && strcmp(arguments[1], "--index") == 0)
		good = print_indexes();
	else
		print_tables();
	return good && fflush(stdout) == 0 ? 0 : 1;
}
