/* protobuf.h - messages of protobuf, read from strangers and written, in an arena */
#ifndef API_TEXT_PROTOBUF_H
#define API_TEXT_PROTOBUF_H

#include <protobuf-c/protobuf-c.h>

#include "base/memory.h"
#include "base/text.h"

/* The message, in the arena and never to be freed; NULL if it is malformed or has text in it
 * that is not UTF-8. Fields that are not known are left out. */
void *protobuf_read(const ProtobufCMessageDescriptor *type, struct text bytes, struct arena *arena);
/* Its bytes, in the arena. */
struct text protobuf_write(const void *message, struct arena *arena);

#endif
