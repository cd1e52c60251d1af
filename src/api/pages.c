/* pages.c - what is served as it is: the description of the interface, and the dashboard */
#include "api/pages.h"

#include "api/asset.h"

extern const unsigned char openapi_json_text[];
extern const size_t openapi_json_text_size;

void pages_openapi(struct call *call)
{
	buffer_clear(&call->body);
	buffer_bytes(&call->body, openapi_json_text, openapi_json_text_size);
	call_answer_json(call, 200);
}

static const struct asset *find(struct text name)
{
	for (const struct asset *asset = assets; asset->name; asset++)
		if (text_is(name, asset->name))
			return asset;
	return NULL;
}

/* Packed for those who take that. */
static void put_asset(struct call *call, const struct asset *asset)
{
	bool packed = headers_has_token(&call->exchange->headers, "accept-encoding", "gzip");
	buffer_clear(&call->body);
	if (packed) {
		call_header(call, "content-encoding", TEXT("gzip"));
		buffer_bytes(&call->body, asset->packed, asset->packed_size);
	} else {
		buffer_bytes(&call->body, asset->data, asset->size);
	}
	call_header(call, "vary", TEXT("accept-encoding"));
	call_header(call, "x-content-type-options", TEXT("nosniff"));
}

void pages_dashboard(struct call *call)
{
	const struct asset *page = find(TEXT(""));
	INVARIANT(page);
	put_asset(call, page);
	call_header(call, "content-security-policy",
	            TEXT("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
	                 "connect-src 'self'; base-uri 'none'; form-action 'none'; "
	                 "frame-ancestors 'none'"));
	call_header(call, "referrer-policy", TEXT("no-referrer"));
	call_answer(call, 200, page->content_type);
}

void pages_asset(struct call *call)
{
	struct text name = call_segment(call, 1);
	const struct asset *asset = name.size > 0 ? find(name) : NULL;
	if (!asset) {
		call_unknown(call, "file", name);
		return;
	}
	put_asset(call, asset);
	call_answer_lasting(call, asset->content_type);
}
