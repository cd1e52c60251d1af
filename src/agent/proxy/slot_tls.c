/* slot_tls.c - TLS before a model's server */
#include "agent/proxy/slot_tls.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdlib.h>

#include "base/memory.h"

struct slot_tls {
	SSL_CTX *context;
};

struct slot_tls_link {
	SSL *ssl;
};

static bool fail_tls(struct error *error)
{
	unsigned long code = ERR_get_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error();
	return error_set(error, ERROR_INVALID,
	                 "the certificate of the slot cannot be used with its key%s%s",
	                 reason ? ": " : "", reason ? reason : "");
}

/* The first certificate is the server's, the others lead to its authority. */
static bool use_certificates(SSL_CTX *context, BIO *bio)
{
	X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL), *next;
	bool good = certificate && SSL_CTX_use_certificate(context, certificate) == 1;

	X509_free(certificate);
	while (good && (next = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL)
		if (SSL_CTX_add0_chain_cert(context, next) != 1) {
			X509_free(next);
			good = false;
		}
	if (good)
		ERR_clear_error(); /* there is no further certificate */
	return good;
}

static bool use_pem(SSL_CTX *context, struct text pem)
{
	BIO *certificates = BIO_new_mem_buf(pem.data, (int)pem.size);
	BIO *key = BIO_new_mem_buf(pem.data, (int)pem.size);
	EVP_PKEY *private_key = PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);
	bool good = private_key && use_certificates(context, certificates) &&
	            SSL_CTX_use_PrivateKey(context, private_key) == 1 &&
	            SSL_CTX_check_private_key(context) == 1;

	EVP_PKEY_free(private_key);
	BIO_free(key);
	BIO_free(certificates);
	return good;
}

struct slot_tls *slot_tls_new(struct text pem, struct error *error)
{
	struct slot_tls *tls = NEW(struct slot_tls);

	tls->context = SSL_CTX_new(TLS_server_method());
	if (tls->context && use_pem(tls->context, pem)) {
		SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
		SSL_CTX_set_options(tls->context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
		SSL_CTX_set_num_tickets(tls->context, 0);
		SSL_CTX_set_session_cache_mode(tls->context, SSL_SESS_CACHE_OFF);
		SSL_CTX_set_mode(tls->context, SSL_MODE_RELEASE_BUFFERS);
		return tls;
	}
	fail_tls(error);
	slot_tls_free(tls);
	return NULL;
}

void slot_tls_free(struct slot_tls *tls)
{
	SSL_CTX_free(tls->context);
	free(tls);
}

struct slot_tls_link *slot_tls_begin(struct slot_tls *tls)
{
	struct slot_tls_link *link = NEW(struct slot_tls_link);

	link->ssl = SSL_new(tls->context);
	INVARIANT(link->ssl); /* of memory alone */
	SSL_set_bio(link->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_set_accept_state(link->ssl);
	return link;
}

void slot_tls_end(struct slot_tls_link *link)
{
	SSL_free(link->ssl);
	free(link);
}

bool slot_tls_receive(struct slot_tls_link *link, struct text sealed)
{
	INVARIANT(sealed.size <= INT_MAX);
	return BIO_write(SSL_get_rbio(link->ssl), sealed.data, (int)sealed.size) ==
	       (int)sealed.size;
}

int slot_tls_read(struct slot_tls_link *link, char *clear, size_t size)
{
	INVARIANT(size <= INT_MAX);
	ERR_clear_error();
	int got = SSL_read(link->ssl, clear, (int)size);
	int reason = got > 0 ? SSL_ERROR_NONE : SSL_get_error(link->ssl, got);

	if (got > 0)
		return got;
	ERR_clear_error();
	return reason == SSL_ERROR_WANT_READ ? 0 : -1;
}

bool slot_tls_write(struct slot_tls_link *link, struct text clear)
{
	INVARIANT(clear.size <= INT_MAX);
	ERR_clear_error();
	return clear.size == 0 ||
	       SSL_write(link->ssl, clear.data, (int)clear.size) == (int)clear.size;
}

void slot_tls_goodbye(struct slot_tls_link *link)
{
	ERR_clear_error();
	SSL_shutdown(link->ssl);
}

void slot_tls_take(struct slot_tls_link *link, struct buffer *sealed)
{
	BIO *bio = SSL_get_wbio(link->ssl);
	char piece[4096];
	int got;

	while ((got = BIO_read(bio, piece, sizeof(piece))) > 0)
		buffer_bytes(sealed, piece, (size_t)got);
}
