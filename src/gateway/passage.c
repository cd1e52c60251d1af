/* passage.c - a request from its arrival to its place in a slot, and to its end */
#include "gateway/passage.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"
#include "gateway/text/form.h"
#include "wire/text/json_writer.h"
#include "json/json_reader.h"

enum {
	READ_TIMEOUT_MARGIN_MS = 5000,
	VERDICT_MS = 10000,
	SPARE_ANSWER_BYTES = 64 << 10,
	HEADERS_MAX = 16,
};

static const char unknown_path[] = "there is nothing at this path: docs/gateway.md lists the paths";

static void passage_on_timer(struct timer *timer);

static struct passage *passage_new(struct program *program, struct exchange *exchange)
{
	struct passage *passage = program->spare;
	struct buffer head = { 0 }, answer = { 0 }, waiting = { 0 };
	struct meter meter = { 0 };

	if (passage) {
		memory_unpoison(passage, sizeof(*passage));
		program->spare = passage->next;
		head = passage->head;
		answer = passage->answer;
		waiting = passage->waiting;
		meter = passage->meter;
		memset(passage, 0, sizeof(*passage));
	} else {
		passage = NEW(struct passage);
	}
	passage->head = head;
	passage->answer = answer;
	passage->waiting = waiting;
	passage->meter = meter;
	passage->program = program;
	passage->exchange = exchange;
	passage->timer = TIMER(passage_on_timer);
	passage->came_ms = program_now_ms(program);
	passage->next = program->passages;
	passage->link = &program->passages;
	if (passage->next)
		passage->next->link = &passage->next;
	program->passages = passage;
	program->open_count++;
	return passage;
}

static void passage_free(struct passage *passage)
{
	struct program *program = passage->program;

	loop_timer_clear(program->loop, &passage->timer);
	*passage->link = passage->next;
	if (passage->next)
		passage->next->link = passage->link;
	program->open_count--;
	if (passage->answer.capacity > SPARE_ANSWER_BYTES)
		buffer_free(&passage->answer);
	if (passage->waiting.capacity > SPARE_ANSWER_BYTES)
		buffer_free(&passage->waiting);
	free(passage->blocks);
	passage->blocks = NULL;
	buffer_clear(&passage->head);
	buffer_clear(&passage->answer);
	buffer_clear(&passage->waiting);
	passage->next = program->spare;
	program->spare = passage;
	memory_poison(passage, sizeof(*passage));
}

void passages_free(struct program *program)
{
	while (program->spare) {
		struct passage *passage = program->spare;
		memory_unpoison(passage, sizeof(*passage));
		program->spare = passage->next;
		buffer_free(&passage->head);
		buffer_free(&passage->answer);
		buffer_free(&passage->waiting);
		body_edits_free(&passage->edits);
		meter_free(&passage->meter);
		free(passage);
	}
}

/* What the server said that it used; what it did not say is estimated from what came. */
static void count_usage(struct passage *passage, int64_t *prompt, int64_t *completion)
{
	const struct meter_counts *counts = &passage->meter.counts;
	bool answered = passage->status >= 200 && passage->status < 300;

	*prompt = counts->prompt >= 0 ? counts->prompt : answered ? passage->call.prompt_tokens : 0;
	*completion = counts->completion >= 0   ? counts->completion
	              : !answered               ? 0
	              : passage->call.is_stream ? max64(passage->meter.events - 1, 0)
	                                        : 0;
}

static void end_row(struct passage *passage, int64_t prompt, int64_t completion)
{
	struct program *program = passage->program;
	struct spool_row *row = passage->row;

	if (!row)
		return;
	passage->row = NULL;
	row->prompt = prompt;
	row->completion = completion;
	row->cached = max64(passage->meter.counts.cached, 0);
	row->is_cut = passage->is_cut;
	row->is_error = passage->status >= 400 || passage->status == 0;
	spool_end(program->spool, row);
	program->figures.prompt_tokens += prompt;
	program->figures.completion_tokens += completion;
	program->figures.cached_tokens += row->cached;
	program->figures.cut += passage->is_cut;
}

/* Usage is in the spool before the last byte goes to the client. */
void passage_settle(struct passage *passage)
{
	struct program *program = passage->program;
	int64_t prompt, completion, now_ms = program_now_ms(program);

	if (!passage->is_called)
		return;
	count_usage(passage, &prompt, &completion);
	end_row(passage, prompt, completion);
	passage->is_called = false;
	gateway_finish(program->gateway, &passage->call, prompt, completion, now_ms);
	if (passage->first_ms > 0) {
		times_add(&program->figures.whole, now_ms - passage->came_ms);
		if (passage->call.is_stream && completion > 1)
			times_add(&program->figures.between_tokens,
			          (passage->last_ms - passage->first_ms) / (completion - 1));
	}
}

