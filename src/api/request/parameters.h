/* parameters.h - the query parameters that routes accept */
#ifndef API_REQUEST_PARAMETERS_H
#define API_REQUEST_PARAMETERS_H

#include "api/request/route.h"
#include "base/error.h"
#include "wire/text/query.h"

/* For routes that ignore their query: pages that a browser loads. */
#define PARAMETERS_ANY "*"

/* False with a reason if the query has a parameter that the route does not accept. The reason
 * names the parameter, and the one that was probably meant or those that there are. */
bool parameters_check(const struct route *route, const struct query *query, struct error *error);

#endif
