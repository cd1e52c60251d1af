/* options.c - the command line of a program, described by a table */
#include "base/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/number_text.h"
#include "base/spelling.h"

/* The width of a page of help, and where the texts of its options begin. */
enum { COLUMNS = 80, HELP_COLUMN = 29 };

/* An option as it was given; `value` is NULL if it takes none and none was given. */
struct given {
	const struct option *option;
	const char *value;
};

static bool is_called(const char *name, const char *argument, size_t length)
{
	return name && strlen(name) == length && memcmp(name, argument, length) == 0;
}

static const struct option *option_find(const struct option *const *sets, int set_count,
                                        const char *argument, size_t length)
{
	for (int i = 0; i < set_count; i++)
		for (const struct option *option = sets[i]; option->name; option++)
			if (is_called(option->name, argument, length) ||
			    is_called(option->letter, argument, length))
				return option;
	return NULL;
}

bool arguments_has(const struct arguments *arguments, const char *name)
{
	for (size_t i = 0; i < arguments->given_count; i++)
		if (strcmp(arguments->given[i].option->name, name) == 0)
			return true;
	return false;
}

const char *arguments_next(const struct arguments *arguments, const char *name, size_t *at)
{
	while (*at < arguments->given_count) {
		const struct given *given = &arguments->given[(*at)++];
		if (strcmp(given->option->name, name) == 0)
			return given->value;
	}
	return NULL;
}

const char *arguments_value(const struct arguments *arguments, const char *name)
{
	size_t at = 0;

	return arguments_next(arguments, name, &at);
}

static void add_given(struct arguments *arguments, const struct option *option, const char *value)
{
	array_reserve(arguments->given, arguments->given_capacity, arguments->given_count + 1);
	arguments->given[arguments->given_count++] = (struct given){ option, value };
}

static void add_operand(struct arguments *arguments, const char *operand)
{
	array_reserve(arguments->operands, arguments->operand_capacity,
	              arguments->operand_count + 1);
	arguments->operands[arguments->operand_count++] = operand;
}

const char *option_habitual(const struct option_habit *habits, const char *word)
{
	for (; habits && habits->theirs; habits++)
		if (strcmp(habits->theirs, word) == 0)
			return habits->ours;
	return NULL;
}

const char *option_suggest(const struct option *const *sets, int set_count,
                           const struct option_habit *habits, const char *word)
{
	struct spelling spelling = { .word = word };
	const char *ours = option_habitual(habits, word);

	for (int i = 0; i < set_count; i++)
		for (const struct option *option = sets[i]; option->name; option++) {
			if (ours && strcmp(option->name, ours) == 0)
				return ours;
			spelling_consider(&spelling, option->name);
		}
	return spelling.nearest;
}

static bool options_refuse_unknown(const struct arguments *arguments,
                                   const struct option *const *sets, int set_count,
                                   const char *argument, size_t length, struct error *error)
{
	char name[80];

	snprintf(name, sizeof(name), "%.*s", (int)length, argument);
	const char *meant = option_suggest(sets, set_count, arguments->habits, name);
	if (meant)
		return error_set(error, ERROR_INVALID, "unknown option '%s'; did you mean %s?",
		                 name, meant);
	return error_set(error, ERROR_INVALID, "unknown option '%s'", name);
}

/* Takes the option at `*at`, and its value, which may be the next argument, or, after a letter,
 * the rest of this one. */
static bool take_option(struct arguments *arguments, const struct option *const *sets,
                        int set_count, int argc, char **argv, int *at, struct error *error)
{
	const char *argument = argv[*at];
	const char *equals = strchr(argument, '=');
	size_t length = equals ? (size_t)(equals - argument) : strlen(argument);
	const struct option *option = option_find(sets, set_count, argument, length);
	const char *value = equals ? equals + 1 : NULL;

	if (!option && argument[1] != '-' && argument[2] != '\0') {
		option = option_find(sets, set_count, argument, 2);
		if (option && option->value)
			value = argument + 2;
		else
			option = NULL;
	}
	if (!option)
		return options_refuse_unknown(arguments, sets, set_count, argument, length, error);
	if (!option->repeats && arguments_has(arguments, option->name))
		return error_set(error, ERROR_INVALID, "%s is given twice", option->name);
	if (!option->value && value && option->kind != OPTION_FLAG)
		return error_set(error, ERROR_INVALID, "%s takes no value", option->name);
	if (option->value && !value && *at + 1 >= argc)
		return error_set(error, ERROR_INVALID, "%s needs a value", option->name);
	if (option->value && !value)
		value = argv[++*at];
	add_given(arguments, option, value);
	return true;
}

bool arguments_read(struct arguments *arguments, const struct option *const *sets, int set_count,
                    bool runs, int argc, char **argv, struct error *error)
{
	bool only_operands = false;

	for (int i = 0; i < argc; i++) {
		if (!only_operands && strcmp(argv[i], "--") == 0) {
			only_operands = true;
			arguments->after_dashes = (size_t)(argc - i - 1);
		} else if (!only_operands && argv[i][0] == '-' && argv[i][1] != '\0') {
			if (!take_option(arguments, sets, set_count, argc, argv, &i, error))
				return false;
		} else {
			add_operand(arguments, argv[i]);
			only_operands |= runs;
		}
	}
	return true;
}