/* Whoever was waiting may go now. Last, because it may end other passages. */
static void passage_serve(struct program *program)
{
	gateway_serve(program->gateway, program_now_ms(program));
	if (program->gateway->news && program->session)
		session_touch(program->session);
}

void passage_end(struct passage *passage)
{
	struct program *program = passage->program;

	upstream_cancel(&passage->upstream);
	passage_settle(passage);
	passage_free(passage);
	passage_serve(program);
}

void passage_finish(struct passage *passage)
{
	struct exchange *exchange = passage->exchange;

	passage->exchange = NULL;
	passage_settle(passage);
	exchange_end(exchange);
	passage_end(passage);
}

static void add_header(struct header *headers, size_t *count, const char *name, struct text value)
{
	headers[(*count)++] = (struct header){ text_of(name), value };
}

static void add_number(struct header *headers, size_t *count, const char *name,
                       struct buffer *texts, int64_t value, const char *unit)
{
	size_t from = texts->size;

	/* The memory is reserved: texts do not move. */
	buffer_print(texts, "%lld%s", (long long)value, unit);
	add_header(headers, count, name, (struct text){ texts->data + from, texts->size - from });
}

static void add_budget(struct header *headers, size_t *count, struct buffer *texts,
                       const struct gateway_budget *budget, const char *const names[3])
{
	if (budget->limit == 0)
		return;
	add_number(headers, count, names[0], texts, budget->limit, "");
	add_number(headers, count, names[1], texts, budget->left, "");
	add_number(headers, count, names[2], texts, budget->full_ms, "ms");
}

size_t passage_headers(struct passage *passage, struct header *headers, struct buffer *texts)
{
	static const char *const of_requests[] = { "x-ratelimit-limit-requests",
		                                   "x-ratelimit-remaining-requests",
		                                   "x-ratelimit-reset-requests" };
	static const char *const of_tokens[] = { "x-ratelimit-limit-tokens",
		                                 "x-ratelimit-remaining-tokens",
		                                 "x-ratelimit-reset-tokens" };
	struct gateway_budget requests, tokens;
	size_t count = 0;

	add_header(headers, &count, "x-request-id", text_of(passage->id));
	if (!passage->call.asker)
		return count;
	char reserved[512] = { 0 };
	buffer_clear(texts);
	buffer_bytes(texts, reserved, sizeof(reserved));
	buffer_clear(texts);
	gateway_budgets(&passage->call, program_now_ms(passage->program), &requests, &tokens);
	add_budget(headers, &count, texts, &requests, of_requests);
	add_budget(headers, &count, texts, &tokens, of_tokens);
	return count;
}

static void count_answer(struct program *program, int status)
{
	program->figures.answers[status >= 100 && status < 600 ? status / 100 : 0]++;
}

/* Answers an exchange with an error, in the shape that its client expects. */
static void refuse_exchange(struct exchange *exchange, enum dialect dialect, const char *id,
                            const struct refusal *refusal, struct header *headers, size_t count)
{
	struct buffer body = { 0 };
	char seconds[24] = "";

	reply_error(&body, dialect, refusal, id);
	if (refusal->retry_after_s > 0) {
		snprintf(seconds, sizeof(seconds), "%lld", (long long)refusal->retry_after_s);
		headers[count++] = (struct header){ TEXT("retry-after"), text_of(seconds) };
	}
	/* SDKs retry by themselves; what waited for its whole time is not to wait again. */
	headers[count++] =
	    (struct header){ TEXT("x-should-retry"),
		             refusal->status == 429 || refusal->status == 503 ? TEXT("true")
		                                                              : TEXT("false") };
	if (refusal->status == 401)
		headers[count++] = (struct header){ TEXT("www-authenticate"), TEXT("Bearer") };
	exchange_respond(exchange, &(struct response){ .status = refusal->status,
	                                               .content_type = "application/json",
	                                               .headers = headers,
	                                               .header_count = count,
	                                               .body = { body.data, body.size },
	                                               .never_compress = true });
	buffer_free(&body);
}

