/* selector.h - selectors of labels and of nodes, as Kubernetes means them */
#ifndef KUBE_SELECTOR_H
#define KUBE_SELECTOR_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"

/* Whether a text may be the value of a label: empty, or at most 63 letters, digits, '-', '_' and
 * '.', with a letter or digit at both ends. */
bool selector_value_is_valid(const char *value);

/* Appends a LabelSelector as the requirements of a rule (core/queue/demand.h), each after an '&';
 * `*none` if it selects nothing (it is missing). False with a reason if it is malformed: then
 * nothing may be concluded from it. */
bool selector_print(struct buffer *buffer, const json_t *selector, bool *none, struct error *error);
/* Whether a LabelSelector matches labels. Malformed and missing ones match nothing. */
bool selector_matches(const json_t *selector, const json_t *labels);
/* Whether a map of labels (`nodeSelector`, a service's selector) matches; empty: yes. */
bool selector_map_matches(const json_t *map, const json_t *labels);

/* Whether a NodeSelector matches a node. No terms, an empty term and a malformed one match
 * nothing. */
bool selector_matches_node(const json_t *node_selector, const json_t *node);

#endif
