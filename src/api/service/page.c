/* page.c - which part of a long list is asked for */
#include "api/service/page.h"

#include "api/service/service_state.h"
#include "api/text/ids.h"

bool page_read(struct request *request, const char *prefix, struct page *page)
{
	const struct query *query = &request->exchange->query;
	const struct service_settings *settings = &request->service->settings;
	struct error error = { 0 };

	*page = (struct page){ 0 };
	if (!query_integer(query, "limit", 1, settings->limit_max, settings->default_limit,
	                   &page->limit, &error) ||
	    !query_integer(query, "offset", 0, INT64_MAX / 2, 0, &page->offset, &error)) {
		request_fail(request, &error);
		return false;
	}
	struct text after = query_get(query, "after");
	if (after.data && !id_read(after, prefix, &page->after)) {
		request_refuse(request, 400, "invalid", "after must be an id such as %s12", prefix);
		return false;
	}
	if (page->after > 0 && page->offset > 0) {
		request_refuse(request, 400, "invalid", "give after or offset, not both");
		return false;
	}
	return true;
}
