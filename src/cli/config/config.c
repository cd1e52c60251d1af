/* config.c - the contexts of a user: which clusters there are, and how to sign in to each */
#include "cli/config/config.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

/* The keys of a context. */
static const struct {
	const char *key;
	size_t offset;
} keys[] = {
	{ "server", offsetof(struct context, server) },
	{ "token", offsetof(struct context, token) },
	{ "token_file", offsetof(struct context, token_file) },
	{ "ca", offsetof(struct context, ca) },
	{ "tenant", offsetof(struct context, tenant) },
};
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

static const char *field(const struct context *context, size_t key)
{
	const char *value;
	memcpy(&value, (const char *)context + keys[key].offset, sizeof(value));
	return value;
}

static void set_field(struct context *context, size_t key, const char *value)
{
	memcpy((char *)context + keys[key].offset, &value, sizeof(value));
}

struct context *config_find(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->count; i++)
		if (strcmp(config->contexts[i].name, name) == 0)
			return &config->contexts[i];
	return NULL;
}

struct context *config_make(struct config *config, const char *name)
{
	struct context *found = config_find(config, name);
	if (found)
		return found;
	array_reserve(config->contexts, config->capacity, config->count + 1);
	found = &config->contexts[config->count++];
	*found = (struct context){ .name = arena_string(&config->arena, name) };
	return found;
}

void config_remove(struct config *config, struct context *context)
{
	size_t place = (size_t)(context - config->contexts);
	memmove(context, context + 1, (config->count - place - 1) * sizeof(*context));
	config->count--;
}

void config_free(struct config *config)
{
	free(config->contexts);
	arena_free(&config->arena);
	*config = (struct config){ 0 };
}

/* Where reading is. */
struct reading {
	struct config *config;
	const char *name;
	yaml_document_t *document;
	struct error *error;
};

static bool config_reject(const struct reading *reading, const yaml_node_t *node,
                          const char *reason)
{
	return error_set(reading->error, ERROR_INVALID, "%.120s:%zu:%zu: %s", reading->name,
	                 node->start_mark.line + 1, node->start_mark.column + 1, reason);
}

/* The text of a scalar; NULL, refused, if it is none or has a NUL in it. An empty one, or
 * null, is ''. */
static const char *scalar(const struct reading *reading, const yaml_node_t *node,
                          const char *otherwise)
{
	if (node->type != YAML_SCALAR_NODE) {
		config_reject(reading, node, otherwise);
		return NULL;
	}
	const char *text = (const char *)node->data.scalar.value;
	if (strlen(text) != node->data.scalar.length) {
		config_reject(reading, node, "there is a NUL in this text: remove it");
		return NULL;
	}
	if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	    (strcmp(text, "~") == 0 || strcmp(text, "null") == 0))
		return "";
	return arena_string(&reading->config->arena, text);
}

static yaml_node_t *node_at(const struct reading *reading, int place)
{
	return yaml_document_get_node(reading->document, place);
}

static bool config_read_field(const struct reading *reading, struct context *context,
                              const yaml_node_pair_t *pair)
{
	const yaml_node_t *key_node = node_at(reading, pair->key);
	const char *key = scalar(reading, key_node, "a name is wanted here");
	if (!key)
		return false;
	for (size_t i = 0; i < KEYS; i++) {
		if (strcmp(keys[i].key, key) != 0)
			continue;
		const char *value = scalar(reading, node_at(reading, pair->value),
		                           "this is one value: write it behind the colon");
		if (!value)
			return false;
		if (field(context, i))
			return config_reject(reading, key_node, "this is said twice: remove one");
		set_field(context, i, *value ? value : NULL);
		return true;
	}
	return config_reject(reading, key_node,
	                     "a context has server, token, token_file, ca and tenant, not this");
}

