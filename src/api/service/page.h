/* page.h - which part of a long list is asked for */
#ifndef API_SERVICE_PAGE_H
#define API_SERVICE_PAGE_H

#include "api/request/request.h"

struct page {
	int64_t limit, offset;
	int64_t after; /* the page continues after this id; 0: it begins at `offset` */
};

/* From limit, offset and after. Answers 400 and returns false where they make no sense;
 * `prefix` is what ids begin with. */
bool page_read(struct request *request, const char *prefix, struct page *page);

#endif
