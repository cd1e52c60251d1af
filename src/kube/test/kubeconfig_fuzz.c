/* kubeconfig_fuzz.c - kubeconfigs, YAML and ExecCredentials of any kind: read or refused with a
 * reason */
#include "kube/kubeconfig.h"

#include <stdint.h>
#include <string.h>

#include "kube/yaml_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kubeconfig config;
	struct exec_credential credential;
	struct error error = { 0 };

	json_t *value = yaml_read((const char *)data, size, &error);
	INVARIANT(value || error.text[0]);
	json_decref(value);
	if (kubeconfig_read((const char *)data, size, "", "/etc/", &config, &error)) {
		INVARIANT(config.server);
		kubeconfig_free(&config);
	}
	if (exec_credential_read((const char *)data, size, &credential, &error)) {
		INVARIANT(credential.token || credential.cert_pem);
		exec_credential_free(&credential);
	}
	return 0;
}
