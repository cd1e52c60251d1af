/* utf8.h - whether bytes are UTF-8 */
#ifndef WIRE_TEXT_UTF8_H
#define WIRE_TEXT_UTF8_H

#include "base/text.h"

/* How many bytes from the start are whole, valid characters: no overlong forms, no
 * surrogates, nothing above U+10FFFF. */
size_t utf8_valid_prefix(struct text text);

static inline bool utf8_is_valid(struct text text) { return utf8_valid_prefix(text) == text.size; }

#endif
