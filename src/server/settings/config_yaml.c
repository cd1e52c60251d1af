/* config_yaml.c - the configuration file: sections with keys, and nothing cleverer than that */
#include <stdio.h>
#include <string.h>

#include <yaml.h>

#include "server/settings/settings.h"

/* The longest list that is taken. */
enum { LIST_MAX = 256 };

/* Where reading is. `event` is the one that was read last. */
struct reading {
	struct config *config;
	const char *name;
	yaml_parser_t parser;
	yaml_event_t event;
	struct error *error;
};

static bool refuse_at(const struct reading *reading, yaml_mark_t mark, const char *reason)
{
	return error_set(reading->error, ERROR_INVALID, "%s:%zu:%zu: %s", reading->name,
	                 mark.line + 1, mark.column + 1, reason);
}

static bool config_yaml_refuse(const struct reading *reading, const char *reason)
{
	return refuse_at(reading, reading->event.start_mark, reason);
}

/* Reads the next event. Anchors, aliases and tags are for other files than this. */
static bool next(struct reading *reading)
{
	yaml_event_delete(&reading->event);
	if (!yaml_parser_parse(&reading->parser, &reading->event)) {
		const char *problem = reading->parser.problem;
		yaml_mark_t mark = reading->parser.problem_mark;
		memset(&reading->event, 0, sizeof(reading->event));
		error_set(reading->error, ERROR_INVALID, "%s:%zu:%zu: this is not YAML: %s",
		          reading->name, mark.line + 1, mark.column + 1,
		          problem ? problem : "out of memory");
		return false;
	}
	const yaml_event_t *event = &reading->event;
	bool anchored =
	    (event->type == YAML_SCALAR_EVENT && event->data.scalar.anchor) ||
	    (event->type == YAML_SEQUENCE_START_EVENT && event->data.sequence_start.anchor) ||
	    (event->type == YAML_MAPPING_START_EVENT && event->data.mapping_start.anchor);
	bool tagged =
	    (event->type == YAML_SCALAR_EVENT && event->data.scalar.tag) ||
	    (event->type == YAML_SEQUENCE_START_EVENT && event->data.sequence_start.tag) ||
	    (event->type == YAML_MAPPING_START_EVENT && event->data.mapping_start.tag);
	if (event->type == YAML_ALIAS_EVENT || anchored)
		return config_yaml_refuse(reading,
		                          "anchors and aliases are not taken: write the value out");
	if (tagged)
		return config_yaml_refuse(reading,
		                          "tags are not taken: write the value without one");
	return true;
}

/* Passes over one that only says that something begins or ends. */
static bool next_but_one(struct reading *reading)
{
	if (!next(reading))
		return false;
	return next(reading);
}

/* The text of the current scalar, in the config's arena; NULL, refused, if it is
 * none or has a NUL in it. */
static const char *scalar(struct reading *reading, const char *otherwise)
{
	const yaml_event_t *event = &reading->event;
	const char *text = (const char *)event->data.scalar.value;
	if (event->type != YAML_SCALAR_EVENT) {
		config_yaml_refuse(reading, otherwise);
		return NULL;
	}
	if (strlen(text) != event->data.scalar.length) {
		config_yaml_refuse(reading, "there is a NUL in this text: remove it");
		return NULL;
	}
	return arena_string(&reading->config->arena, text);
}

