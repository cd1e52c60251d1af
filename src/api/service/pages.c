/* pages.c - what is served as it is: the description of the interface, and the dashboard */
#include "api/service/pages.h"

#include <stdlib.h>

#include "api/service/asset.h"
#include "api/service/service_state.h"
#include "wire/text/compress.h"

enum { POLICY_MAX = 4096 };

extern const unsigned char openapi_json_text[];
extern const size_t openapi_json_text_size;

/* Made once and shared by all answers, however many of them wait to be read. */
struct page {
	const char *name, *content_type;
	struct shared *plain, *packed;
	char tag[REQUEST_TAG_MAX];
};

struct pages {
	struct page openapi;
	struct page *assets;
	size_t count;
};

static struct page new_page(const char *name, const char *content_type, struct text plain,
                            struct text packed)
{
	struct page page = { .name = name, .content_type = content_type };
	page.plain = shared_lasting(plain.data, plain.size);
	page.packed = shared_lasting(packed.data, packed.size);
	request_make_tag(plain, page.tag);
	return page;
}

static void free_page(struct page *page)
{
	shared_drop(page->plain);
	shared_drop(page->packed);
}

struct pages *pages_new(void)
{
	struct pages *pages = NEW(struct pages);
	struct text openapi = { (const char *)openapi_json_text, openapi_json_text_size };
	struct compressor compressor = { 0 };
	struct buffer packed = { 0 };
	compress_gzip(&compressor, openapi, &packed);
	pages->openapi =
	    new_page(NULL, "application/json", openapi, (struct text){ packed.data, packed.size });
	compressor_free(&compressor);
	buffer_free(&packed);
	while (assets[pages->count].name)
		pages->count++;
	pages->assets = memory_zero(pages->count, sizeof(*pages->assets));
	for (size_t i = 0; i < pages->count; i++)
		pages->assets[i] = new_page(
		    assets[i].name, assets[i].content_type,
		    (struct text){ (const char *)assets[i].data, assets[i].size },
		    (struct text){ (const char *)assets[i].packed, assets[i].packed_size });
	return pages;
}

void pages_free(struct pages *pages)
{
	if (!pages)
		return;
	free_page(&pages->openapi);
	for (size_t i = 0; i < pages->count; i++)
		free_page(&pages->assets[i]);
	free(pages->assets);
	free(pages);
}

/* Packed for those who take that. */
static void pages_answer(struct request *request, const struct page *page, bool is_lasting)
{
	bool packed = headers_has_token(&request->exchange->headers, "accept-encoding", "gzip");
	if (packed)
		request_header(request, "content-encoding", TEXT("gzip"));
	request_header(request, "vary", TEXT("accept-encoding"));
	request_answer_shared(request,
	                      &(struct request_page){ .content_type = page->content_type,
	                                              .body = packed ? page->packed : page->plain,
	                                              .tag = page->tag,
	                                              .is_lasting = is_lasting });
}

static const struct page *pages_find(const struct pages *pages, struct text name)
{
	for (size_t i = 0; i < pages->count; i++)
		if (text_is(name, pages->assets[i].name))
			return &pages->assets[i];
	return NULL;
}

void pages_openapi(struct request *request)
{
	pages_answer(request, &request->service->pages->openapi, false);
}

void pages_dashboard(struct request *request)
{
	const struct page *page = pages_find(request->service->pages, TEXT(""));
	INVARIANT(page);
	struct buffer policy = { 0 };
	buffer_text(&policy, "default-src 'none'; script-src 'self'; style-src 'self'; "
	                     "img-src 'self'; base-uri 'none'; form-action 'none'; "
	                     "frame-ancestors 'none'; connect-src 'self'");
	/* The page for models asks them. */
	for (const char *url = NULL;
	     (url = serving_url(&request->service->serving, url)) && policy.size < POLICY_MAX;)
		buffer_print(&policy, " %s", url);
	request_header(request, "content-security-policy",
	               (struct text){ arena_copy(&request->engine.arena, policy.data, policy.size),
	                              policy.size });
	buffer_free(&policy);
	request_header(request, "referrer-policy", TEXT("no-referrer"));
	pages_answer(request, page, false);
}

void pages_asset(struct request *request)
{
	struct text name = request_segment(request, 1);
	const struct page *page = name.size > 0 ? pages_find(request->service->pages, name) : NULL;
	if (!page) {
		request_unknown(request, "file", name);
		return;
	}
	pages_answer(request, page, true);
}
