/* text_width.h - how wide text is on a terminal, and what of it fits */
#ifndef CLI_TEXT_TEXT_WIDTH_H
#define CLI_TEXT_TEXT_WIDTH_H

#include <stddef.h>

#include "base/buffer.h"

/* The columns that a text of UTF-8 takes. What is not UTF-8 counts one for each byte. */
int text_width(const char *text);
/* The bytes at the front that fit into `columns` columns. */
size_t text_fits(const char *text, int columns);
/* Appends a text without what would command a terminal: control characters, and bytes that
 * are not UTF-8, become '?'; newlines and tabs a space. */
void text_clean(struct buffer *to, const char *text);

#endif