void passage_refuse(struct passage *passage, const struct refusal *refusal)
{
	struct program *program = passage->program;
	struct exchange *exchange = passage->exchange;
	enum dialect dialect = passage->endpoint->dialect;

	passage->exchange = NULL;
	if (exchange && passage->is_begun) {
		buffer_clear(&program->scratch);
		reply_error_event(&program->scratch, dialect, refusal, passage->id);
		exchange_write(exchange,
		               (struct text){ program->scratch.data, program->scratch.size });
		passage_settle(passage);
		exchange_end(exchange);
	} else if (exchange) {
		struct header headers[HEADERS_MAX];
		size_t count = passage_headers(passage, headers, &program->scratch);
		passage_settle(passage);
		refuse_exchange(exchange, dialect, passage->id, refusal, headers, count);
		count_answer(program, refusal->status);
	}
	passage_end(passage);
}

static void sign_of_life(struct passage *passage, const char *mode)
{
	struct program *program = passage->program;
	char why[GATEWAY_MESSAGE_MAX];

	gateway_explain(program->gateway, &passage->call, program_now_ms(program), why);
	if (!passage->is_begun) {
		struct header headers[HEADERS_MAX];
		size_t count = passage_headers(passage, headers, &program->scratch);
		headers[count++] =
		    (struct header){ TEXT("cache-control"), TEXT("no-cache, no-transform") };
		headers[count++] = (struct header){ TEXT("x-accel-buffering"), TEXT("no") };
		passage->is_begun = true;
		count_answer(program, 200);
		exchange_begin(passage->exchange,
		               &(struct response){ .content_type = "text/event-stream",
		                                   .headers = headers,
		                                   .header_count = count,
		                                   .never_compress = true });
	}
	buffer_clear(&program->scratch);
	reply_waiting(&program->scratch, passage->endpoint->dialect, mode, passage->call.model_name,
	              why);
	exchange_write(passage->exchange,
	               (struct text){ program->scratch.data, program->scratch.size });
}

static const char *keep_alive_mode(const struct passage *passage)
{
	const struct gateway_model *model = passage->call.model;
	const char *mode =
	    model->said && model->said->keep_alive[0] ? model->said->keep_alive : "comment";

	return !passage->call.is_stream || passage->endpoint->dialect == DIALECT_OLLAMA ? "off"
	                                                                                : mode;
}

static void passage_set_timer(struct passage *passage)
{
	int64_t now_ms = program_now_ms(passage->program), due_ms = passage->call.until_ms;

	if (passage->next_sign_ms > 0)
		due_ms = min64(due_ms, passage->next_sign_ms);
	loop_timer_set(passage->program->loop, &passage->timer, max64(due_ms - now_ms, 1));
}

/* It has waited: it says so, or is told no. */
static void passage_on_timer(struct timer *timer)
{
	struct passage *passage =
	    (struct passage *)(void *)((char *)timer - offsetof(struct passage, timer));
	struct program *program = passage->program;
	int64_t now_ms = program_now_ms(program);
	struct refusal refusal = { 0 };

	if (passage->is_asking) {
		refusal_set(&refusal, 503, "server_error", "sign_in_unavailable",
		            "the scheduler did not say in time whether this token holds");
		passage_refuse(passage, &refusal);
		return;
	}
	if (now_ms >= passage->call.until_ms) {
		gateway_late(program->gateway, &passage->call, now_ms, &refusal);
		passage_refuse(passage, &refusal);
		return;
	}
	if (passage->next_sign_ms > 0 && now_ms >= passage->next_sign_ms) {
		sign_of_life(passage, keep_alive_mode(passage));
		passage->next_sign_ms = now_ms + program->settings.keep_alive_ms;
	}
	passage_set_timer(passage);
}

void passage_send(void *context, struct gateway_call *call)
{
	struct program *program = context;
	struct passage *passage = (struct passage *)(void *)call;

	loop_timer_clear(program->loop, &passage->timer);
	if (!passage->row)
		passage->row = spool_begin(program->spool, call->asker->tenant_id, call->model->id,
		                           call->asker->key, call->adapter);
	times_add(&program->figures.queue, program_now_ms(program) - call->began_ms);
	passage_start(passage);
}

static int64_t header_seconds(const struct exchange *exchange, const char *name)
{
	struct text value = headers_get(&exchange->headers, name);
	int64_t seconds = 0;

	for (size_t i = 0; i < value.size && value.data[i] >= '0' && value.data[i] <= '9'; i++)
		seconds = min64(seconds * 10 + value.data[i] - '0', 86400);
	return seconds;
}

