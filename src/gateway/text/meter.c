/* meter.c - tokens that an answer says it took, found in its bytes as they pass */
#include "gateway/text/meter.h"

#include "base/number.h"

/* An event that is longer passes as it comes: it does not only have usage. */
enum { HELD_MAX = 16 << 10 };

void meter_start(struct meter *meter, enum meter_form form, bool cuts)
{
	struct buffer held = meter->held;

	buffer_clear(&held);
	*meter = (struct meter){ .form = form,
		                 .counts = { -1, -1, -1 },
		                 .cuts = cuts && form == METER_EVENTS,
		                 .line_is_empty = true,
		                 .held = held };
}

void meter_free(struct meter *meter)
{
	buffer_free(&meter->held);
}

static bool in_object(const struct meter_scan *scan)
{
	return scan->depth > 0 && scan->depth < METER_DEPTH_MAX &&
	       (scan->objects >> scan->depth & 1) != 0;
}

/* The names under which servers tell, by who counts. Those of the prompt that were cached are part
 * of it for OpenAI and come on top of it for Anthropic. */
static void meter_number(struct meter *meter, int64_t number)
{
	const struct meter_scan *scan = &meter->scan;
	struct meter_counts *counts = &meter->counts;
	const char *key = scan->key;

	if (!scan->has_key)
		return;
	if (scan->usage_depth > 0) {
		if (strcmp(key, "prompt_tokens") == 0 || strcmp(key, "input_tokens") == 0)
			counts->prompt = number;
		else if (strcmp(key, "completion_tokens") == 0 || strcmp(key, "output_tokens") == 0)
			counts->completion = number;
		else if (strcmp(key, "cached_tokens") == 0 ||
		         strcmp(key, "cache_read_input_tokens") == 0)
			counts->cached = number;
	} else if (scan->depth == 1) {
		if (strcmp(key, "prompt_eval_count") == 0)
			counts->prompt = number;
		else if (strcmp(key, "eval_count") == 0)
			counts->completion = number;
	}
}

static bool is_plain_path(const struct meter_scan *scan)
{
	uint64_t levels;

	if (scan->depth < 1 || scan->depth > 2)
		return false;
	levels = (UINT64_C(1) << (scan->depth + 1)) - 2;
	return (scan->objects & levels) == levels;
}

static void scan_open(struct meter_scan *scan, bool is_object)
{
	bool is_usage =
	    is_object && scan->has_key && strcmp(scan->key, "usage") == 0 && is_plain_path(scan);

	if (scan->in_choices)
		scan->choices_empty = false;
	scan->in_choices =
	    !is_object && scan->depth == 1 && scan->has_key && strcmp(scan->key, "choices") == 0;
	if (scan->in_choices)
		scan->choices_empty = true;
	scan->depth++;
	if (scan->depth < METER_DEPTH_MAX) {
		scan->objects &= ~(UINT64_C(1) << scan->depth);
		scan->objects |= (uint64_t)is_object << scan->depth;
	}
	if (is_usage && scan->usage_depth == 0) {
		scan->usage_depth = scan->depth;
		scan->has_usage = true;
	}
	scan->is_key = is_object;
	scan->has_key = false;
}

static void scan_close(struct meter_scan *scan)
{
	if (scan->usage_depth == scan->depth)
		scan->usage_depth = 0;
	if (scan->depth > 0)
		scan->depth--;
	scan->in_choices = false;
	scan->has_key = false;
	scan->is_key = false;
}

static void scan_begin_string(struct meter_scan *scan)
{
	scan->stage = SCAN_STRING;
	if (scan->in_choices)
		scan->choices_empty = false;
	if (scan->is_key)
		scan->key_size = 0;
}

/* A byte between strings. */
static void scan_value_byte(struct meter *meter, char byte)
{
	struct meter_scan *scan = &meter->scan;

	switch (byte) {
	case '{':
	case '[':
		scan_open(scan, byte == '{');
		break;
	case '}':
	case ']':
		scan_close(scan);
		break;
	case ',':
		scan->is_key = in_object(scan);
		scan->has_key = false;
		break;
	case '"':
		scan_begin_string(scan);
		break;
	default:
		if (scan->in_choices && byte > ' ')
			scan->choices_empty = false;
		if (byte >= '0' && byte <= '9') {
			scan->stage = SCAN_NUMBER;
			scan->number = byte - '0';
		}
		break;
	}
}

static void scan_number_byte(struct meter *meter, char byte)
{
	struct meter_scan *scan = &meter->scan;

	if (byte >= '0' && byte <= '9') {
		if (scan->number < INT64_C(1) << 40)
			scan->number = scan->number * 10 + byte - '0';
		return;
	}
	scan->stage = SCAN_VALUE;
	if (byte != '.' && byte != 'e' && byte != 'E')
		meter_number(meter, scan->number);
	scan_value_byte(meter, byte);
}

static void scan_string_ends(struct meter_scan *scan)
{
	scan->stage = SCAN_VALUE;
	if (!scan->is_key) {
		scan->has_key = false;
		return;
	}
	scan->has_key = scan->key_size <= METER_KEY_MAX;
	scan->key[scan->has_key ? scan->key_size : 0] = '\0';
	scan->is_key = false;
}

static void scan_key_bytes(struct meter_scan *scan, const char *from, size_t size)
{
	if (!scan->is_key)
		return;
	if (scan->key_size + size <= METER_KEY_MAX)
		memcpy(scan->key + scan->key_size, from, size);
	scan->key_size =
	    scan->key_size + size > METER_KEY_MAX ? METER_KEY_MAX + 1 : scan->key_size + size;
}

