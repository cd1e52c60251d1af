/* text_width.h - how wide text is on a terminal, and what of it fits */
#ifndef CLI_TEXT_TEXT_WIDTH_H
#define CLI_TEXT_TEXT_WIDTH_H

#include <stddef.h>

#include "base/buffer.h"

/* The columns that UTF-8 text takes. Bytes that are not UTF-8 count one each. */
int text_width(const char *text);
/* The bytes at the front that fit into `columns` columns. */
size_t text_fits(const char *text, int columns);
/* Appends a text without what would command a terminal: control characters, and bytes that
 * are not UTF-8, become '?'; newlines and tabs a space. */
void text_clean(struct buffer *to, const char *text);

#endif
