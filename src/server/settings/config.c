/* config.c - what the scheduler is told before it starts: a file, and the environment */
#include "server/settings/config.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/settings/file.h"
#include "server/settings/settings.h"

#define PREFIX "GPU_SCHEDULER_"
enum { FILE_BYTES_MAX = 1 << 20 };

struct config *config_new(void)
{
	struct config *config = NEW(struct config);
	struct error error;
	config->file = "";
	config->places = memory_zero(setting_count, sizeof(*config->places));
	for (size_t i = 0; i < setting_count; i++)
		if (!setting_take(&settings[i], config, settings[i].fallback, &error))
			panic("the default of a setting: %s", error.text);
	return config;
}

void config_free(struct config *config)
{
	if (!config)
		return;
	free(config->places);
	arena_free(&config->arena);
	free(config);
}

bool config_read_file(struct config *config, const char *path, struct error *error)
{
	struct buffer text = { 0 };
	bool done = file_read(path, FILE_BYTES_MAX, &text, error) &&
	            config_read_yaml(config, path, text.data ? text.data : "", text.size, error);
	buffer_free(&text);
	return done;
}

/* Takes a value from outside the file; the reason then names where it is from. */
static bool config_take(struct config *config, const struct setting *setting, bool in_file,
                        const char *value, const char *by, struct error *error)
{
	struct error reason;
	bool done = in_file ? setting_take_file(setting, config, value, &reason)
	                    : setting_take(setting, config, value, &reason);
	if (!done)
		return error_set(error, ERROR_INVALID, "%s: %s", by, reason.text);
	config->places[setting - settings] =
	    (struct place){ .given = true,
		            .by = arena_string(&config->arena, by),
		            .value_file = in_file ? arena_string(&config->arena, value) : NULL };
	return true;
}

bool config_set(struct config *config, const char *section, const char *key, const char *value,
                const char *by, struct error *error)
{
	const struct setting *setting = setting_find(section, key, strlen(key));
	INVARIANT(setting);
	return config_take(config, setting, false, value, by, error);
}

/* The section that a variable's name begins with, in capitals, or NULL; `*key` is
 * the rest, in small letters. */
static const char *split_variable(const char *name, size_t length, char *key, size_t size)
{
	for (size_t i = 0; i < setting_count; i++) {
		const char *section = settings[i].section;
		size_t own = strlen(section);
		if (length <= own + 1 || name[own] != '_' || length - own - 1 >= size ||
		    strncasecmp(name, section, own) != 0)
			continue;
		for (size_t j = own + 1; j < length; j++)
			key[j - own - 1] = (char)tolower((unsigned char)name[j]);
		key[length - own - 1] = '\0';
		return section;
	}
	return NULL;
}

static bool take_variable(struct config *config, const char *variable, struct error *error)
{
	char key[64], name[128];
	const char *equals = strchr(variable, '=');
	size_t prefix = sizeof(PREFIX) - 1;
	bool in_file = false;
	if (!equals || strncmp(variable, PREFIX, prefix) != 0)
		return true;
	size_t length = (size_t)(equals - variable) - prefix;
	const char *section = split_variable(variable + prefix, length, key, sizeof(key));
	if (!section)
		return true;
	snprintf(name, sizeof(name), "%.*s", (int)(equals - variable), variable);
	const struct setting *setting = setting_find_given(section, key, &in_file);
	if (setting)
		return config_take(config, setting, in_file, equals + 1, name, error);
	const char *near = setting_nearest_key(section, key);
	return error_set(error, ERROR_INVALID, "%s: %s has no key '%s'%s%s%s", name, section, key,
	                 near ? ": is " : "; docs/configuration.md lists all", near ? near : "",
	                 near ? " meant?" : "");
}

bool config_read_environment(struct config *config, char *const *environment, struct error *error)
{
	for (size_t i = 0; environment[i]; i++)
		if (!take_variable(config, environment[i], error))
			return false;
	return true;
}

bool config_refuse(const struct config *config, const char *section, const char *key,
                   struct error *error, const char *format, ...)
{
	const struct setting *setting = setting_find(section, key, strlen(key));
	char reason[ERROR_TEXT_MAX];
	va_list arguments;
	INVARIANT(setting);
	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	const struct place *place = &config->places[setting - settings];
	if (place->given && place->line > 0)
		return error_set(error, ERROR_INVALID, "%s:%d:%d: %s.%s %s", place->by, place->line,
		                 place->column, section, key, reason);
	if (place->given)
		return error_set(error, ERROR_INVALID, "%s: %s.%s %s", place->by, section, key,
		                 reason);
	return error_set(error, ERROR_INVALID, "%s%s%s.%s %s", config->file,
	                 *config->file ? ": " : "", section, key, reason);
}

bool config_is_given(const struct config *config, const char *section, const char *key)
{
	const struct setting *setting = setting_find(section, key, strlen(key));
	INVARIANT(setting);
	return config->places[setting - settings].given;
}

void config_without_effect(const struct config *config, struct buffer *text)
{
	static const char *const names[][2] = { { "kubernetes", "namespace" } };
	buffer_text(text, "");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (config_is_given(config, names[i][0], names[i][1]))
			buffer_print(text, "%s%s.%s", text->size > 0 ? ", " : "", names[i][0],
			             names[i][1]);
	}
}

void config_differences(const struct config *before, const struct config *after,
                        struct buffer *text)
{
	buffer_text(text, "");
	for (size_t i = 0; i < setting_count; i++)
		if (!settings[i].reloads && !setting_equal(&settings[i], before, after))
			buffer_print(text, "%s%s.%s", text->size > 0 ? ", " : "",
			             settings[i].section, settings[i].key);
}
