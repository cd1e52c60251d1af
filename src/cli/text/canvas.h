/* canvas.h - a screen that is written line by line, never wider than it is */
#ifndef CLI_TEXT_CANVAS_H
#define CLI_TEXT_CANVAS_H

#include "base/buffer.h"
#include "cli/text/terminal.h"

/* Text beyond the end of a line is cut off. */
struct canvas {
	struct buffer text;
	struct terminal terminal;
	int column, row;
	bool reversed; /* the whole line is marked */
};

/* Writes text in `columns` columns, cut or padded with spaces; 0: as wide as it is. `right`
 * aligns it to the right. */
void canvas_text(struct canvas *canvas, enum colour colour, int columns, bool right,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Repeats a sign over `columns` columns; `plain` on a terminal without Unicode. */
void canvas_sign(struct canvas *canvas, enum colour colour, const char *sign, char plain,
                 int columns);
/* Moves on to a column, if it is not there yet. */
void canvas_to(struct canvas *canvas, int column);
/* The line is done. */
void canvas_end_line(struct canvas *canvas);

#endif
