/* pages.c - what is served as it is: the description of the interface, and a page */
#include "api/pages.h"

extern const unsigned char openapi_json_text[], dashboard_html_text[];
extern const size_t openapi_json_text_size, dashboard_html_text_size;

void pages_openapi(struct call *call)
{
	buffer_clear(&call->body);
	buffer_bytes(&call->body, openapi_json_text, openapi_json_text_size);
	call_answer_json(call, 200);
}

void pages_dashboard(struct call *call)
{
	buffer_clear(&call->body);
	buffer_bytes(&call->body, dashboard_html_text, dashboard_html_text_size);
	call_header(call, "content-security-policy",
	            TEXT("default-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'"));
	call_header(call, "x-content-type-options", TEXT("nosniff"));
	call_answer(call, 200, "text/html; charset=utf-8");
}
