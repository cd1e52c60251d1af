/* fetcher.c - requests that wait for all of their answer */
#include <stdlib.h>

#include "base/memory.h"
#include "fetch/fetch_internal.h"

struct fetcher {
	CURL *handle;
	CURLM *multi; /* keeps connections */
};

struct fetcher *fetcher_new(void)
{
	struct fetcher *fetcher = NEW(struct fetcher);

	fetcher->handle = transfer_handle();
	fetcher->multi = curl_multi_init();
	return fetcher;
}

void fetcher_free(struct fetcher *fetcher)
{
	if (!fetcher)
		return;
	curl_easy_cleanup(fetcher->handle);
	curl_multi_cleanup(fetcher->multi);
	free(fetcher);
}

bool fetcher_ask(struct fetcher *fetcher, const struct fetch_request *request,
                 struct fetch_answer *answer, struct error *error)
{
	struct transfer transfer = { 0 };

	if (!fetcher->handle || !fetcher->multi)
		return error_set(error, ERROR_UNAVAILABLE, "out of memory");
	bool good = transfer_begin(&transfer, fetcher->handle, request, answer, error) &&
	            transfer_run(&transfer, fetcher->multi, error);
	if (good)
		transfer_take_status(&transfer);
	transfer_end(&transfer);
	return good;
}
