/* options.c - the options and operands of a command */
#include "cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/suggest.h"

/* An option as it was given; `value` is NULL where it takes none. */
struct given {
	const struct option *option;
	const char *value;
};

static bool is_called(const char *name, const char *argument, size_t length)
{
	return name && strlen(name) == length && memcmp(name, argument, length) == 0;
}

static const struct option *find(const struct option *const *sets, int set_count,
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

static bool refuse_unknown(const struct option *const *sets, int set_count, const char *argument,
                           size_t length, struct error *error)
{
	char name[80];
	snprintf(name, sizeof(name), "%.*s", (int)length, argument);
	const char *meant = suggest_option(sets, set_count, name);
	if (meant)
		return error_set(error, ERROR_INVALID, "there is no option '%s'; did you mean %s?",
		                 name, meant);
	return error_set(error, ERROR_INVALID, "there is no option '%s'", name);
}

/* Takes the option at `*at`, and its value, which may be the next argument, or, behind a
 * letter, the rest of this one. */
static bool take(struct arguments *arguments, const struct option *const *sets, int set_count,
                 int argc, char **argv, int *at, struct error *error)
{
	const char *argument = argv[*at];
	const char *equals = strchr(argument, '=');
	size_t length = equals ? (size_t)(equals - argument) : strlen(argument);
	const struct option *option = find(sets, set_count, argument, length);
	const char *value = equals ? equals + 1 : NULL;

	if (!option && argument[1] != '-' && argument[2] != '\0') {
		option = find(sets, set_count, argument, 2);
		if (option && option->value)
			value = argument + 2;
		else
			option = NULL;
	}
	if (!option)
		return refuse_unknown(sets, set_count, argument, length, error);
	if (!option->repeats && arguments_has(arguments, option->name))
		return error_set(error, ERROR_INVALID, "%s is given twice", option->name);
	if (!option->value && value)
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
			if (!take(arguments, sets, set_count, argc, argv, &i, error))
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

/* Takes a number from the front of `*text`, if there is one. */
static bool take_number(const char **text, int64_t most, int64_t *number)
{
	const char *at = *text;
	int64_t unit = 1, value = 0;
	if (*at < '0' || *at > '9')
		return false;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (value > (INT64_MAX - 9) / 10)
			return false;
		value = value * 10 + (*at - '0');
	}
	if (*at == 'k' || *at == 'K')
		unit = 1024;
	else if (*at == 'm' || *at == 'M')
		unit = 1048576;
	if (unit > 1)
		at++;
	if (value < 1 || value > most / unit)
		return false;
	*number = value * unit;
	*text = at;
	return true;
}

bool options_number(const char *name, const char *text, int64_t most, int64_t *number,
                    struct error *error)
{
	const char *at = text;
	if (take_number(&at, most, number) && *at == '\0')
		return true;
	return error_set(error, ERROR_INVALID,
	                 "%s is '%.40s', and should be a number from 1 to %lld, such as 4096 or 8k",
	                 name, text, (long long)most);
}

int options_numbers(const char *name, const char *text, int64_t most, int64_t *numbers,
                    int numbers_max, struct error *error)
{
	const char *at = text;
	int count = 0;
	while (count < numbers_max && take_number(&at, most, &numbers[count])) {
		count++;
		if (*at == '\0')
			return count;
		if (*at != ',')
			break;
		at++;
	}
	error_set(
	    error, ERROR_INVALID,
	    "%s is '%.40s', and should be up to %d numbers from 1 to %lld with commas between "
	    "them, such as 1,2,4",
	    name, text, numbers_max, (long long)most);
	return -1;
}