static bool config_yaml_is_plain(const struct reading *reading)
{
	return reading->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static bool is_null(const struct reading *reading, const char *text)
{
	return config_yaml_is_plain(reading) &&
	       (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

/* A value that the table refuses, told with its place. */
static bool refuse_value(const struct reading *reading, yaml_mark_t mark,
                         const struct error *reason)
{
	return refuse_at(reading, mark, reason->text);
}

static bool config_yaml_read_list(struct reading *reading, const struct setting *setting)
{
	const char *entries[LIST_MAX];
	size_t count = 0;
	while (next(reading) && reading->event.type != YAML_SEQUENCE_END_EVENT) {
		const char *text = scalar(reading, "the entries of this list are texts");
		if (!text)
			return false;
		if (is_null(reading, text))
			return config_yaml_refuse(reading, "this entry is empty: remove it");
		if (count == LIST_MAX)
			return config_yaml_refuse(reading, "this list is too long");
		entries[count++] = text;
	}
	if (reading->event.type != YAML_SEQUENCE_END_EVENT)
		return false;
	setting_take_list(setting, reading->config, entries, count);
	return true;
}

static bool read_value(struct reading *reading, const struct setting *setting, bool in_file)
{
	yaml_mark_t mark = reading->event.start_mark;
	struct error reason;
	char otherwise[160];

	if (setting->kind == SETTING_LIST && reading->event.type == YAML_SEQUENCE_START_EVENT)
		return config_yaml_read_list(reading, setting);
	snprintf(otherwise, sizeof(otherwise), "%s.%s is one value: write it behind the colon",
	         setting->section, setting->key);
	const char *text = scalar(reading, otherwise);
	if (!text)
		return false;
	if (is_null(reading, text)) {
		snprintf(otherwise, sizeof(otherwise),
		         "%s.%s has no value: give it one, or remove the line", setting->section,
		         setting->key);
		return config_yaml_refuse(reading, otherwise);
	}
	bool number = setting->kind == SETTING_FLAG || setting->kind == SETTING_INTEGER ||
	              setting->kind == SETTING_DECIMAL;
	if (number && !config_yaml_is_plain(reading)) {
		snprintf(otherwise, sizeof(otherwise), "%s.%s is a text here: remove the quotes",
		         setting->section, setting->key);
		return config_yaml_refuse(reading, otherwise);
	}
	if (setting->kind == SETTING_LIST) {
		snprintf(otherwise, sizeof(otherwise), "%s.%s is a list: write [%.40s]",
		         setting->section, setting->key, text);
		return config_yaml_refuse(reading, otherwise);
	}
	if (in_file)
		reading->config->places[setting - settings].value_file =
		    arena_string(&reading->config->arena, text);
	if (in_file)
		return setting_take_file(setting, reading->config, text, &reason) ||
		       refuse_value(reading, mark, &reason);
	return setting_take(setting, reading->config, text, &reason) ||
	       refuse_value(reading, mark, &reason);
}

static bool refuse_key(const struct reading *reading, const char *section, const char *key)
{
	char reason[200];
	const char *near = setting_nearest_key(section, key);
	if (near)
		snprintf(reason, sizeof(reason), "%s has no key '%.60s': is %s meant?", section,
		         key, near);
	else
		snprintf(reason, sizeof(reason),
		         "%s has no key '%.60s': docs/configuration.md lists all", section, key);
	return config_yaml_refuse(reading, reason);
}

static bool read_key(struct reading *reading, const char *section)
{
	const char *key = scalar(reading, "a key is a text");
	bool in_file = false;
	if (!key)
		return false;
	const struct setting *setting = setting_find_given(section, key, &in_file);
	if (!setting)
		return refuse_key(reading, section, key);
	struct place *place = &reading->config->places[setting - settings];
	if (place->given && place->line > 0) {
		char reason[160];
		snprintf(reason, sizeof(reason), "%s.%s was given already in line %d: remove one",
		         section, setting->key, place->line);
		return config_yaml_refuse(reading, reason);
	}
	*place = (struct place){ .given = true,
		                 .line = (int)reading->event.start_mark.line + 1,
		                 .column = (int)reading->event.start_mark.column + 1,
		                 .by = reading->config->file };
	return next(reading) && read_value(reading, setting, in_file);
}

static bool read_section(struct reading *reading, const char *section)
{
	char reason[160];
	if (!next(reading))
		return false;
	/* With all its keys commented out. */
	if (reading->event.type == YAML_SCALAR_EVENT) {
		const char *text = scalar(reading, "");
		if (!text)
			return false;
		if (is_null(reading, text))
			return true;
	}
	if (reading->event.type != YAML_MAPPING_START_EVENT) {
		snprintf(reason, sizeof(reason),
		         "%s is a section: write its keys below it, indented", section);
		return config_yaml_refuse(reading, reason);
	}
	while (next(reading) && reading->event.type != YAML_MAPPING_END_EVENT)
		if (!read_key(reading, section))
			return false;
	return reading->event.type == YAML_MAPPING_END_EVENT;
}

static bool refuse_section(const struct reading *reading, const char *name)
{
	char reason[200];
	const char *near = setting_nearest_section(name);
	if (near)
		snprintf(reason, sizeof(reason), "there is no section '%.60s': is %s meant?", name,
		         near);
	else
		snprintf(reason, sizeof(reason),
		         "there is no section '%.60s': docs/configuration.md lists all", name);
	return config_yaml_refuse(reading, reason);
}

/* All sections; each may be there once. */
static bool read_sections(struct reading *reading)
{
	enum { SECTIONS_MAX = 64 };
	const char *seen[SECTIONS_MAX];
	size_t count = 0;
	while (next(reading) && reading->event.type != YAML_MAPPING_END_EVENT) {
		const char *name = scalar(reading, "the name of a section is a text");
		if (!name)
			return false;
		if (!setting_has_section(name, strlen(name)))
			return refuse_section(reading, name);
		for (size_t i = 0; i < count; i++)
			if (strcmp(seen[i], name) == 0)
				return config_yaml_refuse(
				    reading, "this section is there twice: put its keys "
					     "together");
		INVARIANT(count < SECTIONS_MAX);
		seen[count++] = name;
		if (!read_section(reading, name))
			return false;
	}
	return reading->event.type == YAML_MAPPING_END_EVENT;
}

static bool read_document(struct reading *reading)
{
	if (!next_but_one(reading))
		return false;
	if (reading->event.type == YAML_STREAM_END_EVENT)
		return true;
	if (!next(reading))
		return false;
	if (reading->event.type == YAML_MAPPING_START_EVENT) {
		if (!read_sections(reading))
			return false;
	} else if (reading->event.type != YAML_SCALAR_EVENT ||
	           reading->event.data.scalar.length > 0) {
		return config_yaml_refuse(
		    reading, "a configuration is sections with keys: 'api:', and below "
			     "it '  http_port: 8080'");
	}
	if (!next_but_one(reading))
		return false;
	return reading->event.type == YAML_STREAM_END_EVENT ||
	       config_yaml_refuse(reading, "only one document is read: remove what follows '---'");
}

bool config_read_yaml(struct config *config, const char *name, const char *text, size_t size,
                      struct error *error)
{
	struct reading reading = { .config = config, .name = name, .error = error };
	config->file = arena_string(&config->arena, name);
	if (!yaml_parser_initialize(&reading.parser))
		return error_set(error, ERROR_UNAVAILABLE, "%s: out of memory", name);
	yaml_parser_set_input_string(&reading.parser, (const unsigned char *)text, size);
	bool done = read_document(&reading);
	yaml_event_delete(&reading.event);
	yaml_parser_delete(&reading.parser);
	return done;
}
