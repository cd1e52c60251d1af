/* yaml_text.c - a document of JSON as YAML */
#include "cli/text/yaml_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Whether YAML reads the text as itself when it stands without quotes. */
static bool yaml_text_is_plain(const char *text)
{
	static const char *const others[] = { "true", "false", "null", "yes", "no",
		                              "on",   "off",   "y",    "n",   NULL };
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/";
	static const char inside[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/0123456789.-";
	size_t size = strlen(text);
	if (size == 0 || !strchr(letters, text[0]) || strspn(text, inside) != size)
		return false;
	for (size_t i = 0; others[i]; i++)
		if (strcasecmp(others[i], text) == 0)
			return false;
	return true;
}

static void print_scalar(struct buffer *to, const json_t *value)
{
	const char *text = json_string_value(value);
	if (text && yaml_text_is_plain(text)) {
		buffer_text(to, text);
		return;
	}
	char *json = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(12));
	buffer_text(to, json ? json : "null");
	free(json);
}

static void print_key(struct buffer *to, const char *key)
{
	json_t *text = json_string(key);
	print_scalar(to, text);
	json_decref(text);
}

static bool is_nested(const json_t *value)
{
	return (json_is_object(value) && json_object_size(value) > 0) ||
	       (json_is_array(value) && json_array_size(value) > 0);
}

static void print_value(struct buffer *to, const json_t *value, int depth, bool on_line);

static void indent(struct buffer *to, int depth)
{
	buffer_print(to, "%*s", 2 * depth, "");
}

static void print_members(struct buffer *to, const json_t *value, int depth, bool on_line)
{
	const char *key;
	json_t *member;
	json_object_foreach((json_t *)value, key, member)
	{
		if (!on_line)
			indent(to, depth);
		on_line = false;
		print_key(to, key);
		buffer_text(to, ":");
		if (is_nested(member)) {
			buffer_text(to, "\n");
			print_value(to, member, json_is_array(member) ? depth : depth + 1, false);
		} else {
			buffer_text(to, " ");
			print_value(to, member, depth, false);
		}
	}
}

/* `on_line`: the line has begun already, behind the dash of a list. */
static void print_value(struct buffer *to, const json_t *value, int depth, bool on_line)
{
	size_t place;
	json_t *element;
	if (!is_nested(value)) {
		print_scalar(to, value);
		buffer_text(to, "\n");
		return;
	}
	if (json_is_object(value)) {
		print_members(to, value, depth, on_line);
		return;
	}
	json_array_foreach(value, place, element)
	{
		if (!on_line)
			indent(to, depth);
		on_line = false;
		buffer_text(to, "- ");
		print_value(to, element, depth + 1, true);
	}
}

void yaml_text_print(struct buffer *to, const json_t *value)
{
	print_value(to, value, 0, false);
}
