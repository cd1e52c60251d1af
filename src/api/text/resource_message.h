/* resource_message.h - resources as messages of protobuf, read and written by their tables */
#ifndef API_TEXT_RESOURCE_MESSAGE_H
#define API_TEXT_RESOURCE_MESSAGE_H

#include <protobuf-c/protobuf-c.h>

#include "base/memory.h"
#include "resource/resource.h"
#include "wire/text/json_scan.h"
#include "wire/text/json_writer.h"

/* A row's numbers name its fields in the messages. Both directions pass through the JSON of
 * REST, so that the rules, the sentences and the values of a field exist once. */

/* Writes the fields of a request's message as one JSON object, as a request to REST would give
 * them. A published field without presence counts as left out if it is 0, false or empty; -1 is
 * null where a change may remove a number. False
 * with REST's sentence if a value has no form in JSON, or if a field is there in both of its
 * forms; the JSON is then incomplete. */
bool resource_message_read(const struct resource *resource, const ProtobufCMessage *message,
                           struct json_writer *json, struct error *error);

/* The message that shows a resource, in the arena, made of REST's JSON object at the scan's
 * place. Members without a field, and values of another kind than their field's, are left out.
 * NULL if it is not an object or not JSON. */
ProtobufCMessage *resource_message_write(const struct resource *resource,
                                         const ProtobufCMessageDescriptor *type,
                                         struct json_scan *scan, struct arena *arena);

#endif
