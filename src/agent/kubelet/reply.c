/* reply.c - messages of protobuf as answers to calls of a kubelet */
#include "agent/kubelet/reply.h"

#include <kubelet.pb-c.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"

void reply_pack(struct buffer *buffer, const ProtobufCMessage *message)
{
	size_t size = protobuf_c_message_get_packed_size(message);

	array_reserve(buffer->data, buffer->capacity, buffer->size + size + 1);
	protobuf_c_message_pack(message, (uint8_t *)buffer->data + buffer->size);
	buffer->size += size;
}

void reply_message(struct sockets_call *call, const ProtobufCMessage *message)
{
	struct buffer bytes = { 0 };

	reply_pack(&bytes, message);
	sockets_reply(call, (struct text){ bytes.data, bytes.size });
	buffer_free(&bytes);
}

static void reply_info(struct sockets_call *call, const struct reply_plugin *plugin)
{
	Kubelet__PluginInfo info = KUBELET__PLUGIN_INFO__INIT;

	/* protobuf-c only reads them, and has no const of its own. */
	info.type = (char *)plugin->type;
	info.name = (char *)plugin->name;
	info.endpoint = (char *)plugin->endpoint;
	info.supported_versions = plugin->versions;
	info.n_supported_versions = plugin->version_count;
	reply_message(call, &info.base);
}

static bool reply_status(struct sockets_call *call, const struct reply_plugin *plugin,
                         struct text message)
{
	Kubelet__RegistrationStatus *status =
	    kubelet__registration_status__unpack(NULL, message.size, (const uint8_t *)message.data);
	bool registered = status && status->plugin_registered;

	if (registered)
		log_at(LOG_INFO, "the kubelet has registered a plugin",
		       LOG_TEXT("plugin", plugin->name));
	else
		log_at(LOG_ERROR, "the kubelet has not registered a plugin",
		       LOG_TEXT("plugin", plugin->name),
		       LOG_TEXT("reason", status ? status->error : "an unreadable message"));
	if (status)
		kubelet__registration_status__free_unpacked(status, NULL);
	sockets_reply(call, (struct text){ "", 0 });
	return registered;
}

bool reply_registration(struct sockets_call *call, const struct reply_plugin *plugin,
                        const char *service, const char *method, struct text message)
{
	if (strcmp(service, "pluginregistration.Registration") == 0) {
		if (strcmp(method, "NotifyRegistrationStatus") == 0)
			return reply_status(call, plugin, message);
		if (strcmp(method, "GetInfo") == 0) {
			reply_info(call, plugin);
			return false;
		}
	}
	sockets_refuse(call, GRPC_UNIMPLEMENTED, "");
	return false;
}
