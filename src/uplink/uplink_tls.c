/* uplink_tls.c - TLS on the way to a scheduler */
#include <string.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "uplink/uplink_local.h"

static bool uplink_tls_fail(struct error *error, const char *what)
{
	unsigned long code = ERR_get_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error();
	return error_set(error, ERROR_UNAVAILABLE, "%s: %s", what, reason ? reason : "TLS failed");
}

bool uplink_tls_new(struct uplink *link, struct error *error)
{
	static const unsigned char protocols[] = "\x02h2";
	const struct uplink_settings *settings = &link->settings;

	link->tls = SSL_CTX_new(TLS_client_method());
	if (!link->tls)
		return uplink_tls_fail(error, "TLS cannot be used");
	SSL_CTX_set_min_proto_version(link->tls, TLS1_2_VERSION);
	SSL_CTX_set_verify(link->tls, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_alpn_protos(link->tls, protocols, sizeof(protocols) - 1);
	int trusted = settings->ca_file
	                  ? SSL_CTX_load_verify_locations(link->tls, settings->ca_file, NULL)
	                  : SSL_CTX_set_default_verify_paths(link->tls);
	if (trusted != 1)
		return uplink_tls_fail(error, "the certificates to trust cannot be read");
	if (settings->cert_file &&
	    SSL_CTX_use_certificate_chain_file(link->tls, settings->cert_file) != 1)
		return uplink_tls_fail(error, "the certificate to show cannot be read");
	if (settings->key_file &&
	    SSL_CTX_use_PrivateKey_file(link->tls, settings->key_file, SSL_FILETYPE_PEM) != 1)
		return uplink_tls_fail(error, "the certificate's key cannot be read");
	return true;
}

/* What TLS wants on the wire. */
static void pass_sealed(struct uplink *link)
{
	char data[16384];
	int size;

	while ((size = BIO_read(SSL_get_wbio(link->connection->ssl), data, sizeof(data))) > 0)
		uplink_write(link, data, (size_t)size);
}

/* True: no error, ready or not. */
static bool shake_hands(struct uplink *link, struct error *error)
{
	SSL *ssl = link->connection->ssl;
	int done = SSL_do_handshake(ssl);
	int reason = SSL_get_error(ssl, done);

	pass_sealed(link);
	if (done == 1)
		return uplink_ready(link, error);
	if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE)
		return true;
	long verified = SSL_get_verify_result(ssl);
	if (verified != X509_V_OK)
		return error_set(error, ERROR_FORBIDDEN,
		                 "the scheduler's certificate is not trusted: %s",
		                 X509_verify_cert_error_string(verified));
	return uplink_tls_fail(error, "the TLS handshake failed");
}

bool uplink_tls_begin(struct uplink *link, struct error *error)
{
	SSL *ssl = SSL_new(link->tls);
	const char *name = link->settings.server_name ? link->settings.server_name : link->host;

	if (!ssl)
		return uplink_tls_fail(error, "TLS cannot be used");
	link->connection->ssl = ssl;
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_set_connect_state(ssl);
	if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) != 1) {
		SSL_set1_host(ssl, name);
		SSL_set_tlsext_host_name(ssl, name);
	}
	return shake_hands(link, error);
}

bool uplink_tls_receive(struct uplink *link, const void *data, size_t size, struct error *error)
{
	struct uplink_connection *connection = link->connection;
	static char clear[65536];
	int got;

	if (BIO_write(SSL_get_rbio(connection->ssl), data, (int)size) != (int)size)
		return uplink_tls_fail(error, "TLS cannot take what was received");
	if (link->stage == UPLINK_SECURING && !shake_hands(link, error))
		return false;
	if (link->stage != UPLINK_OPEN)
		return true;
	while (connection->link == link &&
	       (got = SSL_read(connection->ssl, clear, sizeof(clear))) > 0)
		if (!uplink_http2_receive(link, clear, (size_t)got, error))
			return false;
	if (connection->link != link)
		return true;
	int reason = SSL_get_error(connection->ssl, got);
	if (reason == SSL_ERROR_ZERO_RETURN)
		return error_set(error, ERROR_UNAVAILABLE, "closed by the scheduler");
	if (reason != SSL_ERROR_WANT_READ)
		return uplink_tls_fail(error, "what was received is not TLS");
	pass_sealed(link);
	return true;
}

bool uplink_tls_send(struct uplink *link, const void *data, size_t size, struct error *error)
{
	if (SSL_write(link->connection->ssl, data, (int)size) != (int)size)
		return uplink_tls_fail(error, "TLS cannot seal what is sent");
	pass_sealed(link);
	return true;
}
