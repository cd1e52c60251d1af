/* texts.h - what a node may say in words: printable, and no longer than it has reason to be */
#ifndef NODE_TEXTS_H
#define NODE_TEXTS_H

#include "core/record/field.h"

/* Checks all texts of an object that a node described, lists included, by the names of its
 * fields. Names, ids and addresses that are too long or not printable are refused, with the
 * field in the reason. What is written for people (`message`, `reason`) is made printable and
 * cut off instead: it may quote a program. `object` is writable memory, its texts too. */
bool texts_check(const struct record_type *type, void *object, struct error *error);

/* One text, as the field of this name in objects of this type. False with a reason. */
bool text_check(const char *type, const char *field, const char *text, struct error *error);

/* Makes a text for people printable, and truncates it to `most` bytes. */
void text_clean(char *text, size_t most);

#endif
