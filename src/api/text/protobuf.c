/* protobuf.c - messages of protobuf, read from strangers and written, in an arena */
#include "api/text/protobuf.h"

#include "wire/text/utf8.h"

static void *protobuf_allocate(void *context, size_t size)
{
	return arena_alloc(context, size > 0 ? size : 1);
}

static void protobuf_leave(void *context, void *memory)
{
	(void)context;
	(void)memory;
}

static bool clean(ProtobufCMessage *message);

static bool is_good(const ProtobufCFieldDescriptor *field, void *const *value)
{
	void *pointer = *value;

	if (!pointer)
		return true;
	if (field->type == PROTOBUF_C_TYPE_STRING)
		return utf8_is_valid(text_of(pointer));
	return clean(pointer);
}

static bool is_absent_choice(const ProtobufCFieldDescriptor *field, const char *base)
{
	if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
		return false;
	return *(const uint32_t *)(const void *)(base + field->quantifier_offset) != field->id;
}

/* Checks its texts, and forgets fields that are not known, with those of what is in it. */
static bool clean(ProtobufCMessage *message)
{
	char *base = (char *)message;

	message->n_unknown_fields = 0;
	for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
		void *value = base + field->offset;
		if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		if (field->label != PROTOBUF_C_LABEL_REPEATED) {
			if (!is_absent_choice(field, base) && !is_good(field, value))
				return false;
			continue;
		}
		size_t count = *(const size_t *)(const void *)(base + field->quantifier_offset);
		void **list = *(void ***)value;
		for (size_t k = 0; k < count; k++)
			if (!is_good(field, &list[k]))
				return false;
	}
	return true;
}

void *protobuf_read(const ProtobufCMessageDescriptor *type, struct text bytes, struct arena *arena)
{
	ProtobufCAllocator allocator = { protobuf_allocate, protobuf_leave, arena };
	ProtobufCMessage *message =
	    protobuf_c_message_unpack(type, &allocator, bytes.size, (const uint8_t *)bytes.data);

	return message && clean(message) ? message : NULL;
}

struct text protobuf_write(const void *message, struct arena *arena)
{
	size_t size = protobuf_c_message_get_packed_size(message);
	uint8_t *bytes = arena_alloc(arena, size + 1);

	protobuf_c_message_pack(message, bytes);
	return (struct text){ (const char *)bytes, size };
}
