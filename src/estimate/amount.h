/* amount.h - sums and products of sizes that stop at the largest number instead of
 * turning into a small one */
#ifndef ESTIMATE_AMOUNT_H
#define ESTIMATE_AMOUNT_H

#include <stdbool.h>
#include <stdint.h>

enum { BYTES_PER_MIB = 1048576 };

/* For numbers that are not negative. INT64_MAX means: that much or more, and
 * stays so through sums and products with anything but 0. */
static inline int64_t amount_sum(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}
static inline int64_t amount_product(int64_t a, int64_t b)
{
	return b != 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}
static inline int64_t amount_quotient_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }
/* Up to the next multiple. */
static inline int64_t amount_padded(int64_t a, int64_t multiple)
{
	return amount_product(amount_quotient_up(a, multiple), multiple);
}
static inline int64_t amount_mib(int64_t bytes) { return amount_quotient_up(bytes, BYTES_PER_MIB); }

#endif
