/* fetcher.c - requests that wait for all of their answer */
#include <stdlib.h>

#include "base/memory.h"
#include "fetch/fetch_internal.h"

struct fetcher {
	CURL *handle; /* keeps the connection of the last request */
};

struct fetcher *fetcher_new(void)
{
	struct fetcher *fetcher = NEW(struct fetcher);

	fetcher->handle = transfer_handle();
	return fetcher;
}

void fetcher_free(struct fetcher *fetcher)
{
	if (!fetcher)
		return;
	curl_easy_cleanup(fetcher->handle);
	free(fetcher);
}

bool fetcher_ask(struct fetcher *fetcher, const struct fetch_request *request,
                 struct fetch_answer *answer, struct error *error)
{
	struct transfer transfer = { 0 };

	if (!fetcher->handle)
		return error_set(error, ERROR_UNAVAILABLE, "out of memory");
	bool good = transfer_begin(&transfer, fetcher->handle, request, answer, error);
	if (good) {
		CURLcode code = curl_easy_perform(fetcher->handle);
		transfer_take_status(&transfer);
		good = code == CURLE_OK || transfer_fail(&transfer, code, error);
	}
	transfer_end(&transfer);
	return good;
}