/* How long the client waits, as far as it says. */
static int64_t client_wait_ms(const struct exchange *exchange)
{
	int64_t read_ms = header_seconds(exchange, "x-stainless-read-timeout") * 1000;
	int64_t queue_ms = header_seconds(exchange, "x-queue-timeout") * 1000;

	if (read_ms > 0)
		read_ms = max64(read_ms - READ_TIMEOUT_MARGIN_MS, 1000);
	return read_ms > 0 && queue_ms > 0 ? min64(read_ms, queue_ms) : max64(read_ms, queue_ms);
}

static void read_prefix(struct passage *passage)
{
	uint64_t blocks[BODY_BLOCKS_MAX];
	int count =
	    body_prefix(passage->exchange->body, &passage->scan, 1, blocks, BODY_BLOCKS_MAX);

	if (count == 0)
		return;
	passage->blocks = memory_alloc((size_t)count * sizeof(*blocks));
	memcpy(passage->blocks, blocks, (size_t)count * sizeof(*blocks));
	passage->call.blocks = passage->blocks;
	passage->call.block_count = count;
}

static void fill_call(struct passage *passage)
{
	const struct exchange *exchange = passage->exchange;
	struct gateway_call *call = &passage->call;
	const struct body_scan *scan = &passage->scan;

	call->model_name = scan->model;
	call->class = text_is(headers_get(&exchange->headers, "x-request-class"), "batch")
	                  ? FAIR_BATCH
	                  : FAIR_INTERACTIVE;
	call->is_stream = scan->stream == BODY_STREAM_YES ||
	                  (passage->endpoint->streams && scan->stream == BODY_STREAM_UNSAID);
	call->is_ollama = passage->endpoint->is_ollama;
	call->prompt_tokens = body_prompt_tokens(scan);
	call->answer_tokens = scan->answer_tokens;
	call->wait_ms = client_wait_ms(exchange);
	read_prefix(passage);
}

/* The client has signed in: its request is read and queued. */
static void passage_ask(struct passage *passage)
{
	struct program *program = passage->program;
	const struct exchange *exchange = passage->exchange;
	struct text type = headers_get(&exchange->headers, "content-type");
	int64_t now_ms = program_now_ms(program);
	struct error error = { 0 };
	struct refusal refusal = { 0 };

	bool is_form = passage->endpoint->takes_form && form_is(type);
	bool good = is_form ? form_scan(exchange->body, type, &passage->scan, &error)
	                    : body_scan(exchange->body, &passage->scan, &error);
	if (!good) {
		refusal_set(&refusal, 400, "invalid_request_error", "invalid_body", "%s",
		            error.text);
		passage_refuse(passage, &refusal);
		return;
	}
	fill_call(passage);
	if (!gateway_ask(program->gateway, &passage->call, now_ms, &refusal)) {
		passage_refuse(passage, &refusal);
		return;
	}
	passage->is_called = true;
	if (strcmp(keep_alive_mode(passage), "off") != 0)
		passage->next_sign_ms = now_ms + program->settings.keep_alive_ms;
	passage_set_timer(passage);
	passage_serve(program);
}

static struct text bearer(const struct exchange *exchange)
{
	struct text value = headers_get(&exchange->headers, "authorization");

	if (value.size > 7 && strncasecmp(value.data, "Bearer ", 7) == 0)
		return text_trim(text_from(value, 7));
	value = headers_get(&exchange->headers, "x-api-key");
	return value.size > 0 ? value : headers_get(&exchange->headers, "api-key");
}

static bool is_loopback_name(struct text authority)
{
	struct text host = authority;

	if (!host.data)
		return true;
	const char *end = memchr(host.data, ']', host.size);

	if (host.size > 0 && host.data[0] == '[' && end)
		host.size = (size_t)(end - host.data) + 1;
	else if (host.size > 0 && memchr(host.data, ':', host.size))
		host.size = (size_t)((const char *)memchr(host.data, ':', host.size) - host.data);
	return text_is_any_case(host, "localhost") || text_is(host, "[::1]") ||
	       text_starts(host, "127.") || host.size == 0;
}

static bool is_local(const struct exchange *exchange)
{
	return text_starts(exchange->peer_address, "127.") ||
	       text_is(exchange->peer_address, "::1");
}

