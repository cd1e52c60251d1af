/* kubeconfig.h - where the API server is, and who we are there */
#ifndef KUBE_KUBECONFIG_H
#define KUBE_KUBECONFIG_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

/* The cluster and the user of one context. Texts are owned; NULL: not given. A file and the data
 * that would be in it: the data counts. */
struct kubeconfig {
	char *server, *server_name, *ca_file, *ca_pem;
	bool trust_all;
	char *cert_file, *cert_pem, *key_file, *key_pem, *token, *token_file;
	json_t *exec; /* command, args, env, apiVersion: prints credentials */
	char *namespace;
};

/* Of the context with that name; "": the current one. `directory`: that of the file, to which
 * relative paths are; "" or with a '/' at its end. False with a reason. Passwords and the providers
 * that Kubernetes has dropped are refused. */
bool kubeconfig_read(const char *text, size_t size, const char *context, const char *directory,
                     struct kubeconfig *config, struct error *error);
/* Of a pod in the cluster: the environment's host and port, and the files of its account. */
bool kubeconfig_in_cluster(const char *host, const char *port, const char *directory,
                           struct kubeconfig *config, struct error *error);
#define KUBECONFIG_ACCOUNT_DIRECTORY "/var/run/secrets/kubernetes.io/serviceaccount"
void kubeconfig_free(struct kubeconfig *config);

/* What an `exec` command printed: an ExecCredential. Texts are owned, NULL: not given. */
struct exec_credential {
	char *token, *cert_pem, *key_pem;
	int64_t expires_ms; /* 0: not known */
};
bool exec_credential_read(const char *text, size_t size, struct exec_credential *credential,
                          struct error *error);
void exec_credential_free(struct exec_credential *credential);

#endif
