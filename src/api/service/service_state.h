/* service_state.h - the inside of the service, for the files that make it up */
#ifndef API_SERVICE_SERVICE_STATE_H
#define API_SERVICE_SERVICE_STATE_H

#include "api/read/meters.h"
#include "api/read/roster.h"
#include "api/read/serving.h"
#include "api/request/request.h"
#include "api/service/service.h"

struct agents;
struct audit;
struct billing;
struct failure_audit;
struct gateways;
struct token_uses;
struct grpc_services;
struct hub;
struct leases;
struct login;
struct misreports;
struct notify;
struct pages;
struct recorder;
struct router;
struct streams;

struct service {
	struct engine_port *port;
	struct service_settings settings; /* `version` and `metrics_path` are its own copies */
	struct billing *billing;
	char *job_recipients_only; /* of the settings, a copy */
	struct gate *gate;
	struct streams *streams;
	struct failure_audit *failure_audit;
	struct agents *agents;
	struct audit *audit;
	struct misreports *misreports;
	struct leases *leases;
	struct gateways *gateways;
	struct token_uses *token_uses;  /* tokens of models */
	struct grpc_services *services; /* of gRPC */
	struct login *login;            /* NULL: no single sign-on */
	struct notify *notify;          /* NULL: nobody is notified */
	struct hub *hub;
	struct recorder *recorder;
	struct router *router;
	struct pages *pages;
	struct roster roster;
	struct meters meters;
	struct serving serving;
	struct handler http, grpc, metrics;
	struct requests requests;
	struct buffer scratch;                 /* of one function at a time */
	int64_t node_gpus, node_gpus_until_ms; /* of the largest node, and how long that holds */
	int64_t began_ms;                      /* unix */
	bool leading;
};

static inline struct catalogue *service_catalogue(const struct service *service)
{
	return service->port->catalogue;
}
/* During long work: lets writers of the catalogue proceed. Pointers into the catalogue are invalid
 * afterwards. */
static inline void service_breathe(const struct service *service, int64_t done)
{
	if (done % 32 != 31)
		return;
	catalogue_unlock(service_catalogue(service));
	catalogue_lock(service_catalogue(service));
}
/* Milliseconds since 1970 as the core counts them: for what is compared with its records. */
int64_t service_time_ms(const struct service *service);
/* GPUs of the largest node. */
int64_t service_node_gpus(struct service *service);

/* What an order carries for the node: see agents_settings. In order_payload.c. */
bool order_task_payload(void *context, int64_t job_id, int64_t task, struct buffer *payload,
                        struct error *error);
bool order_model_payload(void *context, int64_t model_id, struct buffer *payload,
                         struct error *error);

#endif
