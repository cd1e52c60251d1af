/* options.c - the options and operands of a command */
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

static const struct option *find(const struct option *options, size_t count, const char *argument,
                                 size_t length)
{
	for (size_t i = 0; i < count; i++) {
		const struct option *option = &options[i];
		if (strlen(option->name) == length && memcmp(option->name, argument, length) == 0)
			return option;
		if (option->letter && strlen(option->letter) == length &&
		    memcmp(option->letter, argument, length) == 0)
			return option;
	}
	return NULL;
}

/* Takes the option at `*at`, and its value, which may be the next argument. */
static bool take(const struct option *options, size_t count, int argc, char **argv, int *at,
                 struct error *error)
{
	const char *argument = argv[*at];
	const char *equals = strchr(argument, '=');
	size_t length = equals ? (size_t)(equals - argument) : strlen(argument);
	const struct option *option = find(options, count, argument, length);
	if (!option)
		return error_set(error, ERROR_INVALID, "there is no option '%.*s'", (int)length,
		                 argument);
	if (option->flag ? *option->flag : *option->value != NULL)
		return error_set(error, ERROR_INVALID, "%s is given twice", option->name);
	if (option->flag) {
		*option->flag = true;
		return !equals ||
		       error_set(error, ERROR_INVALID, "%s takes no value", option->name);
	}
	if (!equals && *at + 1 >= argc)
		return error_set(error, ERROR_INVALID, "%s needs a value", option->name);
	*option->value = equals ? equals + 1 : argv[++*at];
	return true;
}

int options_read(const struct option *options, size_t count, int argc, char **argv,
                 const char **operands, int operands_max, struct error *error)
{
	int found = 0;
	bool only_operands = false;
	for (int i = 0; i < argc; i++) {
		if (!only_operands && strcmp(argv[i], "--") == 0) {
			only_operands = true;
		} else if (!only_operands && argv[i][0] == '-' && argv[i][1] != '\0') {
			if (!take(options, count, argc, argv, &i, error))
				return -1;
		} else if (found == operands_max) {
			error_set(error, ERROR_INVALID, "'%.80s' is one argument too many",
			          argv[i]);
			return -1;
		} else {
			operands[found++] = argv[i];
		}
	}
	return found;
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
