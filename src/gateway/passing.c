/* passing.c - a request that has a place: to the server and back, byte by byte */
#include "gateway/passage.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/number.h"
#include "gateway/text/form.h"

enum {
	WHOLE_BYTES = 1 << 20, /* an answer of known length up to this is passed on in one piece */
	HEADERS_MAX = ANSWER_HEADERS_MAX + 16,
	CONTENT_TYPE_MAX = 256,
	ERROR_BODY_MAX = 4096,
};

/* Headers of the request that are the connection's or ours. */
static bool is_ours(struct text name)
{
	static const char *const ours[] = {
		"host",
		"origin",
		"authorization",
		"x-api-key",
		"api-key",
		"content-length",
		"connection",
		"keep-alive",
		"accept-encoding",
		"transfer-encoding",
		"te",
		"trailer",
		"upgrade",
		"expect",
		"proxy-authorization",
		"proxy-connection",
		"x-request-id",
		"cookie",
		"x-queue-timeout",
		"x-request-class",
		"http2-settings",
		NULL,
	};

	for (int i = 0; ours[i]; i++)
		if (text_is(name, ours[i]))
			return true;
	return false;
}

static void put(struct buffer *out, struct text text)
{
	buffer_bytes(out, text.data, text.size);
}

/* http://HOST:PORT without what is before the host. */
static struct text host_of(const char *address)
{
	const char *at = strstr(address, "://");

	return text_of(at ? at + 3 : address);
}

static void write_head(struct passage *passage, size_t body_size)
{
	const struct exchange *exchange = passage->exchange;
	const struct gateway_slot *slot = passage->call.slot;
	struct buffer *head = &passage->head;

	buffer_clear(head);
	put(head, TEXT("POST "));
	put(head, exchange->target);
	put(head, TEXT(" HTTP/1.1\r\nhost: "));
	put(head, host_of(slot->address));
	put(head, TEXT("\r\naccept-encoding: identity\r\nx-request-id: "));
	buffer_text(head, passage->id);
	if (slot->key[0]) {
		put(head, TEXT("\r\nauthorization: Bearer "));
		buffer_text(head, slot->key);
	}
	buffer_print(head, "\r\ncontent-length: %zu\r\n", body_size);
	for (size_t i = 0; i < exchange->headers.count; i++) {
		const struct header *header = &exchange->headers.of[i];
		if (is_ours(header->name))
			continue;
		put(head, header->name);
		put(head, TEXT(": "));
		put(head, header->value);
		put(head, TEXT("\r\n"));
	}
	put(head, TEXT("\r\n"));
}

/* The body with its changes, piece by piece: nothing of it is copied. */
static void add_pieces(struct passage *passage)
{
	struct upstream_request *request = &passage->upstream;
	struct text body = passage->exchange->body;
	size_t from = 0;

	request->piece_count = 0;
	request->pieces[request->piece_count++] =
	    (struct text){ passage->head.data, passage->head.size };
	for (int i = 0; i < passage->edits.count; i++) {
		const struct body_edit *edit = &passage->edits.of[i];
		request->pieces[request->piece_count++] =
		    (struct text){ body.data + from, edit->at - from };
		request->pieces[request->piece_count++] = edit->insert;
		from = edit->at + edit->remove;
	}
	if (body.size > from)
		request->pieces[request->piece_count++] = text_from(body, from);
}

/* What the server knows the model by: its adapters by their own names. */
static const char *server_model(const struct passage *passage)
{
	const struct gateway_call *call = &passage->call;
	const char *name = call->adapter[0] ? call->adapter : call->model->said->name;

	return strcmp(passage->scan.model, name) == 0 ? NULL : name;
}

static void got_head(struct upstream_request *request, const struct answer_reader *reader);
static void got_part(struct upstream_request *request, struct text part);
static void got_end(struct upstream_request *request, enum upstream_end how, const char *why);

static struct passage *passing_of(struct upstream_request *request)
{
	return (struct passage *)(void *)((char *)request - offsetof(struct passage, upstream));
}

void passage_start(struct passage *passage)
{
	struct text body = passage->exchange->body;
	bool is_form = passage->endpoint->takes_form &&
	               form_is(headers_get(&passage->exchange->headers, "content-type"));
	bool adds_usage = passage->call.is_stream && passage->endpoint->takes_usage;

	passage->edits.count = 0;
	if (is_form)
		form_edit(&passage->scan, server_model(passage), &passage->edits);
	else
		body_edit(&passage->scan, server_model(passage), adds_usage, &passage->edits);
	write_head(passage, body_edited_size(body, &passage->edits));
	add_pieces(passage);
	passage->is_sent = true;
	passage->status = 0;
	passage->upstream.address = passage->call.slot->address;
	passage->upstream.certificate = passage->call.slot->certificate;
	passage->upstream.head = got_head;
	passage->upstream.part = got_part;
	passage->upstream.end = got_end;
	upstream_send(passage->program->upstream, &passage->upstream);
}

