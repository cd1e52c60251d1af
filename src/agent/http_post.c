/* http_post.c - one request to a scheduler, answered before it returns */
#include "agent/http_post.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#define ANSWER_BYTES ((size_t)1 << 20)

struct target {
	bool secure;
	char host[256], address[300]; /* HOST and HOST:PORT */
};

static bool read_url(const char *url, struct target *target, struct error *error)
{
	const char *rest = strstr(url, "://");
	size_t scheme = rest ? (size_t)(rest - url) : 0;

	target->secure = scheme == 5 && strncmp(url, "https", 5) == 0;
	if (!target->secure && !(scheme == 4 && strncmp(url, "http", 4) == 0))
		return error_set(error, ERROR_INVALID,
		                 "'%s' is not the URL of a scheduler: write https://HOST:PORT",
		                 url);
	rest += 3;
	size_t size = strcspn(rest, "/");
	size_t host = size;
	for (size_t i = 0; i < size; i++)
		if (rest[i] == ':' && !memchr(rest + i, ']', size - i))
			host = i;
	if (host == 0 || host >= sizeof(target->host))
		return error_set(error, ERROR_INVALID, "'%s' names no host", url);
	snprintf(target->host, sizeof(target->host), "%.*s", (int)host, rest);
	snprintf(target->address, sizeof(target->address), "%.*s%s", (int)size, rest,
	         host < size      ? ""
	         : target->secure ? ":443"
	                          : ":80");
	return true;
}

static bool fail(struct error *error, const struct target *target)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error();
	return error_set(error, ERROR_UNAVAILABLE, "cannot talk to %s: %s", target->address,
	                 reason ? reason : "no connection");
}

/* A way to the target, by TLS where it wants that; NULL with a reason. */
static BIO *connect_to(const struct target *target, SSL_CTX *tls, struct error *error)
{
	BIO *bio = target->secure ? BIO_new_ssl_connect(tls) : BIO_new_connect(target->address);
	SSL *ssl = NULL;

	if (!bio) {
		fail(error, target);
		return NULL;
	}
	if (target->secure) {
		BIO_set_conn_hostname(bio, target->address);
		BIO_get_ssl(bio, &ssl);
		if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), target->host) != 1) {
			SSL_set1_host(ssl, target->host);
			SSL_set_tlsext_host_name(ssl, target->host);
		}
	}
	if (BIO_do_connect(bio) == 1 && (!target->secure || BIO_do_handshake(bio) == 1))
		return bio;
	fail(error, target);
	BIO_free_all(bio);
	return NULL;
}

static bool talk(BIO *bio, const struct buffer *request, struct buffer *page)
{
	char data[4096];
	int got;

	if (BIO_write(bio, request->data, (int)request->size) != (int)request->size)
		return false;
	while ((got = BIO_read(bio, data, sizeof(data))) > 0 && page->size < ANSWER_BYTES)
		buffer_bytes(page, data, (size_t)got);
	buffer_text(page, "");
	return page->size > 0;
}

static void write_request(const struct http_post *post, const struct target *target,
                          struct buffer *request)
{
	buffer_print(request, "POST %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", post->path,
	             target->address);
	buffer_print(request, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
	             post->body.size);
	if (post->token)
		buffer_print(request, "Authorization: Bearer %s\r\n", post->token);
	buffer_text(request, "\r\n");
	buffer_bytes(request, post->body.data, post->body.size);
}

bool http_post(const struct http_post *post, int *status, struct buffer *answer,
               struct error *error)
{
	struct target target = { 0 };
	struct buffer request = { 0 }, page = { 0 };

	if (!read_url(post->url, &target, error))
		return false;
	SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
	int trusted = post->ca_file ? SSL_CTX_load_verify_locations(tls, post->ca_file, NULL)
	                            : SSL_CTX_set_default_verify_paths(tls);
	BIO *bio = trusted == 1 ? connect_to(&target, tls, error) : NULL;
	bool good = bio != NULL;

	if (trusted != 1)
		error_set(error, ERROR_NOT_FOUND, "cannot read the certificates in %s",
		          post->ca_file);
	write_request(post, &target, &request);
	if (good && !talk(bio, &request, &page))
		good = fail(error, &target);
	const char *body = good && page.data ? strstr(page.data, "\r\n\r\n") : NULL;
	if (good && (!body || sscanf(page.data, "HTTP/%*d.%*d %d", status) != 1))
		good = error_set(error, ERROR_UNAVAILABLE, "%s does not answer as HTTP",
		                 target.address);
	if (good)
		buffer_bytes(answer, body + 4, page.size - (size_t)(body + 4 - page.data));
	BIO_free_all(bio);
	SSL_CTX_free(tls);
	if (request.data)
		explicit_bzero(request.data, request.size);
	buffer_free(&request);
	buffer_free(&page);
	return good;
}
