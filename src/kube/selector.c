/* selector.c - selectors of labels and of nodes, as Kubernetes means them */
#include "kube/selector.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "json/member.h"

#define VALUE_BYTES_MAX 63
#define KEY_BYTES_MAX 317 /* a DNS name of 253, a slash and a name of 63 */

bool selector_value_is_valid(const char *value)
{
	size_t size = strlen(value);

	if (size == 0)
		return true;
	if (size > VALUE_BYTES_MAX || !isalnum((unsigned char)value[0]) ||
	    !isalnum((unsigned char)value[size - 1]))
		return false;
	for (const char *at = value; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("-_.", *at))
			return false;
	return true;
}

static bool key_is_valid(const char *key)
{
	size_t size = strlen(key);

	if (size == 0 || size > KEY_BYTES_MAX)
		return false;
	for (const char *at = key; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("-_./", *at))
			return false;
	return true;
}

enum operation { OP_IN, OP_NOT_IN, OP_EXISTS, OP_ABSENT, OP_GREATER, OP_LESS, OP_UNKNOWN };

static enum operation operation_of(const json_t *expression)
{
	static const char *const names[] = { "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt" };
	const char *name = member_text(expression, "operator");

	for (int i = 0; i < OP_UNKNOWN; i++)
		if (strcmp(name, names[i]) == 0)
			return (enum operation)i;
	return OP_UNKNOWN;
}

/* Whether an expression of labels is one: its operator, and as many values as that takes. */
static bool is_right(const json_t *expression, bool of_nodes)
{
	enum operation operation = operation_of(expression);
	const json_t *values = json_object_get(expression, "values"), *value;
	size_t count = json_array_size(values), i;

	if (!key_is_valid(member_text(expression, "key")) || operation == OP_UNKNOWN)
		return false;
	if (operation == OP_EXISTS || operation == OP_ABSENT)
		return count == 0;
	if (operation == OP_GREATER || operation == OP_LESS)
		return of_nodes && count == 1;
	json_array_foreach(
	    values, i, value) if (!json_is_string(value) ||
	                          !selector_value_is_valid(json_string_value(value))) return false;
	return count > 0;
}

static bool refuse(const json_t *expression, struct error *error)
{
	return error_set(
	    error, ERROR_INVALID,
	    "the selector's requirement of '%.100s' with operator '%.40s' is malformed",
	    member_text(expression, "key"), member_text(expression, "operator"));
}

static void print_values(struct buffer *buffer, const json_t *values)
{
	const json_t *value;
	size_t i;

	json_array_foreach(values, i, value)
	    buffer_print(buffer, "%s%s", i > 0 ? "|" : "", json_string_value(value));
}

static void print_expression(struct buffer *buffer, const json_t *expression)
{
	enum operation operation = operation_of(expression);
	const char *key = member_text(expression, "key");

	buffer_print(buffer, "&%s%s%s", operation == OP_ABSENT ? "!" : "", key,
	             operation == OP_IN       ? "="
	             : operation == OP_NOT_IN ? "!="
	                                      : "");
	print_values(buffer, json_object_get(expression, "values"));
}

bool selector_print(struct buffer *buffer, const json_t *selector, bool *none, struct error *error)
{
	json_t *labels = json_object_get(selector, "matchLabels"), *value;
	const json_t *expressions = json_object_get(selector, "matchExpressions"), *expression;
	const char *key;
	size_t i;

	*none = !json_is_object(selector);
	json_object_foreach(labels, key, value)
	{
		if (!key_is_valid(key) || !json_is_string(value) ||
		    !selector_value_is_valid(json_string_value(value)))
			return error_set(error, ERROR_INVALID,
			                 "the selector's label '%.100s' is malformed", key);
		buffer_print(buffer, "&%s=%s", key, json_string_value(value));
	}
	json_array_foreach(expressions, i, expression)
	{
		if (!is_right(expression, false))
			return refuse(expression, error);
		print_expression(buffer, expression);
	}
	return true;
}

static bool has_value(const json_t *values, const char *text)
{
	const json_t *value;
	size_t i;

	json_array_foreach(values, i,
	                   value) if (json_is_string(value) &&
	                              strcmp(json_string_value(value), text) == 0) return true;
	return false;
}

static bool is_number(const char *text)
{
	size_t sign = *text == '-';
	size_t digits = strspn(text + sign, "0123456789");

	return digits > 0 && digits < 19 && !text[sign + digits];
}

static bool compare_numbers(const char *text, const json_t *values, bool greater)
{
	const char *bound = json_string_value(json_array_get(values, 0));

	if (!bound || !is_number(text) || !is_number(bound))
		return false;
	long long one = strtoll(text, NULL, 10), other = strtoll(bound, NULL, 10);
	return greater ? one > other : one < other;
}

/* An expression that is right, for a text that may be missing (NULL). */
static bool is_met(const json_t *expression, const char *text)
{
	const json_t *values = json_object_get(expression, "values");

	switch (operation_of(expression)) {
	case OP_IN:
		return text && has_value(values, text);
	case OP_NOT_IN:
		return !text || !has_value(values, text);
	case OP_EXISTS:
		return text != NULL;
	case OP_ABSENT:
		return text == NULL;
	case OP_GREATER:
		return text && compare_numbers(text, values, true);
	case OP_LESS:
		return text && compare_numbers(text, values, false);
	default:
		return false;
	}
}

static bool expressions_match(const json_t *expressions, const json_t *labels, bool of_nodes)
{
	const json_t *expression;
	size_t i;

	json_array_foreach(expressions, i, expression)
	{
		const char *key = member_text(expression, "key");
		if (!is_right(expression, of_nodes) ||
		    !is_met(expression, json_string_value(json_object_get(labels, key))))
			return false;
	}
	return true;
}

bool selector_map_matches(const json_t *map, const json_t *labels)
{
	json_t *value;
	const char *key;

	json_object_foreach((json_t *)map, key, value)
	{
		const char *has = json_string_value(json_object_get(labels, key));
		if (!has || !json_is_string(value) || strcmp(has, json_string_value(value)) != 0)
			return false;
	}
	return true;
}

bool selector_matches(const json_t *selector, const json_t *labels)
{
	return json_is_object(selector) &&
	       selector_map_matches(json_object_get(selector, "matchLabels"), labels) &&
	       expressions_match(json_object_get(selector, "matchExpressions"), labels, false);
}

/* Fields of nodes that can be selected: the name alone. */
static bool fields_match(const json_t *fields, const json_t *node)
{
	const char *name = member_text(json_object_get(node, "metadata"), "name");
	const json_t *field;
	size_t i;

	json_array_foreach(fields, i, field)
	{
		enum operation operation = operation_of(field);
		if (strcmp(member_text(field, "key"), "metadata.name") != 0 ||
		    (operation != OP_IN && operation != OP_NOT_IN) ||
		    json_array_size(json_object_get(field, "values")) != 1 || !is_met(field, name))
			return false;
	}
	return true;
}

static bool term_matches(const json_t *term, const json_t *node)
{
	const json_t *expressions = json_object_get(term, "matchExpressions");
	const json_t *fields = json_object_get(term, "matchFields");
	const json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels");

	if (json_array_size(expressions) == 0 && json_array_size(fields) == 0)
		return false;
	return expressions_match(expressions, labels, true) && fields_match(fields, node);
}

bool selector_matches_node(const json_t *node_selector, const json_t *node)
{
	const json_t *terms = json_object_get(node_selector, "nodeSelectorTerms"), *term;
	size_t i;

	json_array_foreach(terms, i, term) if (term_matches(term, node)) return true;
	return false;
}