/* Another replica may do better, if nothing has come. */
static bool retry(struct passage *passage, bool refused)
{
	struct program *program = passage->program;

	if (!gateway_retry(program->gateway, &passage->call, refused, program_now_ms(program)))
		return false;
	upstream_cancel(&passage->upstream);
	passage->is_sent = false;
	loop_timer_set(program->loop, &passage->timer,
	               max64(passage->call.until_ms - program_now_ms(program), 1));
	gateway_serve(program->gateway, program_now_ms(program));
	return true;
}

static enum meter_form form_of(struct text type)
{
	if (text_starts(type, "text/event-stream"))
		return METER_EVENTS;
	if (text_starts(type, "application/x-ndjson"))
		return METER_LINES;
	return text_starts(type, "application/json") ? METER_JSON : METER_NOTHING;
}

/* Headers of the answer that are the connection's. */
static bool is_hop(struct text name)
{
	static const char *const hops[] = { "connection",
		                            "keep-alive",
		                            "transfer-encoding",
		                            "content-length",
		                            "content-type",
		                            "date",
		                            "server",
		                            "trailer",
		                            "upgrade",
		                            "x-request-id",
		                            "x-content-type-options",
		                            "access-control-allow-origin",
		                            "access-control-allow-credentials",
		                            "access-control-expose-headers",
		                            NULL };

	for (int i = 0; hops[i]; i++)
		if (text_is(name, hops[i]))
			return true;
	return false;
}

struct answer_head {
	struct header headers[HEADERS_MAX];
	size_t count;
	char type[CONTENT_TYPE_MAX];
};

static void fill_head(struct passage *passage, const struct answer_reader *reader,
                      struct answer_head *head)
{
	const struct headers headers = { reader->headers, reader->header_count };
	struct text type = headers_get(&headers, "content-type");

	head->count = passage_headers(passage, head->headers, &passage->program->scratch);
	for (size_t i = 0; i < reader->header_count; i++)
		if (!is_hop(reader->headers[i].name) &&
		    !(passage->meter.form == METER_EVENTS &&
		      text_is(reader->headers[i].name, "cache-control")))
			head->headers[head->count++] = reader->headers[i];
	if (passage->meter.form == METER_EVENTS || passage->meter.form == METER_LINES) {
		head->headers[head->count++] =
		    (struct header){ TEXT("cache-control"), TEXT("no-cache, no-transform") };
		head->headers[head->count++] =
		    (struct header){ TEXT("x-accel-buffering"), TEXT("no") };
	}
	snprintf(head->type, sizeof(head->type), "%.*s", (int)min64((int64_t)type.size, 255),
	         type.data ? type.data : "");
}

static void begin_answer(struct passage *passage, const struct answer_reader *reader)
{
	struct answer_head head;

	fill_head(passage, reader, &head);
	passage->is_begun = true;
	passage->program->figures.answers[passage->status / 100 % 6]++;
	exchange_begin(passage->exchange,
	               &(struct response){ .status = passage->status,
	                                   .content_type = head.type[0] ? head.type : NULL,
	                                   .headers = head.headers,
	                                   .header_count = head.count,
	                                   .never_compress = true });
}

static void got_head(struct upstream_request *request, const struct answer_reader *reader)
{
	struct passage *passage = passing_of(request);
	const struct headers headers = { reader->headers, reader->header_count };
	struct text type = headers_get(&headers, "content-type");

	if ((reader->status == 502 || reader->status == 503) && !passage->is_begun &&
	    retry(passage, false))
		return;
	passage->status = reader->status;
	meter_start(&passage->meter, form_of(type),
	            passage->endpoint->takes_usage && !passage->scan.wants_usage);
	if (passage->is_begun) {
		/* The status is given: an error goes as an event. */
		passage->is_event = reader->status >= 300;
		return;
	}
	passage->is_whole = reader->has_length && reader->content_length <= WHOLE_BYTES &&
	                    passage->meter.form != METER_EVENTS;
	request->keeps_head = passage->is_whole;
	if (!passage->is_whole)
		begin_answer(passage, reader);
}

