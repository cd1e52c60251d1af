/* head.h - the head of a request while it arrives */
#ifndef WIRE_TEXT_HEAD_H
#define WIRE_TEXT_HEAD_H

#include <stdint.h>

#include "base/buffer.h"
#include "wire/text/headers.h"

/* Names and values are collected in `bytes`, each with a NUL behind it; where they are
 * is kept as offsets, as the bytes may move until head_finish. What is not a header
 * (method, target, authority) has a name as in HTTP/2: ':path'.
 * Zero-initialised is empty. */
struct head_mark {
	uint32_t name, name_size, value, value_size;
};
struct head {
	struct buffer bytes;
	struct head_mark *marks;
	size_t count, capacity;
	struct header *list; /* made by head_finish */
	size_t list_count, list_capacity, pseudo_count;
	bool in_item; /* an item was begun and not ended */
};

/* Empties it and keeps the memory, unless that has become large. */
void head_reset(struct head *head);
/* Pieces of a name, then the end of it, pieces of the value, and the end of it. Names
 * are put into lower case. */
void head_name(struct head *head, const char *data, size_t size);
void head_name_end(struct head *head);
void head_value(struct head *head, const char *data, size_t size);
void head_value_end(struct head *head);
/* All of these at once. */
void head_add(struct head *head, struct text name, struct text value);

/* Makes the list: pseudo headers first, then headers in their order, values trimmed.
 * Nothing may be added to `bytes` beyond what `reserve` made room for. */
void head_finish(struct head *head, size_t reserve);
/* After head_finish. */
struct headers head_headers(const struct head *head);
struct text head_pseudo(const struct head *head, const char *name);
void head_free(struct head *head);

#endif
