/* quantity.h - amounts as Kubernetes writes them: 100m, 1.5, 20Gi, 1e3 */
#ifndef KUBE_QUANTITY_H
#define KUBE_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

/* The amount in thousandths, or in whole units, rounded up; what is too large is cut to 2^53.
 * False if the text is not a quantity, or is negative. */
bool quantity_milli(const char *text, int64_t *amount);
bool quantity_units(const char *text, int64_t *amount);

#endif
