/* client_tls.c - TLS on the way to an API server */
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "apiserver/client_local.h"

static bool client_tls_fail(struct error *error, const char *what)
{
	unsigned long code = ERR_get_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error();
	return error_set(error, ERROR_UNAVAILABLE, "%s: %s", what, reason ? reason : "TLS failed");
}

static bool trust(SSL_CTX *context, const char *pem, struct error *error)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);
	X509 *certificate;
	int count = 0;

	while (bio && (certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
		X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate);
		X509_free(certificate);
		count++;
	}
	BIO_free(bio);
	ERR_clear_error();
	return count > 0 || error_set(error, ERROR_INVALID,
	                              "the certificate authority of the API server cannot be read");
}

/* The first certificate is ours, the others lead from it to an authority. */
static bool show_certificate(SSL_CTX *context, const char *pem, struct error *error)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);
	X509 *certificate = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
	bool good = certificate && SSL_CTX_use_certificate(context, certificate) == 1;

	X509_free(certificate);
	while (good && (certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL)))
		if (SSL_CTX_add_extra_chain_cert(context, certificate) != 1)
			X509_free(certificate);
	BIO_free(bio);
	return good ? (ERR_clear_error(), true)
	            : client_tls_fail(error, "the client certificate cannot be read");
}

static bool show_key(SSL_CTX *context, const char *pem, struct error *error)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);
	EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
	bool good = key && SSL_CTX_use_PrivateKey(context, key) == 1;

	EVP_PKEY_free(key);
	BIO_free(bio);
	return good || client_tls_fail(error, "the key of the client certificate cannot be used");
}

SSL_CTX *client_tls_context(const struct client_settings *settings, struct error *error)
{
	static const unsigned char protocols[] = "\x02h2";
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	bool good = context != NULL;

	if (!context) {
		client_tls_fail(error, "TLS cannot be used");
		return NULL;
	}
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_verify(context, settings->trust_all ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_alpn_protos(context, protocols, sizeof(protocols) - 1);
	if (settings->ca_pem)
		good = trust(context, settings->ca_pem, error);
	else if (!settings->trust_all && SSL_CTX_set_default_verify_paths(context) != 1)
		good = client_tls_fail(error, "the certificates to trust cannot be read");
	if (good && settings->cert_pem)
		good = show_certificate(context, settings->cert_pem, error);
	if (good && settings->key_pem)
		good = show_key(context, settings->key_pem, error);
	if (good)
		return context;
	SSL_CTX_free(context);
	return NULL;
}

/* What TLS wants on the wire. */
static void client_tls_pass(struct client_connection *connection)
{
	char data[16384];
	int size;

	while (connection->ssl &&
	       (size = BIO_read(SSL_get_wbio(connection->ssl), data, sizeof(data))) > 0)
		client_write(connection, data, (size_t)size);
}

/* True: no error, ready or not. */
static bool client_tls_shake(struct client_connection *connection, struct error *error)
{
	SSL *ssl = connection->ssl;
	int done = SSL_do_handshake(ssl);
	int reason = SSL_get_error(ssl, done);

	client_tls_pass(connection);
	if (done == 1)
		return client_ready(connection, error);
	if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE)
		return true;
	long verified = SSL_get_verify_result(ssl);
	if (verified != X509_V_OK)
		return error_set(error, ERROR_FORBIDDEN,
		                 "the API server's certificate is not trusted: %s",
		                 X509_verify_cert_error_string(verified));
	return client_tls_fail(error, "the TLS handshake failed");
}

bool client_tls_begin(struct client_connection *connection, struct error *error)
{
	const struct client *client = connection->client;
	const char *name = client->server_name ? client->server_name : client->host;
	SSL *ssl = SSL_new(client->context);

	if (!ssl)
		return client_tls_fail(error, "TLS cannot be used");
	connection->ssl = ssl;
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_set_connect_state(ssl);
	if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) != 1) {
		SSL_set1_host(ssl, name);
		SSL_set_tlsext_host_name(ssl, name);
	}
	return client_tls_shake(connection, error);
}

bool client_tls_receive(struct client_connection *connection, const void *data, size_t size,
                        struct error *error)
{
	static char clear[65536];
	int got = 0;

	if (BIO_write(SSL_get_rbio(connection->ssl), data, (int)size) != (int)size)
		return client_tls_fail(error, "TLS cannot take what was received");
	if (connection->stage == CLIENT_SECURING && !client_tls_shake(connection, error))
		return false;
	if (connection->stage != CLIENT_OPEN)
		return true;
	while (connection->client && (got = SSL_read(connection->ssl, clear, sizeof(clear))) > 0)
		if (!client_http2_receive(connection, clear, (size_t)got, error))
			return false;
	if (!connection->client)
		return true;
	int reason = SSL_get_error(connection->ssl, got);
	if (reason == SSL_ERROR_ZERO_RETURN)
		return error_set(error, ERROR_UNAVAILABLE, "closed by the API server");
	if (reason != SSL_ERROR_WANT_READ)
		return client_tls_fail(error, "what was received is not TLS");
	client_tls_pass(connection);
	return true;
}

bool client_tls_send(struct client_connection *connection, const void *data, size_t size,
                     struct error *error)
{
	if (SSL_write(connection->ssl, data, (int)size) != (int)size)
		return client_tls_fail(error, "TLS cannot seal what is sent");
	client_tls_pass(connection);
	return true;
}