static bool read_context(const struct reading *reading, const yaml_node_pair_t *pair)
{
	const yaml_node_t *name_node = node_at(reading, pair->key);
	const yaml_node_t *value = node_at(reading, pair->value);
	const char *name = scalar(reading, name_node, "the name of a context is wanted here");
	if (!name)
		return false;
	if (!*name)
		return config_reject(reading, name_node, "a context needs a name");
	if (config_find(reading->config, name))
		return config_reject(reading, name_node, "there is a context of this name already");
	if (value->type != YAML_MAPPING_NODE)
		return config_reject(reading, value,
		                     "a context is lines such as 'server: http://HOST:PORT'");
	struct context *context = config_make(reading->config, name);
	for (const yaml_node_pair_t *at = value->data.mapping.pairs.start;
	     at < value->data.mapping.pairs.top; at++)
		if (!config_read_field(reading, context, at))
			return false;
	return true;
}

static bool read_contexts(const struct reading *reading, const yaml_node_t *node)
{
	if (node->type == YAML_SCALAR_NODE && node->data.scalar.length == 0)
		return true;
	if (node->type != YAML_MAPPING_NODE)
		return config_reject(reading, node,
		                     "contexts are names, with their settings below each");
	for (const yaml_node_pair_t *at = node->data.mapping.pairs.start;
	     at < node->data.mapping.pairs.top; at++)
		if (!read_context(reading, at))
			return false;
	return true;
}

static bool read_top(const struct reading *reading, const yaml_node_t *root)
{
	if (root->type != YAML_MAPPING_NODE)
		return config_reject(reading, root, "this file has current_context and contexts");
	for (const yaml_node_pair_t *at = root->data.mapping.pairs.start;
	     at < root->data.mapping.pairs.top; at++) {
		const yaml_node_t *key_node = node_at(reading, at->key);
		const yaml_node_t *value_node = node_at(reading, at->value);
		const char *key = scalar(reading, key_node, "a name is wanted here");
		if (!key)
			return false;
		if (strcmp(key, "contexts") == 0) {
			if (!read_contexts(reading, value_node))
				return false;
		} else if (strcmp(key, "current_context") == 0) {
			const char *name =
			    scalar(reading, value_node, "the name of a context is wanted here");
			if (!name)
				return false;
			reading->config->current = *name ? name : NULL;
		} else {
			return config_reject(
			    reading, key_node,
			    "this file has current_context and contexts, and nothing "
			    "else");
		}
	}
	return true;
}

bool config_parse(struct config *config, const char *name, const char *text, size_t size,
                  struct error *error)
{
	yaml_parser_t parser;
	yaml_document_t document;
	struct reading reading = { config, name, &document, error };
	bool good;

	if (!yaml_parser_initialize(&parser))
		return error_set(error, ERROR_FULL, "out of memory");
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
	if (!yaml_parser_load(&parser, &document)) {
		good = error_set(error, ERROR_INVALID, "%.120s:%zu:%zu: this is not YAML: %s", name,
		                 parser.problem_mark.line + 1, parser.problem_mark.column + 1,
		                 parser.problem ? parser.problem : "out of memory");
		yaml_parser_delete(&parser);
		return good;
	}
	const yaml_node_t *root = yaml_document_get_root_node(&document);
	good = !root || read_top(&reading, root);
	yaml_document_delete(&document);
	yaml_parser_delete(&parser);
	return good;
}

/* A text in quotes: what JSON writes is YAML as well. */
static void config_print_text(struct buffer *to, const char *text)
{
	json_t *value = json_string(text);
	char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
	buffer_text(to, quoted ? quoted : "\"\"");
	free(quoted);
	json_decref(value);
}

void config_print(const struct config *config, struct buffer *to)
{
	buffer_text(to, "current_context: ");
	config_print_text(to, config->current ? config->current : "");
	buffer_text(to, "\ncontexts:\n");
	for (size_t i = 0; i < config->count; i++) {
		const struct context *context = &config->contexts[i];
		bool empty = true;
		buffer_text(to, "  ");
		config_print_text(to, context->name);
		buffer_text(to, ":");
		for (size_t key = 0; key < KEYS; key++) {
			const char *value = field(context, key);
			if (!value)
				continue;
			buffer_print(to, "\n    %s: ", keys[key].key);
			config_print_text(to, value);
			empty = false;
		}
		buffer_text(to, empty ? " {}\n" : "\n");
	}
}
