/* slot_request.c - requests to a model's server as they arrive: who may ask what */
#include "agent/proxy/slot_request.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"

enum { HEADERS_MAX = 200, DIGITS_MAX = 15, OVERHEAD_MAX = 64 << 10, LENGTH_DIGITS_MAX = 18 };

/* What a head says about its body and its sender. */
struct slot_head {
	bool has_key, is_agent, is_chunked, has_length, is_old;
	int64_t length;
	struct text path;
	struct buffer passed; /* what goes to the server */
};

static enum slot_request_event refuse_request(struct slot_request *request, int status,
                                              const char *why)
{
	request->stage = SLOT_REQUEST_OVER;
	request->status = status;
	request->why = why;
	return SLOT_REQUEST_REFUSED;
}

/* False with the request refused. */
static bool refuse_head(struct slot_request *request, int status, const char *why)
{
	refuse_request(request, status, why);
	return false;
}

static bool is_token(struct text text)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < text.size; i++) {
		char byte = text.data[i], lower = (char)(byte | 0x20);
		if (!((byte >= '0' && byte <= '9') || (lower >= 'a' && lower <= 'z') ||
		      (byte != '\0' && strchr(marks, byte))))
			return false;
	}
	return text.size > 0;
}

static bool is_visible(struct text text)
{
	for (size_t i = 0; i < text.size; i++)
		if (text.data[i] <= ' ' || text.data[i] > '~')
			return false;
	return text.size > 0;
}

/* The text before a byte, which is taken off with it; data is NULL where it is not there. */
static struct text cut_at(struct text *text, char at)
{
	const char *end = text->size > 0 ? memchr(text->data, at, text->size) : NULL;

	if (!end)
		return (struct text){ 0 };
	struct text before = { text->data, (size_t)(end - text->data) };
	*text = text_from(*text, before.size + 1);
	return before;
}

/* METHOD SP TARGET SP HTTP/1.x */
static bool take_first(struct slot_request *request, struct slot_head *head, struct text line)
{
	struct text rest = line, method = cut_at(&rest, ' '), target = cut_at(&rest, ' ');

	if (!target.data || !is_token(method) || !is_visible(target) || rest.size != 8 ||
	    !text_starts(rest, "HTTP/1.") || (rest.data[7] != '0' && rest.data[7] != '1'))
		return refuse_head(request, 400, "this is not a proper HTTP/1.1 request");
	if (target.data[0] != '/')
		return refuse_head(request, 400, "the target of the request is not a path");
	head->is_old = rest.data[7] == '0';
	head->path = target;
	struct text query = target, path = cut_at(&query, '?');
	if (path.data)
		head->path = path;
	return true;
}

static bool take_length(struct slot_request *request, struct slot_head *head, struct text value)
{
	if (head->has_length)
		return refuse_head(request, 400, "the request has two lengths");
	for (size_t i = 0; i < value.size; i++) {
		if (value.data[i] < '0' || value.data[i] > '9' || value.size > LENGTH_DIGITS_MAX)
			return refuse_head(request, 400,
			                   "the length of the request is not a number");
		head->length = head->length * 10 + value.data[i] - '0';
	}
	head->has_length = true;
	return value.size > 0 ||
	       refuse_head(request, 400, "the length of the request is not a number");
}

/* True if it is a key of the slot, which the server does not get to see. */
static bool take_key(const struct slot_request *request, struct slot_head *head, struct text name,
                     struct text value)
{
	static const char *const names[] = { "x-slot-key", "x-api-key", "api-key", NULL };
	bool carries = false;

	if (text_is_any_case(name, "authorization") && value.size > 7 &&
	    strncasecmp(value.data, "bearer ", 7) == 0) {
		value = text_trim(text_from(value, 7));
		carries = true;
	}
	for (int i = 0; names[i]; i++)
		carries = carries || text_is_any_case(name, names[i]);
	if (!carries)
		return false;
	bool is_agent = slot_key_matches(request->keys->agent, value);
	bool is_key =
	    slot_key_matches(request->keys->client, value) || is_agent ||
	    (request->leases && lease_keys_admit(request->leases, value, clock_boot_ms()));
	head->has_key = head->has_key || is_key;
	head->is_agent = head->is_agent || is_agent;
	return is_key;
}

