/* order.h - lists in the order that people expect */
#ifndef CLI_TEXT_ORDER_H
#define CLI_TEXT_ORDER_H

#include <jansson.h>

/* Below, equal to or above 0, as strcmp; numbers within names count as numbers: node-9 comes
 * before node-10. */
int order_names(const char *a, const char *b);

/* Sorts a list. The sort is stable. */
void order_items(json_t *items, int (*compare)(const json_t *a, const json_t *b));

/* By node, then by index. */
int order_by_node(const json_t *a, const json_t *b);
/* Jobs with a queue position first, by position, then jobs that cannot start yet. */
int order_by_position(const json_t *a, const json_t *b);

#endif
