/* kubeconfig.c - where the API server is, and who we are there */
#include "kube/kubeconfig.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "kube/yaml_text.h"
#include "json/member.h"

static char *text_or_null(const json_t *object, const char *name)
{
	const char *text = member_text(object, name);

	return *text ? memory_text(text) : NULL;
}

static char *path_or_null(const json_t *object, const char *name, const char *directory)
{
	const char *text = member_text(object, name);
	struct buffer path = { 0 };

	if (!*text)
		return NULL;
	buffer_print(&path, "%s%s", *text == '/' ? "" : directory, text);
	return path.data;
}

static int base64_value(char letter)
{
	static const char letters[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = letter ? strchr(letters, letter) : NULL;

	return at ? (int)(at - letters) : -1;
}

/* Text in base64, which has no NUL; false if it is not. */
static bool decode(const char *text, char **out)
{
	struct buffer data = { 0 };
	unsigned bits = 0;
	int count = 0;
	bool right = true;

	for (; right && *text && *text != '='; text++) {
		int value = base64_value(*text);
		if (strchr(" \t\r\n", *text))
			continue;
		right = value >= 0;
		bits = bits << 6 | (unsigned)(value & 63);
		count += 6;
		if (count >= 8) {
			char byte = (char)(bits >> (count - 8) & 0xff);
			count -= 8;
			right = right && byte != '\0';
			buffer_bytes(&data, &byte, 1);
		}
	}
	right = right && strspn(text, "= \t\r\n") == strlen(text);
	buffer_text(&data, "");
	if (right)
		*out = data.data;
	else
		buffer_free(&data);
	return right;
}

static bool data_or_null(const json_t *object, const char *name, char **out, struct error *error)
{
	const char *text = member_text(object, name);

	return !*text || decode(text, out) ||
	       error_set(error, ERROR_INVALID, "%s is not base64", name);
}

/* The object under `key` of the entry with that name in a list. */
static const json_t *named(const json_t *file, const char *list, const char *key, const char *name,
                           struct error *error)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(file, list), i,
	                   entry) if (strcmp(member_text(entry, "name"), name) ==
	                              0) return json_object_get(entry, key);
	error_set(error, ERROR_INVALID, "there is no entry '%.80s' in %s", name, list);
	return NULL;
}

static bool take_cluster(struct kubeconfig *config, const json_t *cluster, const char *directory,
                         struct error *error)
{
	config->server = text_or_null(cluster, "server");
	config->server_name = text_or_null(cluster, "tls-server-name");
	config->ca_file = path_or_null(cluster, "certificate-authority", directory);
	config->trust_all = member_flag(cluster, "insecure-skip-tls-verify");
	if (!config->server)
		return error_set(error, ERROR_INVALID, "the cluster names no server");
	if (*member_text(cluster, "proxy-url"))
		return error_set(error, ERROR_INVALID, "proxy-url is not supported");
	return data_or_null(cluster, "certificate-authority-data", &config->ca_pem, error);
}

static bool take_user(struct kubeconfig *config, const json_t *user, const char *directory,
                      struct error *error)
{
	static const char *const refused[] = { "username", "auth-provider", "as", NULL };
	const char *wrong = member_first(user, refused);

	if (wrong)
		return error_set(error, ERROR_INVALID,
		                 "the user has '%s', which is not supported: use a certificate, a "
		                 "token or exec",
		                 wrong);
	config->cert_file = path_or_null(user, "client-certificate", directory);
	config->key_file = path_or_null(user, "client-key", directory);
	config->token = text_or_null(user, "token");
	config->token_file = path_or_null(user, "tokenFile", directory);
	config->exec = json_incref(json_object_get(user, "exec"));
	if (config->exec && !*member_text(config->exec, "command"))
		return error_set(error, ERROR_INVALID, "exec names no command");
	return data_or_null(user, "client-certificate-data", &config->cert_pem, error) &&
	       data_or_null(user, "client-key-data", &config->key_pem, error);
}

bool kubeconfig_read(const char *text, size_t size, const char *context, const char *directory,
                     struct kubeconfig *config, struct error *error)
{
	json_t *file = yaml_read(text, size, error);
	const json_t *chosen, *cluster = NULL, *user = NULL;

	*config = (struct kubeconfig){ 0 };
	if (!file)
		return false;
	if (!*context)
		context = member_text(file, "current-context");
	chosen = *context ? named(file, "contexts", "context", context, error) : NULL;
	if (!*context)
		error_set(error, ERROR_INVALID, "there is no current-context");
	if (chosen)
		cluster = named(file, "clusters", "cluster", member_text(chosen, "cluster"), error);
	if (cluster)
		user = named(file, "users", "user", member_text(chosen, "user"), error);
	bool right = user && take_cluster(config, cluster, directory, error) &&
	             take_user(config, user, directory, error);
	if (right)
		config->namespace = text_or_null(chosen, "namespace");
	else
		kubeconfig_free(config);
	json_decref(file);
	return right;
}

static char *in_directory(const char *directory, const char *name)
{
	struct buffer path = { 0 };

	buffer_print(&path, "%s/%s", directory, name);
	return path.data;
}

bool kubeconfig_in_cluster(const char *host, const char *port, const char *directory,
                           struct kubeconfig *config, struct error *error)
{
	struct buffer server = { 0 };

	*config = (struct kubeconfig){ 0 };
	if (!host || !*host || !port || !*port)
		return error_set(error, ERROR_INVALID,
		                 "this is not a pod of a cluster (KUBERNETES_SERVICE_HOST is not "
		                 "set): name a kubeconfig");
	buffer_print(&server, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
	config->server = server.data;
	config->ca_file = in_directory(directory, "ca.crt");
	config->token_file = in_directory(directory, "token");
	return true;
}

static void free_secret(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

void kubeconfig_free(struct kubeconfig *config)
{
	free(config->server);
	free(config->server_name);
	free(config->ca_file);
	free(config->ca_pem);
	free(config->cert_file);
	free(config->cert_pem);
	free(config->key_file);
	free_secret(config->key_pem);
	free_secret(config->token);
	free(config->token_file);
	free(config->namespace);
	json_decref(config->exec);
	*config = (struct kubeconfig){ 0 };
}

bool exec_credential_read(const char *text, size_t size, struct exec_credential *credential,
                          struct error *error)
{
	json_error_t reason;
	json_t *object = json_loadb(text, size, 0, &reason);
	const json_t *status = json_object_get(object, "status");

	*credential = (struct exec_credential){ 0 };
	if (strcmp(member_text(object, "kind"), "ExecCredential") != 0) {
		json_decref(object);
		return error_set(error, ERROR_INVALID,
		                 "the exec command did not print an ExecCredential");
	}
	credential->token = text_or_null(status, "token");
	credential->cert_pem = text_or_null(status, "clientCertificateData");
	credential->key_pem = text_or_null(status, "clientKeyData");
	int64_t expires_ms = member_moment(status, "expirationTimestamp");
	credential->expires_ms = expires_ms > 0 ? expires_ms : 0;
	json_decref(object);
	if (credential->token || (credential->cert_pem && credential->key_pem))
		return true;
	exec_credential_free(credential);
	return error_set(error, ERROR_INVALID,
	                 "the exec command printed neither a token nor a certificate with its key");
}

void exec_credential_free(struct exec_credential *credential)
{
	free_secret(credential->token);
	free(credential->cert_pem);
	free_secret(credential->key_pem);
	*credential = (struct exec_credential){ 0 };
}
