/* terminal.h - what the output goes to: how wide it is, and what it can show */
#ifndef CLI_TEXT_TERMINAL_H
#define CLI_TEXT_TERMINAL_H

#include <stdbool.h>

/* `columns` is 0 where there is no end: a file or a pipe. */
struct terminal {
	int columns, rows;
	bool is_terminal;
	bool colours;  /* it is one, and nobody said NO_COLOR */
	bool pictures; /* it shows UTF-8 */
};

struct terminal terminal_of(int descriptor);

/* The colors of SGR; the first is the terminal's default. */
enum colour {
	COLOUR_NONE = 0,
	COLOUR_BOLD = 1,
	COLOUR_DIM = 2,
	COLOUR_REVERSE = 7,
	COLOUR_RED = 31,
	COLOUR_GREEN = 32,
	COLOUR_YELLOW = 33,
	COLOUR_BLUE = 34,
	COLOUR_MAGENTA = 35,
	COLOUR_CYAN = 36,
	COLOUR_GREY = 90,
};

/* That a job, a node or a slot in this state is shown in. */
enum colour colour_of_state(const char *state);

#endif
