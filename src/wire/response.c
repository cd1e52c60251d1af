/* response.c - an answer to a request */
#include "wire/response.h"

const char *response_reason(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
		{ 100, "Continue" },
		{ 101, "Switching Protocols" },
		{ 200, "OK" },
		{ 201, "Created" },
		{ 202, "Accepted" },
		{ 204, "No Content" },
		{ 206, "Partial Content" },
		{ 207, "Multi-Status" },
		{ 301, "Moved Permanently" },
		{ 302, "Found" },
		{ 303, "See Other" },
		{ 304, "Not Modified" },
		{ 307, "Temporary Redirect" },
		{ 308, "Permanent Redirect" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" },
		{ 408, "Request Timeout" },
		{ 409, "Conflict" },
		{ 410, "Gone" },
		{ 411, "Length Required" },
		{ 412, "Precondition Failed" },
		{ 413, "Content Too Large" },
		{ 414, "URI Too Long" },
		{ 415, "Unsupported Media Type" },
		{ 416, "Range Not Satisfiable" },
		{ 417, "Expectation Failed" },
		{ 421, "Misdirected Request" },
		{ 422, "Unprocessable Content" },
		{ 426, "Upgrade Required" },
		{ 428, "Precondition Required" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" },
		{ 507, "Insufficient Storage" },
	};
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "";
}

bool response_is_compressible(const char *content_type)
{
	if (!content_type)
		return false;
	struct text rest = text_of(content_type), type;
	if (!text_next(&rest, ';', &type))
		return false;
	static const char *const others[] = {
		"application/json",       "application/x-ndjson", "application/ndjson",
		"application/javascript", "application/xml",      "application/openapi+json",
		"application/yaml",       "image/svg+xml",        "application/wasm",
	};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (text_is_any_case(type, others[i]))
			return true;
	return text_starts(type, "text/") ||
	       (type.size > 5 && memcmp(type.data + type.size - 5, "+json", 5) == 0);
}
