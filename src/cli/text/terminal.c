/* terminal.c - what the output goes to: how wide it is, and what it can show */
#include "cli/text/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { USUAL_COLUMNS = 80, USUAL_ROWS = 24 };

struct terminal terminal_of(int descriptor)
{
	struct terminal terminal = { .is_terminal = isatty(descriptor) == 1 };
	const char *no_colour = getenv("NO_COLOR"), *kind = getenv("TERM");
	struct winsize size = { 0 };

	setlocale(LC_CTYPE, "");
	terminal.pictures = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	if (!terminal.is_terminal)
		return terminal;
	bool known = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
	terminal.columns = known ? size.ws_col : USUAL_COLUMNS;
	terminal.rows = known && size.ws_row > 0 ? size.ws_row : USUAL_ROWS;
	terminal.colours = !(no_colour && *no_colour) && kind && *kind && strcmp(kind, "dumb") != 0;
	return terminal;
}

enum colour colour_of_state(const char *state)
{
	static const struct {
		const char *state;
		enum colour colour;
	} colours[] = {
		{ "running", COLOUR_GREEN },     { "online", COLOUR_GREEN },
		{ "ready", COLOUR_GREEN },       { "scheduled", COLOUR_CYAN },
		{ "placed", COLOUR_CYAN },       { "loading", COLOUR_CYAN },
		{ "pending", COLOUR_YELLOW },    { "waiting", COLOUR_YELLOW },
		{ "preempted", COLOUR_MAGENTA }, { "draining", COLOUR_YELLOW },
		{ "held", COLOUR_YELLOW },       { "stopping", COLOUR_MAGENTA },
		{ "failed", COLOUR_RED },        { "lost", COLOUR_RED },
		{ "unknown", COLOUR_RED },       { "cancelled", COLOUR_GREY },
		{ "completed", COLOUR_GREY },
	};
	for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++)
		if (strcmp(colours[i].state, state) == 0)
			return colours[i].colour;
	return COLOUR_NONE;
}
