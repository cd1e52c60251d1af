/* text.h - a piece of text that belongs to someone else: base/text.h */
#ifndef WIRE_TEXT_H
#define WIRE_TEXT_H

#include "base/text.h" // IWYU pragma: export

#endif
