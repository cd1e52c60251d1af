/* reply.h - messages of protobuf as answers to calls of a kubelet */
#ifndef AGENT_KUBELET_REPLY_H
#define AGENT_KUBELET_REPLY_H

#include <protobuf-c/protobuf-c.h>

#include "agent/kubelet/sockets.h"
#include "base/buffer.h"

/* Appends the bytes of a message. */
void reply_pack(struct buffer *buffer, const ProtobufCMessage *message);
void reply_message(struct sockets_call *call, const ProtobufCMessage *message);
/* Answers the calls by which a kubelet gets to know a plugin. True if it has just said that the
 * plugin is registered. */
struct reply_plugin {
	const char *type, *name, *endpoint; /* "DRAPlugin" */
	char **versions;
	size_t version_count;
};
bool reply_registration(struct sockets_call *call, const struct reply_plugin *plugin,
                        const char *service, const char *method, struct text message);

#endif
