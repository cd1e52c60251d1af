/* sockets.h - the two UNIX sockets by which a kubelet finds a driver and calls it */
#ifndef AGENT_KUBELET_SOCKETS_H
#define AGENT_KUBELET_SOCKETS_H

#include <uv.h>

#include "base/error.h"
#include "base/text.h"
#include "wire/grpc.h"

/* gRPC, served by a thread of its own. Calls are told in the thread of `loop`, never from within a
 * call here. */
struct sockets;

/* A call that has not been answered. */
struct sockets_call;

struct sockets_settings {
	uv_loop_t *loop;
	const char *registration_path, *service_path; /* directories are made */
	/* Of other calls. `service` and `method` as in the path of the call: "v1.Service",
	 * "Method". The call is answered by sockets_reply() or sockets_refuse(), now or later. */
	/* A method that answers with a stream: this one message, and then nothing until the caller
	 * hangs up. NULL: there is none. The text lives as long as the sockets. */
	const char *stream_method;
	struct text stream;
	void (*called)(void *context, struct sockets_call *call, bool registration,
	               const char *service, const char *method, struct text message);
	void *context;
};

/* Listens. NULL with a reason. */
struct sockets *sockets_new(const struct sockets_settings *settings, struct error *error);
/* Removes both sockets. Calls that have no answer end with UNAVAILABLE; they may not be answered
 * any more. Freed when the loop has closed its handle. */
void sockets_free(struct sockets *sockets);

void sockets_reply(struct sockets_call *call, struct text message);
void sockets_refuse(struct sockets_call *call, enum grpc_status status, const char *reason);

#endif
