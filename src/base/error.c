/* error.c - errors as values, and the end of the program when an invariant is broken */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Drops what is left of a UTF-8 character that was cut at the end of `text`. */
static void drop_cut_character(char *text)
{
	size_t size = strlen(text);
	size_t start = size;
	while (start > 0 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
		start--;
	if (start > 0 && ((unsigned char)text[start - 1] & 0xc0) == 0xc0)
		text[start - 1] = '\0';
}

bool error_set(struct error *error, enum error_code code, const char *format, ...)
{
	if (!error)
		return false;
	/* Not straight into `error`: its old text may be among the arguments. */
	char text[ERROR_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (length >= (int)sizeof(text))
		drop_cut_character(text);
	error->code = code;
	memcpy(error->text, text, sizeof(text));
	return false;
}

void error_clear(struct error *error)
{
	error->code = ERROR_NONE;
	error->text[0] = '\0';
}

const char *error_code_name(enum error_code code)
{
	switch (code) {
	case ERROR_NONE:
		return "none";
	case ERROR_INVALID:
		return "invalid";
	case ERROR_FORBIDDEN:
		return "forbidden";
	case ERROR_NOT_FOUND:
		return "not_found";
	case ERROR_CONFLICT:
		return "conflict";
	case ERROR_IMPOSSIBLE:
		return "impossible";
	case ERROR_FULL:
		return "full";
	case ERROR_NO_ROOM:
		return "no_room";
	case ERROR_CORRUPT:
		return "corrupt";
	case ERROR_UNAVAILABLE:
		return "unavailable";
	}
	return "unknown";
}

_Noreturn void panic(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	fputs("panic: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	fflush(stderr);
	abort();
}
