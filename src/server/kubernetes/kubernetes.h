/* kubernetes.h - pods of a Kubernetes cluster, beside the other ways into the service */
#ifndef SERVER_KUBERNETES_KUBERNETES_H
#define SERVER_KUBERNETES_KUBERNETES_H

#include "api/engine/engine_port.h"
#include "server/settings/config.h"

/* In the loop's thread only. */
struct kubernetes;

/* Takes its place before the engine's listener, so after the service. The config lives as long.
 * NULL with a reason, such as a kubeconfig that cannot be read. */
struct kubernetes *kubernetes_new(struct engine_port *port, const struct config *config,
                                  struct error *error);
/* The engine leads: watches begin. */
void kubernetes_begin(struct kubernetes *kubernetes);
/* Nothing is sent any more; its handles are closed. */
void kubernetes_stop(struct kubernetes *kubernetes);
/* After the loop has run to its end. */
void kubernetes_free(struct kubernetes *kubernetes);

#endif