static bool take_header(struct slot_request *request, struct slot_head *head, struct text line)
{
	struct text value = line, name = cut_at(&value, ':');

	if (!is_token(name))
		return refuse_head(request, 400, "a header of the request is malformed");
	value = text_trim(value);
	if (text_is_any_case(name, "content-length") && !take_length(request, head, value))
		return false;
	if (text_is_any_case(name, "transfer-encoding")) {
		if (head->is_chunked || head->is_old || !text_is_any_case(value, "chunked"))
			return refuse_head(request, 501, "Transfer-Encoding can only be 'chunked'");
		head->is_chunked = true;
	}
	if (take_key(request, head, name, value) || text_is_any_case(name, "upgrade") ||
	    text_is_any_case(name, "http2-settings"))
		return true;
	buffer_bytes(&head->passed, line.data, line.size);
	buffer_bytes(&head->passed, "\r\n", 2);
	return true;
}

/* Servers decode and simplify paths in different ways. */
static bool is_plain_path(struct text path)
{
	for (size_t i = 0; i < path.size; i++) {
		const char *at = path.data + i;
		bool more = i + 1 < path.size;
		if (*at == '%' || *at == '\\' || *at == ';' ||
		    (more && *at == '/' && (at[1] == '/' || at[1] == '.')))
			return false;
	}
	return true;
}

static bool is_inference(struct text path)
{
	static const char *const known[] = {
		"/health",     "/ping",       "/version",        "/tokenize",
		"/detokenize", "/score",      "/rerank",         "/pooling",
		"/classify",   "/embed",      "/embedding",      "/embeddings",
		"/generate",   "/completion", "/completions",    "/chat/completions",
		"/infill",     "/api/chat",   "/api/generate",   "/api/embed",
		"/api/tags",   "/api/show",   "/api/ps",         "/api/version",
		"/models",     "/reranking",  "/api/embeddings", "/apply-template",
		NULL,
	};

	/* These change what the server has loaded. */
	if (text_starts(path, "/v1/load_") || text_starts(path, "/v1/unload_"))
		return false;
	if (text_starts(path, "/v1/") || text_starts(path, "/v2/"))
		return is_plain_path(path);
	for (int i = 0; known[i]; i++)
		if (text_is(path, known[i]))
			return true;
	return false;
}

static bool may_pass(struct slot_request *request, const struct slot_head *head)
{
	if (!head->has_key)
		return refuse_head(
		    request, 401,
		    "this model is asked through a gateway, or with the key of a lease");
	if (request->needs_tls && !request->is_sealed && !head->is_agent)
		return refuse_head(request, 426, "this model is asked by TLS alone");
	if (head->is_agent || request->paths == SLOT_PATHS_ALL || is_inference(head->path))
		return true;
	return refuse_head(request, 403, "this path of the model's server is not for requests");
}

/* A line without its end, which must be CR LF; data is NULL where it is not. */
static struct text cut_line(struct text *text)
{
	struct text line = cut_at(text, '\n');

	if (!line.data || line.size == 0 || line.data[line.size - 1] != '\r')
		return (struct text){ 0 };
	line.size--;
	return memchr(line.data, '\r', line.size) || memchr(line.data, '\0', line.size)
	           ? (struct text){ 0 }
	           : line;
}

