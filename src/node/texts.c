/* texts.c - what a node may say in words: printable, and no longer than it has reason to be */
#include "node/texts.h"

#include <string.h>

enum text_kind {
	TEXT_TOKEN, /* printable ASCII without spaces */
	TEXT_LINE,  /* no control characters */
	TEXT_LINES, /* none but line feeds */
	TEXT_PROSE, /* for people: cleaned, never refused */
};

struct text_rule {
	const char *type, *field; /* type NULL: any */
	enum text_kind kind;
	size_t most; /* bytes */
};

static const struct text_rule rules[] = {
	{ "device", "model", TEXT_LINE, 256 },  { NULL, "uuid", TEXT_TOKEN, 96 },
	{ NULL, "mig_parent", TEXT_TOKEN, 96 }, { NULL, "boot", TEXT_TOKEN, 128 },
	{ NULL, "name", TEXT_TOKEN, 128 },      { NULL, "zone", TEXT_LINE, 256 },
	{ NULL, "rack", TEXT_LINE, 256 },       { NULL, "labels", TEXT_LINES, 65536 },
	{ NULL, "model", TEXT_LINE, 4096 }, /* of a slot: as long as the API takes */
	{ NULL, "address", TEXT_TOKEN, 512 },   { NULL, "message", TEXT_PROSE, 4096 },
	{ NULL, "reason", TEXT_PROSE, 1024 },
};
static const struct text_rule other_rule = { NULL, NULL, TEXT_LINE, 256 };

static const struct text_rule *rule_of(const char *type, const char *field)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (strcmp(rules[i].field, field) == 0 &&
		    (!rules[i].type || strcmp(rules[i].type, type) == 0))
			return &rules[i];
	return &other_rule;
}

static bool is_control(char byte)
{
	return (unsigned char)byte < ' ' || byte == 0x7f;
}

static bool is_allowed(enum text_kind kind, char byte)
{
	switch (kind) {
	case TEXT_TOKEN:
		return byte > ' ' && byte <= '~';
	case TEXT_LINES:
		return byte == '\n' || !is_control(byte);
	default:
		return !is_control(byte);
	}
}

bool text_check(const char *type, const char *field, const char *text, struct error *error)
{
	const struct text_rule *rule = rule_of(type, field);
	size_t size = strlen(text);

	if (size > rule->most)
		return error_set(error, ERROR_INVALID,
		                 "the %s of a %s has %lld bytes: at most %lld are allowed", field,
		                 type, (long long)size, (long long)rule->most);
	for (const char *at = text; *at; at++)
		if (!is_allowed(rule->kind, *at))
			return error_set(error, ERROR_INVALID,
			                 "the %s of a %s has the byte 0x%02x in it, which is not "
			                 "allowed there",
			                 field, type, (unsigned)(unsigned char)*at);
	return true;
}

/* Not in the middle of a character of UTF-8. */
static void text_cut(char *text, size_t most)
{
	while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80)
		most--;
	text[most] = '\0';
}

void text_clean(char *text, size_t most)
{
	if (strlen(text) > most)
		text_cut(text, most);
	for (; *text; text++)
		if (is_control(*text))
			*text = ' ';
}

static bool check_field(const struct record_type *type, const struct record_field *field,
                        void *object, struct error *error)
{
	char *text = *(char **)((char *)object + field->offset);
	const struct text_rule *rule = rule_of(type->name, field->name);

	if (!text)
		return true;
	if (rule->kind != TEXT_PROSE)
		return text_check(type->name, field->name, text, error);
	text_clean(text, rule->most);
	return true;
}

static bool check_list(const struct record_field *field, void *object, struct error *error)
{
	char *elements = *(char **)((char *)object + field->offset);
	int64_t count =
	    *(const int64_t *)(const void *)((const char *)object + field->count_offset);

	if (field->of->texts == 0)
		return true;
	for (int64_t i = 0; i < count; i++)
		if (!texts_check(field->of, elements + (size_t)i * field->of->size, error))
			return false;
	return true;
}

bool texts_check(const struct record_type *type, void *object, struct error *error)
{
	for (int i = 0; i < type->field_count; i++) {
		const struct record_field *field = &type->fields[i];
		if ((field->kind == FIELD_TEXT && !check_field(type, field, object, error)) ||
		    (field->kind == FIELD_LIST && !check_list(field, object, error)))
			return false;
	}
	return true;
}