/* Without sign-in, only this machine may ask, and no page of another site. */
static bool may_be_open(const struct exchange *exchange)
{
	struct text origin = headers_get(&exchange->headers, "origin");

	if (!is_local(exchange) || !is_loopback_name(exchange->authority))
		return false;
	if (text_starts(origin.data ? origin : TEXT(""), "https://"))
		return is_loopback_name(text_from(origin, 8));
	return !origin.data ||
	       (text_starts(origin, "http://") && is_loopback_name(text_from(origin, 7)));
}

static enum signin_result sign_in(struct program *program, const struct exchange *exchange,
                                  struct gateway_asker **asker, struct refusal *refusal)
{
	const char *reason;
	enum signin_result result = signin_find(&program->gateway->signin, bearer(exchange),
	                                        clock_unix_ms(), asker, &reason);

	if (result == SIGNIN_YES && program->gateway->signin.open && !may_be_open(exchange)) {
		refusal_set(refusal, 403, "permission_error", "sign_in_required",
		            "the scheduler has no sign-in, so only this machine may ask");
		return SIGNIN_NO;
	}
	if (result == SIGNIN_NO)
		refusal_set(refusal, 401, "authentication_error", "invalid_api_key", "%s", reason);
	if (result == SIGNIN_EARLY) {
		refusal_set(refusal, 503, "server_error", "starting",
		            "the gateway has not reached the scheduler yet: try again");
		refusal->retry_after_s = 1;
	}
	return result;
}

/* An id that the client gave, if it is a plain one, or a new one. */
static void make_id(struct program *program, const struct exchange *exchange,
                    char id[PASSAGE_ID_MAX])
{
	struct text given = headers_get(&exchange->headers, "x-request-id");
	bool plain = given.size > 0 && given.size < PASSAGE_ID_MAX;

	for (size_t i = 0; plain && i < given.size; i++)
		plain = given.data[i] > ' ' && given.data[i] < 0x7f;
	if (plain) {
		memcpy(id, given.data, given.size);
		id[given.size] = '\0';
	} else {
		snprintf(id, PASSAGE_ID_MAX, "req-%016llx",
		         (unsigned long long)random_next(&program->id_seed));
	}
}

static void refuse_early(struct program *program, struct exchange *exchange,
                         const struct endpoint *endpoint, const struct refusal *refusal)
{
	struct header headers[HEADERS_MAX];
	char id[PASSAGE_ID_MAX];

	make_id(program, exchange, id);
	headers[0] = (struct header){ TEXT("x-request-id"), text_of(id) };
	count_answer(program, refusal->status);
	refuse_exchange(exchange, endpoint->dialect, id, refusal, headers, 1);
}

static bool check_method(const struct exchange *exchange, const struct endpoint *endpoint,
                         struct refusal *refusal)
{
	bool is_read = exchange->method == METHOD_GET || exchange->method == METHOD_HEAD;

	if (endpoint->kind == ENDPOINT_UNKNOWN) {
		refusal_set(refusal, 404, "invalid_request_error", "unknown_path", "%s",
		            unknown_path);
		return false;
	}
	if (endpoint->is_post ? exchange->method == METHOD_POST : is_read)
		return true;
	refusal_set(refusal, 405, "invalid_request_error", "method_not_allowed",
	            "only %s is possible here", endpoint->is_post ? "POST" : "GET");
	return false;
}

/* Pages of any site may read answers: a request needs a key that the page was given, never one that
 * the browser adds by itself, and without sign-in may_be_open() looks at the site. */
static const struct header page_headers[] = {
	{ TEXT("access-control-allow-origin"), TEXT("*") },
	{ TEXT("access-control-expose-headers"), TEXT("*") },
};

/* Browsers ask first whether a page may ask. */
static void allow_page(struct exchange *exchange)
{
	struct header headers[3] = {
		{ TEXT("access-control-allow-methods"), TEXT("GET, POST") },
		{ TEXT("access-control-max-age"), TEXT("600") },
		{ TEXT("access-control-allow-headers"),
		  headers_get(&exchange->headers, "access-control-request-headers") },
	};

	exchange_respond(exchange,
	                 &(struct response){ .status = 204,
	                                     .headers = headers,
	                                     .header_count = headers[2].value.size > 0 ? 3 : 2 });
}