/* Inside a string: as far as it goes. */
static const char *scan_string(struct meter_scan *scan, const char *at, const char *end)
{
	const char *from = at;

	while (at < end && *at != '"' && *at != '\\')
		at++;
	scan_key_bytes(scan, from, (size_t)(at - from));
	if (at == end)
		return at;
	if (*at == '\\')
		scan->stage = SCAN_ESCAPE;
	else
		scan_string_ends(scan);
	return at + 1;
}

static void scan_bytes(struct meter *meter, const char *at, const char *end)
{
	struct meter_scan *scan = &meter->scan;

	while (at < end) {
		switch (scan->stage) {
		case SCAN_STRING:
			at = scan_string(scan, at, end);
			break;
		case SCAN_ESCAPE:
			scan->key_size = METER_KEY_MAX + 1; /* no name of ours */
			scan->stage = SCAN_STRING;
			at++;
			break;
		case SCAN_NUMBER:
			scan_number_byte(meter, *at++);
			break;
		default:
			scan_value_byte(meter, *at++);
			break;
		}
	}
}

static void document_ends(struct meter *meter)
{
	if (meter->scan.stage == SCAN_NUMBER)
		meter_number(meter, meter->scan.number);
	meter->scan = (struct meter_scan){ 0 };
}

/* The field's name at the start of a line of an event, until the colon. */
static void event_field_byte(struct meter *meter, char byte)
{
	if (byte == ':')
		meter->in_data = meter->field_size == 4 && memcmp(meter->field, "data", 4) == 0;
	else if (meter->field_size < (int)sizeof(meter->field))
		meter->field[meter->field_size++] = byte;
	if (byte == ':')
		meter->field_size = sizeof(meter->field); /* the name has ended */
}

/* A line of an event or of a stream of documents. */
static void take_line_part(struct meter *meter, const char *at, const char *end)
{
	/* A line feed may come later than the carriage return before it. */
	if (at < end && (*at != '\r' || end - at > 1 || meter->line_has_return))
		meter->line_is_empty = false;
	meter->line_has_return = meter->line_has_return || (at < end && *at == '\r');
	if (meter->form == METER_LINES) {
		scan_bytes(meter, at, end);
		return;
	}
	while (at < end && !meter->in_data && meter->field_size < (int)sizeof(meter->field))
		event_field_byte(meter, *at++);
	if (meter->in_data)
		scan_bytes(meter, at, end);
}

static void line_ends(struct meter *meter)
{
	if (meter->form == METER_LINES ? !meter->line_is_empty : meter->in_data)
		meter->events++;
	if (meter->form == METER_LINES)
		document_ends(meter);
	meter->in_data = false;
	meter->field_size = 0;
	meter->line_is_empty = true;
	meter->line_has_return = false;
}

void meter_take(struct meter *meter, struct text bytes)
{
	const char *at = bytes.data, *end = bytes.data + bytes.size;

	meter->bytes += (int64_t)bytes.size;
	if (meter->form == METER_JSON)
		scan_bytes(meter, at, end);
	if (meter->form == METER_JSON || meter->form == METER_NOTHING)
		return;
	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		const char *to = line_end ? line_end : end;
		bool blank = line_end && meter->line_is_empty &&
		             (to == at || (to == at + 1 && *at == '\r' && !meter->line_has_return));
		if (!blank)
			take_line_part(meter, at, to);
		if (line_end)
			line_ends(meter);
		if (blank)
			document_ends(meter);
		at = line_end ? line_end + 1 : end;
	}
}

/* Where the event ends whose last bytes come: behind its empty line; NULL: not here. */
static const char *event_end(const struct buffer *held, const char *at, const char *end)
{
	char last = held->size > 0 ? held->data[held->size - 1] : '\0';
	char second = held->size > 1 ? held->data[held->size - 2] : '\0';

	for (; at < end; at++) {
		if (*at == '\n' && (last == '\n' || (last == '\r' && second == '\n')))
			return at + 1;
		second = last;
		last = *at;
	}
	return NULL;
}

static bool is_only_usage(const struct meter *meter)
{
	return meter->scan.choices_empty && meter->scan.has_usage;
}

static void cut_part(struct meter *meter, const char *at, const char *end, struct buffer *out)
{
	/* The last line feed would end the document, whose scan tells what it was. */
	meter_take(meter, (struct text){ at, (size_t)(end - at) });
	buffer_bytes(&meter->held, at, (size_t)(end - at));
	if (meter->held.size > HELD_MAX) {
		buffer_bytes(out, meter->held.data, meter->held.size);
		buffer_clear(&meter->held);
	}
}

void meter_cut(struct meter *meter, struct text bytes, struct buffer *out)
{
	const char *at = bytes.data, *end = bytes.data + bytes.size;

	while (at < end) {
		const char *to = event_end(&meter->held, at, end);
		if (!to) {
			cut_part(meter, at, end, out);
			return;
		}
		cut_part(meter, at, to - 1, out);
		bool drop = is_only_usage(meter);
		cut_part(meter, to - 1, to, out);
		if (!drop)
			buffer_bytes(out, meter->held.data, meter->held.size);
		buffer_clear(&meter->held);
		at = to;
	}
}

void meter_end(struct meter *meter, struct buffer *out)
{
	if (meter->form != METER_NOTHING)
		document_ends(meter);
	if (meter->held.size > 0)
		buffer_bytes(out, meter->held.data, meter->held.size);
	buffer_clear(&meter->held);
}
