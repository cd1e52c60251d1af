/* plugin.c - a device plugin that gives every container the same answer */
#include "agent/kubelet/plugin.h"

#include <kubelet.pb-c.h>
#include <stdlib.h>
#include <string.h>

#include "agent/host/file.h"
#include "agent/kubelet/given.h"
#include "agent/kubelet/reply.h"
#include "base/log.h"

#define SERVICE "v1beta1.DevicePlugin"
enum { CONTAINERS_MAX = 256 };

struct plugin {
	struct plugin_settings settings;
	struct arena arena;
	char *endpoint, *registration;
	struct buffer listed; /* the one message of ListAndWatch */
	struct sockets *sockets;
};

/* Names of devices mean nothing. */
static void list_devices_of(struct plugin *plugin)
{
	Kubelet__CountedDevices list = KUBELET__COUNTED_DEVICES__INIT;
	size_t count = (size_t)plugin->settings.count;
	Kubelet__CountedDevice *devices = memory_zero(count + 1, sizeof(*devices));

	list.devices = memory_zero(count + 1, sizeof(*list.devices));
	for (size_t i = 0; i < count; i++) {
		char *name = file_path("any-%zu", i);
		kubelet__counted_device__init(&devices[i]);
		devices[i].id = arena_string(&plugin->arena, name);
		devices[i].health = (char *)"Healthy";
		list.devices[list.n_devices++] = &devices[i];
		free(name);
	}
	reply_pack(&plugin->listed, &list.base);
	free(list.devices);
	free(devices);
}

static Kubelet__Mount *mount_of(struct arena *arena, const struct cdi_mount *given)
{
	Kubelet__Mount *mount = arena_alloc(arena, sizeof(*mount));

	kubelet__mount__init(mount);
	mount->container_path = arena_string(arena, given->to);
	mount->host_path = arena_string(arena, given->from);
	mount->read_only = given->read_only;
	return mount;
}

static Kubelet__DeviceSpec *device_spec_of(struct arena *arena, const char *path)
{
	Kubelet__DeviceSpec *device = arena_alloc(arena, sizeof(*device));

	kubelet__device_spec__init(device);
	device->container_path = device->host_path = arena_string(arena, path);
	device->permissions = (char *)"rw";
	return device;
}

static void find_given(const struct plugin *plugin, struct given *given)
{
	for (int64_t i = 0; i < plugin->settings.uuid_count; i++)
		given_add(given, plugin->settings.source, plugin->settings.uuids[i]);
	given_find(given, plugin->settings.root);
}

/* Gives each container what the node gives. */
static void reply_allocated(const struct plugin *plugin, struct sockets_call *call, size_t count)
{
	Kubelet__AllocateResponse response = KUBELET__ALLOCATE_RESPONSE__INIT;
	Kubelet__ContainerAllocateResponse same = KUBELET__CONTAINER_ALLOCATE_RESPONSE__INIT;
	Kubelet__ContainerAllocateResponse *all[CONTAINERS_MAX];
	Kubelet__Mount *mounts[GIVEN_MAX];
	Kubelet__DeviceSpec *devices[GIVEN_MAX];
	struct given given = { 0 };

	find_given(plugin, &given);
	same.mounts = mounts;
	same.devices = devices;
	for (int64_t i = 0; i < given.mount_count; i++)
		mounts[same.n_mounts++] = mount_of(&given.arena, &given.mounts[i]);
	for (int64_t i = 0; i < given.device_count; i++)
		devices[same.n_devices++] = device_spec_of(&given.arena, given.devices[i]);
	response.container_responses = all;
	while (response.n_container_responses < count)
		all[response.n_container_responses++] = &same;
	reply_message(call, &response.base);
	given_free(&given);
}

static void allocate(const struct plugin *plugin, struct sockets_call *call, struct text message)
{
	Kubelet__AllocateRequest *request =
	    kubelet__allocate_request__unpack(NULL, message.size, (const uint8_t *)message.data);

	if (!request || request->n_container_requests > CONTAINERS_MAX)
		sockets_refuse(call, GRPC_INVALID_ARGUMENT, "the request cannot be read");
	else
		reply_allocated(plugin, call, request->n_container_requests);
	if (request)
		kubelet__allocate_request__free_unpacked(request, NULL);
}

static void plugin_called(void *context, struct sockets_call *call, bool registration,
                          const char *service, const char *method, struct text message)
{
	static char *versions[] = { "v1beta1" };
	struct plugin *plugin = context;
	struct reply_plugin named = { "DevicePlugin", plugin->settings.resource, plugin->endpoint,
		                      versions, 1 };

	if (registration)
		reply_registration(call, &named, service, method, message);
	else if (strcmp(service, SERVICE) == 0 && strcmp(method, "Allocate") == 0)
		allocate(plugin, call, message);
	else if (strcmp(service, SERVICE) == 0 && strcmp(method, "GetDevicePluginOptions") == 0)
		sockets_reply(call, (struct text){ "", 0 }); /* none is wanted */
	else
		sockets_refuse(call, GRPC_UNIMPLEMENTED, "");
}

static void plugin_keep(struct plugin *plugin, const struct plugin_settings *settings)
{
	const char **uuids =
	    arena_alloc(&plugin->arena, ((size_t)settings->uuid_count + 1) * sizeof(*uuids));

	plugin->settings = *settings;
	for (int64_t i = 0; i < settings->uuid_count; i++)
		uuids[i] = arena_string(&plugin->arena, settings->uuids[i]);
	plugin->settings.uuids = uuids;
	/* "nvidia.com/gpu" is no name of a file. */
	char *name = memory_text(settings->resource);
	for (char *slash = strchr(name, '/'); slash; slash = strchr(slash, '/'))
		*slash = '-';
	plugin->endpoint =
	    file_path("%s/plugins/%s/plugin.sock", settings->kubelet_directory, name);
	plugin->registration =
	    file_path("%s/plugins_registry/%s-reg.sock", settings->kubelet_directory, name);
	free(name);
}

struct plugin *plugin_new(const struct plugin_settings *settings, struct error *error)
{
	struct plugin *plugin = NEW(struct plugin);

	INVARIANT(settings->count >= 0 && settings->uuid_count >= 0);
	plugin_keep(plugin, settings);
	list_devices_of(plugin);
	plugin->sockets = sockets_new(
	    &(struct sockets_settings){ .loop = settings->loop,
	                                .registration_path = plugin->registration,
	                                .service_path = plugin->endpoint,
	                                .stream_method = "ListAndWatch",
	                                .stream = { plugin->listed.data, plugin->listed.size },
	                                .called = plugin_called,
	                                .context = plugin },
	    error);
	if (!plugin->sockets) {
		plugin_free(plugin);
		return NULL;
	}
	log_at(LOG_INFO, "containers may ask for GPUs by a device plugin",
	       LOG_TEXT("resource", settings->resource), LOG_NUMBER("count", settings->count));
	return plugin;
}

void plugin_free(struct plugin *plugin)
{
	if (!plugin)
		return;
	sockets_free(plugin->sockets);
	arena_free(&plugin->arena);
	buffer_free(&plugin->listed);
	free(plugin->endpoint);
	free(plugin->registration);
	free(plugin);
}