void passage_head(struct exchange *exchange)
{
	struct program *program = exchange->handler->context;
	struct text rest;
	const struct endpoint *endpoint = endpoint_find(exchange->path, &rest);
	struct gateway_asker *asker;
	struct refusal refusal = { 0 };

	if (headers_get(&exchange->headers, "origin").data) {
		exchange->common_headers = page_headers;
		exchange->common_header_count = sizeof(page_headers) / sizeof(page_headers[0]);
	}
	if (exchange->method == METHOD_OPTIONS && endpoint->kind != ENDPOINT_UNKNOWN &&
	    headers_get(&exchange->headers, "access-control-request-method").data) {
		allow_page(exchange);
		return;
	}
	if (!check_method(exchange, endpoint, &refusal)) {
		refuse_early(program, exchange, endpoint, &refusal);
		return;
	}
	if (endpoint->kind == ENDPOINT_HEALTH)
		return;
	enum signin_result result = sign_in(program, exchange, &asker, &refusal);
	if (result == SIGNIN_NO || result == SIGNIN_EARLY) {
		refuse_early(program, exchange, endpoint, &refusal);
		return;
	}
	if (result == SIGNIN_YES)
		exchange_trust(exchange);
	exchange->body_limit = (size_t)program->settings.body_bytes;
}

static struct passage *passage_of(const struct exchange *exchange)
{
	return exchange->context;
}

/* The client hung up: nothing is computed for nobody. */
static void passage_on_gone(struct exchange *exchange)
{
	struct passage *passage = passage_of(exchange);

	if (!passage)
		return;
	passage->exchange = NULL;
	passage->is_cut = true;
	passage->program->gateway->counters.cancelled++;
	exchange_abort(exchange);
	passage_end(passage);
}

static void passage_on_writable(struct exchange *exchange)
{
	struct passage *passage = passage_of(exchange);
	struct buffer *waiting = &passage->waiting;

	if (waiting->size > 0 &&
	    !exchange_write(exchange, (struct text){ waiting->data, waiting->size }))
		return;
	buffer_clear(waiting);
	if (passage->wants_end) {
		passage_finish(passage);
		return;
	}
	upstream_pause(&passage->upstream, false);
}

static const struct exchange_events passage_events = { .gone = passage_on_gone,
	                                               .writable = passage_on_writable };

/* Continues with one whose token is known now, or is not asked about. */
static void passage_signed_in(struct passage *passage)
{
	struct program *program = passage->program;
	struct exchange *exchange = passage->exchange;
	struct refusal refusal = { 0 };
	struct text rest;
	enum signin_result result = sign_in(program, exchange, &passage->call.asker, &refusal);

	if (result == SIGNIN_ASK && !passage->is_asking && program->session &&
	    session_ask(program->session, passage->token)) {
		passage->is_asking = true;
		loop_timer_set(program->loop, &passage->timer, VERDICT_MS);
		return;
	}
	passage->is_asking = false;
	loop_timer_clear(program->loop, &passage->timer);
	if (result == SIGNIN_ASK)
		refusal_set(&refusal, 503, "server_error", "sign_in_unavailable",
		            "the scheduler cannot be asked whether this token holds: try again");
	if (result != SIGNIN_YES) {
		passage->call.asker = NULL;
		passage_refuse(passage, &refusal);
		return;
	}
	if (passage->endpoint->kind == ENDPOINT_PASS) {
		passage_ask(passage);
		return;
	}
	passage->exchange = NULL;
	endpoint_find(exchange->path, &rest);
	own_answer(program, exchange, passage->endpoint, rest, passage->call.asker);
	passage_end(passage);
}

void passage_request(struct exchange *exchange)
{
	struct program *program = exchange->handler->context;
	struct text rest;
	const struct endpoint *endpoint = endpoint_find(exchange->path, &rest);

	if (endpoint->kind == ENDPOINT_HEALTH) {
		own_answer(program, exchange, endpoint, rest, NULL);
		return;
	}
	struct passage *passage = passage_new(program, exchange);
	passage->endpoint = endpoint;
	passage->token = bearer(exchange);
	make_id(program, exchange, passage->id);
	exchange->context = passage;
	exchange->events = &passage_events;
	exchange->hangup_is_gone = true;
	program->figures.bytes_in += (int64_t)exchange->body.size;
	passage_signed_in(passage);
}

/* Each ends or changes only itself, but others may end with it: so from the start after each. */
static bool next_asking(struct program *program, struct text token, bool any)
{
	for (struct passage *passage = program->passages; passage; passage = passage->next)
		if (passage->is_asking && (any || text_equal(passage->token, token))) {
			passage_signed_in(passage);
			return true;
		}
	return false;
}

void passage_verdict(struct program *program, struct text token)
{
	while (next_asking(program, token, false))
		;
}

void passage_no_verdicts(struct program *program)
{
	while (next_asking(program, (struct text){ 0 }, true))
		;
}