static bool read_head(struct slot_request *request, struct slot_head *head, size_t size)
{
	struct text rest = { request->head.data, size };
	struct text line = cut_line(&rest);

	if (!line.data)
		return refuse_head(request, 400, "a line of the request does not end with CR LF");
	if (!take_first(request, head, line))
		return false;
	buffer_bytes(&head->passed, line.data, line.size);
	buffer_bytes(&head->passed, "\r\n", 2);
	for (int count = 0; (line = cut_line(&rest)).data && line.size > 0; count++)
		if (count == HEADERS_MAX)
			return refuse_head(request, 431, "the request has too many headers");
		else if (!take_header(request, head, line))
			return false;
	if (!line.data)
		return refuse_head(request, 400, "a line of the request does not end with CR LF");
	if (head->has_length && head->is_chunked)
		return refuse_head(request, 400, "the request has a length and chunks");
	buffer_bytes(&head->passed, "\r\n", 2);
	return may_pass(request, head);
}

/* Where the head ends, looking again at what came since `from`; 0: it has not ended. */
static size_t end_of_head(const struct buffer *head, size_t from)
{
	from = from > 3 ? from - 3 : 0;
	const char *end = memmem(head->data + from, head->size - from, "\n\r\n", 3);
	const char *bare = memmem(head->data + from, head->size - from, "\n\n", 2);

	if (bare && (!end || bare < end))
		return (size_t)(bare - head->data) + 2; /* refused when its lines are read */
	return end ? (size_t)(end - head->data) + 3 : 0;
}

static void wipe_buffer(struct buffer *buffer)
{
	if (buffer->data)
		explicit_bzero(buffer->data, buffer->capacity);
	buffer_free(buffer);
}

static void begin_body(struct slot_request *request, const struct slot_head *head)
{
	request->left = head->length;
	request->digits = request->overhead = 0;
	request->has_line_end = false;
	request->stage = head->is_chunked    ? SLOT_REQUEST_IN_SIZE
	                 : head->length == 0 ? SLOT_REQUEST_COMPLETE
	                                     : SLOT_REQUEST_IN_LENGTH;
	if (request->stage == SLOT_REQUEST_IN_SIZE)
		request->left = 0;
}

static enum slot_request_event take_slot_head(struct slot_request *request, struct text *bytes,
                                              struct text *part)
{
	size_t before = request->head.size, room = SLOT_REQUEST_HEAD_MAX - before;
	size_t size = bytes->size < room ? bytes->size : room;
	struct slot_head head = { 0 };

	buffer_bytes(&request->head, bytes->data, size);
	size_t end = end_of_head(&request->head, before);
	if (end == 0) {
		*bytes = text_from(*bytes, size);
		return request->head.size == SLOT_REQUEST_HEAD_MAX
		           ? refuse_request(request, 431,
		                            "the headers of the request are too large")
		           : SLOT_REQUEST_MORE;
	}
	*bytes = text_from(*bytes, end - before);
	bool good = read_head(request, &head, end);
	wipe_buffer(&request->head);
	if (!good) {
		wipe_buffer(&head.passed);
		return SLOT_REQUEST_REFUSED;
	}
	begin_body(request, &head);
	request->head = head.passed;
	*part = (struct text){ request->head.data, request->head.size };
	return SLOT_REQUEST_PASS;
}

static int hex_digit(char byte)
{
	return byte >= '0' && byte <= '9'   ? byte - '0'
	       : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
	       : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
	                                    : -1;
}

static bool take_size(struct slot_request *request, char byte)
{
	int digit = hex_digit(byte);

	if (digit >= 0) {
		request->left = request->left * 16 + digit;
		return ++request->digits <= DIGITS_MAX;
	}
	if (request->digits == 0 || (byte != '\r' && byte != ';'))
		return false;
	request->has_line_end = byte == '\r';
	request->stage = SLOT_REQUEST_IN_NOTE;
	return true;
}

/* The rest of a line, which ends with CR LF. */
static bool take_rest(struct slot_request *request, char byte, bool *ended)
{
	*ended = request->has_line_end && byte == '\n';
	if (request->has_line_end != (byte == '\n'))
		return false;
	request->has_line_end = byte == '\r';
	return *ended || byte == '\r' || byte == '\t' || (unsigned char)byte >= ' ';
}

