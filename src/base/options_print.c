/* options_print.c - the help of a command line, from its table */
#include <string.h>

#include "base/options.h"

enum { COLUMNS = 80, HELP_COLUMN = 29 };

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
