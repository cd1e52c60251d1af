/* upstream_tls.c - TLS to the server of a model, which is known by its certificate's digest */
#include "gateway/upstream_tls.h"

#include <limits.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum { DIGEST_BYTES = 32 };

struct upstream_tls {
	SSL *ssl;
};

SSL_CTX *upstream_tls_new(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());

	INVARIANT(context); /* of memory alone */
	SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
	/* The digest is compared after the handshake, before a byte is sent. */
	SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
	return context;
}

struct upstream_tls *upstream_tls_begin(SSL_CTX *context)
{
	struct upstream_tls *tls = NEW(struct upstream_tls);

	tls->ssl = SSL_new(context);
	INVARIANT(tls->ssl);
	SSL_set_bio(tls->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_set_connect_state(tls->ssl);
	return tls;
}

void upstream_tls_end(struct upstream_tls *tls)
{
	SSL_free(tls->ssl);
	free(tls);
}

static bool shows(const struct upstream_tls *tls, const char *certificate)
{
	X509 *shown = SSL_get1_peer_certificate(tls->ssl);
	unsigned char digest[EVP_MAX_MD_SIZE];
	char text[2 * DIGEST_BYTES + 1] = "";
	unsigned size = 0;

	if (shown && X509_digest(shown, EVP_sha256(), digest, &size) == 1 && size == DIGEST_BYTES)
		for (size_t i = 0; i < DIGEST_BYTES; i++)
			snprintf(text + 2 * i, 3, "%02x", digest[i]);
	X509_free(shown);
	return text[0] && strcmp(text, certificate) == 0;
}

enum upstream_tls_state upstream_tls_shake(struct upstream_tls *tls, const char *certificate,
                                           const char **why)
{
	ERR_clear_error();
	int done = SSL_do_handshake(tls->ssl);
	int reason = done == 1 ? SSL_ERROR_NONE : SSL_get_error(tls->ssl, done);

	ERR_clear_error();
	if (done == 1 && shows(tls, certificate))
		return UPSTREAM_TLS_OPEN;
	if (reason == SSL_ERROR_WANT_READ)
		return UPSTREAM_TLS_SHAKES;
	*why = done == 1 ? "the node's certificate is not the one that the scheduler knows"
	                 : "the TLS handshake failed";
	return UPSTREAM_TLS_FAILED;
}

bool upstream_tls_receive(struct upstream_tls *tls, struct text sealed)
{
	INVARIANT(sealed.size <= INT_MAX);
	return BIO_write(SSL_get_rbio(tls->ssl), sealed.data, (int)sealed.size) == (int)sealed.size;
}

int upstream_tls_read(struct upstream_tls *tls, char *clear, size_t size)
{
	INVARIANT(size <= INT_MAX);
	ERR_clear_error();
	int got = SSL_read(tls->ssl, clear, (int)size);
	int reason = got > 0 ? SSL_ERROR_NONE : SSL_get_error(tls->ssl, got);

	ERR_clear_error();
	return got > 0                           ? got
	       : reason == SSL_ERROR_WANT_READ   ? 0
	       : reason == SSL_ERROR_ZERO_RETURN ? -1
	                                         : -2;
}

bool upstream_tls_write(struct upstream_tls *tls, struct text clear)
{
	INVARIANT(clear.size <= INT_MAX);
	ERR_clear_error();
	return clear.size == 0 ||
	       SSL_write(tls->ssl, clear.data, (int)clear.size) == (int)clear.size;
}

bool upstream_tls_is_quiet(const struct upstream_tls *tls)
{
	return SSL_has_pending(tls->ssl) == 0 && BIO_ctrl_pending(SSL_get_rbio(tls->ssl)) == 0;
}

void upstream_tls_take(struct upstream_tls *tls, struct buffer *sealed)
{
	BIO *bio = SSL_get_wbio(tls->ssl);
	char piece[4096];
	int got;

	while ((got = BIO_read(bio, piece, sizeof(piece))) > 0)
		buffer_bytes(sealed, piece, (size_t)got);
}
