/* envelope.c - what goes over the connection: agent.Envelope of proto/agent.proto */
#include "agent/uplink/envelope.h"

#include <string.h>

/* How protobuf says what follows a field's number. */
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

static void put_number(struct buffer *buffer, uint64_t field, int64_t value)
{
	if (value == 0)
		return;
	buffer_varint(buffer, field << 3 | WIRE_VARINT);
	buffer_varint(buffer, (uint64_t)value);
}

static void put_bytes(struct buffer *buffer, uint64_t field, const void *data, size_t size)
{
	buffer_varint(buffer, field << 3 | WIRE_BYTES);
	buffer_varint(buffer, size);
	buffer_bytes(buffer, data, size);
}

static void put_text(struct buffer *buffer, uint64_t field, struct text text)
{
	if (text.size > 0)
		put_bytes(buffer, field, text.data, text.size);
}

static void encode_request(struct buffer *buffer, const struct output_request *request)
{
	put_number(buffer, 1, request->request_id);
	put_number(buffer, 2, request->reservation_id);
	put_number(buffer, 3, request->job_id);
	put_number(buffer, 4, request->task);
	put_number(buffer, 5, request->follow);
	put_number(buffer, 6, request->offset);
	put_number(buffer, 7, request->errors);
	put_number(buffer, 8, request->window);
}

static void encode_chunk(struct buffer *buffer, const struct output_chunk *chunk)
{
	put_number(buffer, 1, chunk->request_id);
	put_number(buffer, 2, chunk->offset);
	put_text(buffer, 3, chunk->data);
	put_number(buffer, 4, chunk->end);
	put_text(buffer, 5, chunk->error);
}

void envelope_encode(struct buffer *buffer, const struct envelope *envelope)
{
	struct buffer inner = { 0 };

	switch (envelope->kind) {
	case ENVELOPE_MESSAGE:
		put_bytes(buffer, 1, envelope->message.data, envelope->message.size);
		return;
	case ENVELOPE_OUTPUT_REQUEST:
		encode_request(&inner, &envelope->request);
		break;
	case ENVELOPE_OUTPUT_CHUNK:
		encode_chunk(&inner, &envelope->chunk);
		break;
	case ENVELOPE_OUTPUT_TAKEN:
		put_number(&inner, 1, envelope->request_id);
		put_number(&inner, 2, envelope->taken);
		break;
	case ENVELOPE_OUTPUT_STOP:
		put_number(&inner, 1, envelope->request_id);
		break;
	case ENVELOPE_SETTINGS:
		put_number(&inner, 1, envelope->settings.heartbeat_ms);
		put_number(&inner, 2, envelope->settings.metrics_ms);
		put_text(&inner, 3, envelope->settings.container_runtime);
		put_number(&inner, 4, envelope->settings.sign_in);
		break;
	default:
		return;
	}
	put_bytes(buffer, (uint64_t)envelope->kind, inner.data, inner.size);
	buffer_free(&inner);
}

/* A field as it was read: a number, or bytes. */
struct field {
	uint64_t number;
	int64_t value;
	struct text bytes;
};

static bool get_varint(struct text *data, uint64_t *value)
{
	*value = 0;
	for (int shift = 0; shift < 64 && data->size > 0; shift += 7) {
		uint8_t byte = (uint8_t)*data->data;
		*data = text_from(*data, 1);
		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

static bool get_bytes(struct text *data, size_t size, struct text *bytes)
{
	if (size > data->size)
		return false;
	*bytes = (struct text){ data->data, size };
	*data = text_from(*data, size);
	return true;
}

static bool get_field(struct text *data, struct field *field)
{
	uint64_t head, value = 0;

	*field = (struct field){ 0 };
	if (!get_varint(data, &head))
		return false;
	field->number = head >> 3;
	switch (head & 7) {
	case WIRE_VARINT:
		if (!get_varint(data, &value))
			return false;
		field->value = (int64_t)value;
		return true;
	case WIRE_BYTES:
		return get_varint(data, &value) && get_bytes(data, value, &field->bytes);
	case WIRE_FIXED64:
		return get_bytes(data, 8, &field->bytes);
	case WIRE_FIXED32:
		return get_bytes(data, 4, &field->bytes);
	default:
		return false;
	}
}

static bool decode_request(struct text data, struct output_request *request)
{
	struct field field;

	while (data.size > 0) {
		if (!get_field(&data, &field))
			return false;
		switch (field.number) {
		case 1:
			request->request_id = field.value;
			break;
		case 2:
			request->reservation_id = field.value;
			break;
		case 3:
			request->job_id = field.value;
			break;
		case 4:
			request->task = field.value;
			break;
		case 5:
			request->follow = field.value != 0;
			break;
		case 6:
			request->offset = field.value;
			break;
		case 7:
			request->errors = field.value != 0;
			break;
		case 8:
			request->window = field.value;
			break;
		default:
			break;
		}
	}
	return true;
}

static bool decode_chunk(struct text data, struct output_chunk *chunk)
{
	struct field field;

	while (data.size > 0) {
		if (!get_field(&data, &field))
			return false;
		switch (field.number) {
		case 1:
			chunk->request_id = field.value;
			break;
		case 2:
			chunk->offset = field.value;
			break;
		case 3:
			chunk->data = field.bytes;
			break;
		case 4:
			chunk->end = field.value != 0;
			break;
		case 5:
			chunk->error = field.bytes;
			break;
		default:
			break;
		}
	}
	return true;
}

static bool decode_taken(struct text data, struct envelope *envelope)
{
	struct field field;

	while (data.size > 0) {
		if (!get_field(&data, &field))
			return false;
		if (field.number == 1)
			envelope->request_id = field.value;
		else if (field.number == 2)
			envelope->taken = field.value;
	}
	return true;
}

static bool decode_settings(struct text data, struct told_settings *settings)
{
	struct field field;

	while (data.size > 0) {
		if (!get_field(&data, &field))
			return false;
		if (field.number == 1)
			settings->heartbeat_ms = field.value;
		else if (field.number == 2)
			settings->metrics_ms = field.value;
		else if (field.number == 3)
			settings->container_runtime = field.bytes;
		else if (field.number == 4)
			settings->sign_in = field.value != 0;
	}
	return true;
}

bool envelope_decode(struct text data, struct envelope *envelope)
{
	struct field field;
	bool good = true;

	*envelope = (struct envelope){ 0 };
	while (good && data.size > 0) {
		if (!get_field(&data, &field))
			return false;
		if (field.number < ENVELOPE_MESSAGE || field.number > ENVELOPE_SETTINGS)
			continue;
		/* Of those that exclude each other the last one counts. */
		*envelope = (struct envelope){ .kind = (enum envelope_kind)field.number };
		if (field.number == ENVELOPE_MESSAGE)
			envelope->message = field.bytes;
		else if (field.number == ENVELOPE_OUTPUT_REQUEST)
			good = decode_request(field.bytes, &envelope->request);
		else if (field.number == ENVELOPE_OUTPUT_CHUNK)
			good = decode_chunk(field.bytes, &envelope->chunk);
		else if (field.number == ENVELOPE_SETTINGS)
			good = decode_settings(field.bytes, &envelope->settings);
		else
			good = decode_taken(field.bytes, envelope);
	}
	return good;
}
