/* exposition.c - metrics in the text format of Prometheus, as exporters give them */
#include "agent/gpu/exposition.h"

#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 64

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

static struct text after_blanks(struct text text)
{
	while (text.size > 0 && is_blank(*text.data))
		text = text_from(text, 1);
	return text;
}

static bool is_name_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || byte == '_' || byte == ':';
}

static struct text take_name(struct text *line)
{
	size_t size = 0;

	while (size < line->size && is_name_byte(line->data[size]))
		size++;
	struct text name = { line->data, size };
	*line = text_from(*line, size);
	return name;
}

/* Takes a text in quotation marks, without them; a backslash keeps the byte behind it from
 * being the end. */
static bool take_quoted(struct text *line, struct text *value)
{
	size_t size = 1;

	if (line->size == 0 || *line->data != '"')
		return false;
	while (size < line->size && line->data[size] != '"')
		size += line->data[size] == '\\' ? 2 : 1;
	if (size >= line->size)
		return false;
	*value = (struct text){ line->data + 1, size - 1 };
	*line = text_from(*line, size + 1);
	return true;
}

/* Takes one name="value", and the comma behind it. */
static bool take_label(struct text *labels, struct text *name, struct text *value)
{
	*labels = after_blanks(*labels);
	*name = take_name(labels);
	*labels = after_blanks(*labels);
	if (name->size == 0 || labels->size == 0 || *labels->data != '=')
		return false;
	*labels = after_blanks(text_from(*labels, 1));
	if (!take_quoted(labels, value))
		return false;
	*labels = after_blanks(*labels);
	if (labels->size > 0 && *labels->data == ',')
		*labels = after_blanks(text_from(*labels, 1));
	return true;
}

static bool take_labels(struct text *line, struct text *labels)
{
	struct text name, value;

	*labels = (struct text){ line->data, 0 };
	if (line->size == 0 || *line->data != '{')
		return true;
	*line = after_blanks(text_from(*line, 1));
	const char *begin = line->data;
	while (line->size > 0 && *line->data != '}')
		if (!take_label(line, &name, &value))
			return false;
	if (line->size == 0)
		return false;
	*labels = (struct text){ begin, (size_t)(line->data - begin) };
	*line = text_from(*line, 1);
	return true;
}

static bool take_value(struct text line, double *value)
{
	char number[NUMBER_MAX];
	char *end;
	size_t size = 0;

	line = after_blanks(line);
	while (size < line.size && !is_blank(line.data[size]) && line.data[size] != '\r')
		size++;
	if (size == 0 || size >= sizeof(number))
		return false;
	memcpy(number, line.data, size);
	number[size] = '\0';
	*value = strtod(number, &end);
	return *end == '\0';
}

bool exposition_next(struct text *rest, struct exposed *sample)
{
	struct text line;

	while (text_next(rest, '\n', &line)) {
		line = after_blanks(line);
		sample->name = take_name(&line);
		if (sample->name.size == 0)
			continue;
		line = after_blanks(line);
		if (take_labels(&line, &sample->labels) && take_value(line, &sample->value))
			return true;
	}
	return false;
}

bool exposition_label(const struct exposed *sample, const char *name, struct text *value)
{
	struct text labels = sample->labels, found;

	while (labels.size > 0 && take_label(&labels, &found, value))
		if (text_is(found, name))
			return true;
	return false;
}