static bool take_note(struct slot_request *request, char byte)
{
	bool ended;

	if (!take_rest(request, byte, &ended))
		return false;
	if (ended) {
		request->digits = 0;
		request->stage =
		    request->left > 0 ? SLOT_REQUEST_IN_CHUNK : SLOT_REQUEST_IN_TRAILER;
	}
	return true;
}

/* The end of the line behind a chunk. */
static bool take_behind(struct slot_request *request, char byte)
{
	bool ended;

	if ((byte != '\r' && byte != '\n') || !take_rest(request, byte, &ended))
		return false;
	if (ended) {
		request->left = request->digits = 0;
		request->stage = SLOT_REQUEST_IN_SIZE;
	}
	return true;
}

/* An empty line ends the trailer. */
static bool take_trailer(struct slot_request *request, char byte)
{
	bool ended;

	if (!take_rest(request, byte, &ended))
		return false;
	if (ended && request->digits == 0)
		request->stage = SLOT_REQUEST_COMPLETE;
	else if (ended)
		request->digits = 0;
	else if (byte != '\r')
		request->digits = 1;
	return true;
}

static bool take_frame_byte(struct slot_request *request, char byte)
{
	if (++request->overhead > OVERHEAD_MAX)
		return false;
	switch (request->stage) {
	case SLOT_REQUEST_IN_SIZE:
		return take_size(request, byte);
	case SLOT_REQUEST_IN_NOTE:
		return take_note(request, byte);
	case SLOT_REQUEST_BEHIND_CHUNK:
		return take_behind(request, byte);
	default:
		return take_trailer(request, byte);
	}
}

static bool is_data(enum slot_request_stage stage)
{
	return stage == SLOT_REQUEST_IN_LENGTH || stage == SLOT_REQUEST_IN_CHUNK;
}

static void take_data(struct slot_request *request, struct text *bytes)
{
	size_t size = (int64_t)bytes->size < request->left ? bytes->size : (size_t)request->left;

	request->left -= (int64_t)size;
	*bytes = text_from(*bytes, size);
	if (request->left == 0)
		request->stage = request->stage == SLOT_REQUEST_IN_CHUNK ? SLOT_REQUEST_BEHIND_CHUNK
		                                                         : SLOT_REQUEST_COMPLETE;
}

/* As much of the body as has come, up to its end. */
static enum slot_request_event take_body(struct slot_request *request, struct text *bytes,
                                         struct text *part)
{
	struct text from = *bytes;

	while (bytes->size > 0 && request->stage != SLOT_REQUEST_COMPLETE) {
		if (is_data(request->stage)) {
			/* A full chunk may be all that OVERHEAD_MAX was spent on. */
			take_data(request, bytes);
			continue;
		}
		if (!take_frame_byte(request, *bytes->data))
			return refuse_request(request, 400,
			                      "the chunks of the request are malformed");
		*bytes = text_from(*bytes, 1);
		if (is_data(request->stage))
			request->overhead = 0;
	}
	*part = (struct text){ from.data, from.size - bytes->size };
	return SLOT_REQUEST_PASS;
}

enum slot_request_event slot_request_next(struct slot_request *request, struct text *bytes,
                                          struct text *part)
{
	if (request->stage == SLOT_REQUEST_OVER)
		return SLOT_REQUEST_REFUSED;
	if (request->stage == SLOT_REQUEST_COMPLETE) {
		wipe_buffer(&request->head);
		request->stage = SLOT_REQUEST_IN_HEAD;
		return SLOT_REQUEST_END;
	}
	if (bytes->size == 0)
		return SLOT_REQUEST_MORE;
	if (request->stage == SLOT_REQUEST_IN_HEAD)
		return take_slot_head(request, bytes, part);
	if (request->head.data)
		wipe_buffer(&request->head);
	return take_body(request, bytes, part);
}

void slot_request_free(struct slot_request *request)
{
	wipe_buffer(&request->head);
}