/* Totals of what runs are in the spool too: if we die, it is counted as far as it came. */
static void note_progress(struct passage *passage)
{
	struct program *program = passage->program;
	const struct meter_counts *counts = &passage->meter.counts;
	int64_t tokens = counts->completion >= 0 ? counts->completion : passage->meter.events;

	passage->last_ms = program_now_ms(program);
	if (passage->first_ms == 0) {
		passage->first_ms = passage->last_ms;
		gateway_begun(&passage->call);
		times_add(&program->figures.first_token, passage->first_ms - passage->came_ms);
		if (passage->call.is_stream && passage->status < 300)
			speed_first_token(&passage->call.model->speed, passage->first_ms,
			                  passage->first_ms - passage->came_ms);
	}
	if (passage->status < 300 && tokens > passage->told_tokens) {
		speed_tokens(&passage->call.model->speed, passage->last_ms,
		             tokens - passage->told_tokens);
		passage->told_tokens = tokens;
	}
	if (!passage->row)
		return;
	passage->row->prompt = counts->prompt >= 0 ? counts->prompt : passage->call.prompt_tokens;
	passage->row->completion = tokens;
}

/* To the client; what it does not take waits, and the server with it. */
static void pass_on(struct passage *passage, struct text part)
{
	passage->program->figures.bytes_out += (int64_t)part.size;
	if (passage->waiting.size == 0 && exchange_write(passage->exchange, part))
		return;
	buffer_bytes(&passage->waiting, part.data, part.size);
	upstream_pause(&passage->upstream, true);
}

static void got_part(struct upstream_request *request, struct text part)
{
	struct passage *passage = passing_of(request);
	struct buffer *scratch = &passage->program->scratch;

	if (passage->is_whole || passage->is_event) {
		if (passage->answer.size + part.size <= WHOLE_BYTES)
			buffer_bytes(&passage->answer, part.data, part.size);
		meter_take(&passage->meter, part);
		note_progress(passage);
		return;
	}
	if (!passage->meter.cuts) {
		meter_take(&passage->meter, part);
		note_progress(passage);
		pass_on(passage, part);
		return;
	}
	buffer_clear(scratch);
	meter_cut(&passage->meter, part, scratch);
	note_progress(passage);
	if (scratch->size > 0)
		pass_on(passage, (struct text){ scratch->data, scratch->size });
}

/* An answer that came whole. Status and headers are those of the connection's reader. */
static void respond_whole(struct passage *passage)
{
	struct exchange *exchange = passage->exchange;
	struct answer_head head;

	fill_head(passage, passage->upstream.reader, &head);
	passage->exchange = NULL;
	passage_settle(passage);
	passage->program->figures.answers[passage->status / 100 % 6]++;
	passage->program->figures.bytes_out += (int64_t)passage->answer.size;
	exchange_respond(exchange,
	                 &(struct response){ .status = passage->status,
	                                     .content_type = head.type[0] ? head.type : NULL,
	                                     .headers = head.headers,
	                                     .header_count = head.count,
	                                     .body = { passage->answer.data, passage->answer.size },
	                                     .never_compress = true });
	passage_end(passage);
}

/* What the server says about its error, as one line of an event. */
static void refuse_as_server(struct passage *passage)
{
	struct refusal refusal;
	struct buffer *answer = &passage->answer;

	for (size_t i = 0; i < answer->size; i++)
		if ((unsigned char)answer->data[i] < ' ')
			answer->data[i] = ' ';
	refusal_set(&refusal, passage->status, "server_error", "upstream_error",
	            "the model's server answered %d: %.*s", passage->status,
	            (int)min64((int64_t)answer->size, 240), answer->data ? answer->data : "");
	passage_refuse(passage, &refusal);
}

static void complete(struct passage *passage)
{
	struct buffer *scratch = &passage->program->scratch;

	if (passage->is_event) {
		refuse_as_server(passage);
		return;
	}
	buffer_clear(scratch);
	meter_end(&passage->meter, scratch);
	if (passage->is_whole) {
		respond_whole(passage);
		return;
	}
	if (scratch->size > 0)
		pass_on(passage, (struct text){ scratch->data, scratch->size });
	if (passage->waiting.size > 0) {
		passage->wants_end = true;
		return;
	}
	passage_finish(passage);
}

/* Nothing came, and no other replica is left to ask. */
static void refuse_failed(struct passage *passage, const char *why)
{
	struct refusal refusal;

	passage->program->gateway->counters.failed++;
	refusal_set(&refusal, 502, "server_error", "upstream_failed",
	            "the model's server did not answer: %.200s", why ? why : "it failed");
	passage_refuse(passage, &refusal);
}

static void got_end(struct upstream_request *request, enum upstream_end how, const char *why)
{
	struct passage *passage = passing_of(request);
	struct exchange *exchange = passage->exchange;

	if (how == UPSTREAM_COMPLETE) {
		complete(passage);
		return;
	}
	if ((how == UPSTREAM_REFUSED || how == UPSTREAM_RESET) && retry(passage, true))
		return;
	if (!passage->is_begun || passage->is_event || passage->first_ms == 0) {
		refuse_failed(passage, why);
		return;
	}
	/* The client is to see that it is not complete. */
	passage->is_cut = true;
	passage->exchange = NULL;
	exchange_abort(exchange);
	passage_end(passage);
}
