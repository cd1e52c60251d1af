/* canvas.c - a screen that is written line by line, never wider than it is */
#include "cli/text/canvas.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cli/text/text_width.h"

static void begin_colour(struct canvas *canvas, enum colour colour)
{
	if (canvas->reversed && canvas->terminal.is_terminal)
		buffer_print(&canvas->text, "\033[%dm", (int)COLOUR_REVERSE);
	if (colour != COLOUR_NONE && canvas->terminal.colours)
		buffer_print(&canvas->text, "\033[%dm", (int)colour);
}

static void end_colour(struct canvas *canvas, enum colour colour)
{
	if ((canvas->reversed && canvas->terminal.is_terminal) ||
	    (colour != COLOUR_NONE && canvas->terminal.colours))
		buffer_text(&canvas->text, "\033[0m");
}

static void canvas_fill(struct canvas *canvas, int columns)
{
	if (columns > 0)
		buffer_print(&canvas->text, "%*s", columns, "");
}

/* Writes clean text in exactly `columns` columns. */
static void canvas_put(struct canvas *canvas, const char *text, int columns, bool right)
{
	int wants = text_width(text);
	if (wants <= columns) {
		if (right)
			canvas_fill(canvas, columns - wants);
		buffer_text(&canvas->text, text);
		if (!right)
			canvas_fill(canvas, columns - wants);
		return;
	}
	size_t size = text_fits(text, columns - 1);
	char *front = memory_alloc(size + 1);
	snprintf(front, size + 1, "%s", text);
	int width = text_width(front);
	buffer_text(&canvas->text, front);
	if (columns > 0)
		buffer_text(&canvas->text, canvas->terminal.pictures ? "…" : "~");
	canvas_fill(canvas, columns - width - 1);
	free(front);
}

void canvas_text(struct canvas *canvas, enum colour colour, int columns, bool right,
                 const char *format, ...)
{
	va_list arguments, again;
	va_start(arguments, format);
	va_copy(again, arguments);
	int size = vsnprintf(NULL, 0, format, again);
	va_end(again);
	char *text = memory_alloc((size_t)size + 1);
	vsnprintf(text, (size_t)size + 1, format, arguments);
	va_end(arguments);

	struct buffer clean = { 0 };
	text_clean(&clean, text);
	int left = canvas->terminal.columns - canvas->column;
	if (columns == 0)
		columns = text_width(clean.data);
	if (columns > left)
		columns = left;
	if (columns > 0) {
		begin_colour(canvas, colour);
		canvas_put(canvas, clean.data, columns, right);
		end_colour(canvas, colour);
		canvas->column += columns;
	}
	buffer_free(&clean);
	free(text);
}

void canvas_sign(struct canvas *canvas, enum colour colour, const char *sign, char plain,
                 int columns)
{
	int left = canvas->terminal.columns - canvas->column;
	if (columns > left)
		columns = left;
	if (columns <= 0)
		return;
	begin_colour(canvas, colour);
	for (int i = 0; i < columns; i++) {
		if (canvas->terminal.pictures)
			buffer_text(&canvas->text, sign);
		else
			buffer_bytes(&canvas->text, &plain, 1);
	}
	end_colour(canvas, colour);
	canvas->column += columns;
}

void canvas_to(struct canvas *canvas, int column)
{
	if (column > canvas->column)
		canvas_text(canvas, COLOUR_NONE, column - canvas->column, false, "%s", "");
}

void canvas_end_line(struct canvas *canvas)
{
	if (canvas->reversed)
		canvas_to(canvas, canvas->terminal.columns);
	canvas->reversed = false;
	buffer_text(&canvas->text, "\n");
	canvas->column = 0;
	canvas->row++;
}