void arguments_free(struct arguments *arguments)
{
	free(arguments->given);
	free(arguments->operands);
	*arguments = (struct arguments){ 0 };
}

static bool store_flag(const struct option *option, const char *value, bool *flag,
                       struct error *error)
{
	static const char *const words[][2] = {
		{ "false", "true" }, { "0", "1" }, { "no", "yes" }, { "off", "on" }
	};

	if (!value) {
		*flag = true;
		return true;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		for (size_t k = 0; k < 2; k++)
			if (strcmp(value, words[i][k]) == 0) {
				*flag = k == 1;
				return true;
			}
	return error_set(error, ERROR_INVALID, "%s is '%.40s': it is true or false", option->name,
	                 value);
}

/* True if a value is one of the words; any is if there are none. */
static bool is_word(const char *words, const char *value)
{
	struct text list = text_of(words), word = { 0 };

	while (text_next(&list, ' ', &word))
		if (text_is(word, value))
			return true;
	return words == NULL;
}

static bool store_text(const struct option *option, const char *value, const char **text,
                       struct error *error)
{
	if (!is_word(option->words, value))
		return error_set(error, ERROR_INVALID, "%s is '%.40s': it is one of: %s",
		                 option->name, value, option->words);
	*text = value;
	return true;
}

static bool store_number(const struct option *option, const char *value, int64_t *number,
                         struct error *error)
{
	if (!number_read(text_of(value), option->least, option->most, number))
		return error_set(error, ERROR_INVALID,
		                 "%s is '%.40s': it is a number from %lld to %lld", option->name,
		                 value, (long long)option->least, (long long)option->most);
	*number *= option->unit ? option->unit : 1;
	return true;
}

static bool option_store(const struct option *option, const char *value, void *target,
                         struct error *error)
{
	void *at = (char *)target + option->offset;

	switch (option->kind) {
	case OPTION_TEXT:
		return store_text(option, value, at, error);
	case OPTION_FLAG:
		return store_flag(option, value, at, error);
	case OPTION_NUMBER:
		return store_number(option, value, at, error);
	case OPTION_KEPT:
		break;
	}
	return true;
}

bool arguments_store(const struct arguments *arguments, void *target, struct error *error)
{
	for (size_t i = 0; i < arguments->given_count; i++) {
		const struct given *given = &arguments->given[i];
		if (!option_store(given->option, given->value, target, error))
			return false;
	}
	return true;
}

bool options_store(const struct option *table, int argc, char **argv, void *target,
                   struct error *error)
{
	const struct option *sets[] = { table };
	struct arguments arguments = { 0 };
	bool done = arguments_read(&arguments, sets, 1, false, argc, argv, error);

	if (done && arguments.operand_count > 0)
		done = error_set(error, ERROR_INVALID, "unexpected argument '%.80s'",
		                 arguments.operands[0]);
	done = done && arguments_store(&arguments, target, error);
	arguments_free(&arguments);
	return done;
}

/* The variable of an option: GPU_AGENT_TOKEN_FILE for --token-file. */
static const char *read_variable(const struct option *option, const char *prefix)
{
	char name[128];
	size_t start = (size_t)snprintf(name, sizeof(name), "%s_", prefix);

	snprintf(name + start, sizeof(name) - start, "%s",
	         option->name + strspn(option->name, "-"));
	for (char *at = name + start; *at; at++)
		*at = *at == '-' ? '_' : *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
	return getenv(name);
}

bool options_store_environment(const struct option *table, const char *prefix, void *target,
                               struct arena *arena, struct error *error)
{
	for (const struct option *option = table; option->name; option++) {
		const char *value = read_variable(option, prefix);
		if (value && *value &&
		    !option_store(option, arena_string(arena, value), target, error))
			return false;
	}
	return true;
}

/* Writes text from `column` on, broken at spaces so that it fits. */
static void print_wrapped(FILE *to, const char *text, int column)
{
	int at = column;

	while (*text) {
		size_t word = strcspn(text, " ");
		if (at > column && at + 1 + (int)word > COLUMNS) {
			fprintf(to, "\n%*s", column, "");
			at = column;
		} else if (at > column) {
			fputc(' ', to);
			at++;
		}
		fprintf(to, "%.*s", (int)word, text);
		at += (int)word;
		text += word + strspn(text + word, " ");
	}
	fputc('\n', to);
}

static void print_option(FILE *to, const struct option *option)
{
	int width = option->letter ? fprintf(to, "  %s, %s", option->letter, option->name)
	                           : fprintf(to, "      %s", option->name);

	if (option->value)
		width += fprintf(to, " %s", option->value);
	if (width + 2 > HELP_COLUMN) {
		fputc('\n', to);
		width = 0;
	}
	fprintf(to, "%*s", HELP_COLUMN - width, "");
	print_wrapped(to, option->help, HELP_COLUMN);
}

void options_print(FILE *to, const struct option *table)
{
	for (const struct option *option = table; option->name; option++)
		if (option->help)
			print_option(to, option);
}
