/* made.h - estimates in tests: made, or refused for a reason */
#ifndef ESTIMATE_TEST_MADE_H
#define ESTIMATE_TEST_MADE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "estimate/estimate.h"

static inline void assert_says(const struct error *error, const char *because)
{
	if (error->code == ERROR_NONE || !strstr(error->text, because))
		fail_msg("'%s' does not say '%s'", error->text, because);
}

static inline struct estimate made(const struct blueprint *blueprint,
                                   const struct estimate_request *request)
{
	struct estimate estimate;
	struct error error = { 0 };
	if (!estimate_make(&estimate, blueprint, request, &error))
		fail_msg("%s", error.text);
	return estimate;
}

static inline void refused(const struct blueprint *blueprint,
                           const struct estimate_request *request, const char *because)
{
	struct estimate estimate;
	struct error error = { 0 };
	assert_false(estimate_make(&estimate, blueprint, request, &error));
	assert_says(&error, because);
}

static inline int64_t mib_of(const struct estimate *estimate, int gpu, enum estimate_part part)
{
	return estimate->gpu[gpu].line[part].mib;
}

#endif
