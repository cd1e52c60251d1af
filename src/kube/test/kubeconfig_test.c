/* kubeconfig_test.c - what kubectl reads is read, and what is not supported is refused by name */
#include "kube/kubeconfig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HEAD                                                                                       \
	"apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts:\n"                         \
	"- {name: here, context: {cluster: c, user: u, namespace: n}}\n"                           \
	"- {name: there, context: {cluster: d, user: u}}\n"                                        \
	"clusters:\n- name: c\n  cluster: {server: 'https://a:6443', "                             \
	"certificate-authority-data: Q0E=}\n- name: d\n  cluster:\n    server: https://b\n"        \
	"    certificate-authority: pki/ca.crt\n"

static bool read_text(const char *text, const char *context, struct kubeconfig *config,
                      struct error *error)
{
	return kubeconfig_read(text, strlen(text), context, "/etc/kubernetes/", config, error);
}

static void the_current_context_names_cluster_and_user(void **state)
{
	struct kubeconfig config;
	struct error error;
	(void)state;

	assert_true(
	    read_text(HEAD "users:\n- name: u\n  user: {token: secret}\n", "", &config, &error));
	assert_string_equal(config.server, "https://a:6443");
	assert_string_equal(config.ca_pem, "CA");
	assert_string_equal(config.token, "secret");
	assert_string_equal(config.namespace, "n");
	kubeconfig_free(&config);
}

static void another_context_can_be_named_and_its_paths_are_beside_the_file(void **state)
{
	struct kubeconfig config;
	struct error error;
	(void)state;

	assert_true(read_text(HEAD "users:\n- name: u\n  user:\n    client-certificate: /me.crt\n"
	                           "    client-key: me.key\n",
	                      "there", &config, &error));
	assert_string_equal(config.server, "https://b");
	assert_string_equal(config.ca_file, "/etc/kubernetes/pki/ca.crt");
	assert_string_equal(config.cert_file, "/me.crt");
	assert_string_equal(config.key_file, "/etc/kubernetes/me.key");
	kubeconfig_free(&config);
}

static void kubeconfig_is_refused(const char *text, const char *reason)
{
	struct kubeconfig config;
	struct error error;

	assert_false(read_text(text, "", &config, &error));
	assert_string_equal(error.text, reason);
	assert_null(config.server);
}

static void what_is_not_supported_is_named(void **state)
{
	(void)state;
	kubeconfig_is_refused(
	    HEAD "users:\n- name: u\n  user: {username: me, password: secret}\n",
	    "the user has 'username', which is not supported: use a certificate, a token or "
	    "exec");
	kubeconfig_is_refused(HEAD "users: []\n", "there is no entry 'u' in users");
	kubeconfig_is_refused(HEAD "users:\n- name: u\n  user: {client-key-data: '###'}\n",
	                      "client-key-data is not base64");
	kubeconfig_is_refused("a: &b c\nd: *b\n", "line 2: anchors and aliases are not taken");
	kubeconfig_is_refused("a: [\n",
	                      "line 2: this is not YAML: did not find expected node content");
}

static void a_pod_uses_the_account_that_was_mounted(void **state)
{
	struct kubeconfig config;
	struct error error;
	(void)state;

	assert_true(kubeconfig_in_cluster("fd00::1", "443", "/account", &config, &error));
	assert_string_equal(config.server, "https://[fd00::1]:443");
	assert_string_equal(config.token_file, "/account/token");
	kubeconfig_free(&config);
	assert_false(kubeconfig_in_cluster(NULL, NULL, "/account", &config, &error));
}

static void what_an_exec_command_prints_is_read(void **state)
{
	struct exec_credential credential;
	struct error error;
	const char *text = "{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\","
			   "\"expirationTimestamp\":\"1970-01-01T00:00:05Z\"}}";
	(void)state;

	assert_true(exec_credential_read(text, strlen(text), &credential, &error));
	assert_string_equal(credential.token, "t");
	assert_int_equal(credential.expires_ms, 5000);
	exec_credential_free(&credential);
	assert_false(exec_credential_read("{}", 2, &credential, &error));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_current_context_names_cluster_and_user),
		cmocka_unit_test(another_context_can_be_named_and_its_paths_are_beside_the_file),
		cmocka_unit_test(what_is_not_supported_is_named),
		cmocka_unit_test(a_pod_uses_the_account_that_was_mounted),
		cmocka_unit_test(what_an_exec_command_prints_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
