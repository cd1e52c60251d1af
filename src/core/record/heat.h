/* heat.h - from which temperature on a GPU is hot, and when it is cool again */
#ifndef CORE_RECORD_HEAT_H
#define CORE_RECORD_HEAT_H

#include "base/number.h"

enum {
	HEAT_MARGIN_C = 5,   /* below the slowdown temperature, and to cool by */
	HEAT_UNKNOWN_C = 75, /* where the driver gives no slowdown temperature */
	HEAT_MOST_C = 1000,
};

/* Hot from here on: as configured, or (0) a margin below the temperature at which the driver
 * slows the GPU down; 0: it is not known. */
static inline int64_t heat_threshold_c(int64_t configured_c, int64_t slowdown_c)
{
	if (configured_c > 0)
		return configured_c;
	return slowdown_c > 0 ? max64(slowdown_c - HEAT_MARGIN_C, 1) : HEAT_UNKNOWN_C;
}

/* True if a GPU is hot that was hot or not: one that was stays so until it has cooled down to
 * `resume_c`, or (0) to a margin below the threshold. */
static inline bool heat_is_hot(bool was_hot, int64_t temperature_c, int64_t threshold_c,
                               int64_t resume_c)
{
	int64_t cool_c =
	    resume_c > 0 ? min64(resume_c, threshold_c) : max64(threshold_c - HEAT_MARGIN_C, 0);

	return temperature_c >= threshold_c || (was_hot && temperature_c > cool_c);
}

#endif
