/* tls.c - a certificate and its key, and what is spoken over them */
#include "wire/tls.h"

#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "wire/loop_state.h"
#include "wire/tls_context.h"

enum { CHECK_MS = 2000, FILES = 3 };

/* By which a file that has changed is known. */
struct file_version {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
};

/* `versions` are those of the files when they were last read, used or not. */
struct tls {
	struct loop *loop;
	SSL_CTX *context;
	char *paths[FILES]; /* certificate, key, CA; the last may be NULL */
	struct file_version versions[FILES];
	int64_t check_ms;
	void (*reloaded)(void *context, const struct error *failed);
	void *reloaded_context;
	struct timer timer;
};

SSL_CTX *tls_context(const struct tls *tls)
{
	return tls->context;
}

/* The first reason that OpenSSL has, which is the most telling; forgets the others. */
static const char *openssl_reason(void)
{
	unsigned long code = ERR_get_error();
	const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;
	ERR_clear_error();
	return reason ? reason : "no reason was given";
}

static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_size,
                           const unsigned char *offered, unsigned offered_size, void *context)
{
	(void)ssl;
	(void)context;
	static const unsigned char known[] = "\x02h2\x08http/1.1";
	unsigned char *found;
	if (SSL_select_next_proto(&found, chosen_size, known, sizeof(known) - 1, offered,
	                          offered_size) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_NOACK;
	*chosen = found;
	return SSL_TLSEXT_ERR_OK;
}

/* Reads the files into a new context. */
static bool load_files(SSL_CTX *context, char *const paths[FILES], struct error *error)
{
	/* The key first: the other way round, OpenSSL refuses a key that does not belong to
	 * the certificate in the same way as one that is none. */
	if (SSL_CTX_use_PrivateKey_file(context, paths[1], SSL_FILETYPE_PEM) != 1)
		return error_set(error, ERROR_INVALID, "the key %s cannot be used: %s", paths[1],
		                 openssl_reason());
	if (SSL_CTX_use_certificate_chain_file(context, paths[0]) != 1)
		return error_set(error, ERROR_INVALID, "the certificate %s cannot be used: %s",
		                 paths[0], openssl_reason());
	if (SSL_CTX_check_private_key(context) != 1)
		return error_set(error, ERROR_INVALID,
		                 "the key %s is not that of the certificate %s", paths[1],
		                 paths[0]);
	if (!paths[2])
		return true;
	if (SSL_CTX_load_verify_locations(context, paths[2], NULL) != 1)
		return error_set(error, ERROR_INVALID,
		                 "the certificates of the authority in %s cannot be used: %s",
		                 paths[2], openssl_reason());
	SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(paths[2]));
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	return true;
}

static SSL_CTX *make_context(char *const paths[FILES], struct error *error)
{
	ERR_clear_error();
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	if (!context)
		panic("OpenSSL cannot be set up: %s", openssl_reason());
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
	                                 SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_id_context(context, (const unsigned char *)"wire", 4);
	SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
	if (load_files(context, paths, error))
		return context;
	SSL_CTX_free(context);
	return NULL;
}

static void read_versions(const struct tls *tls, struct file_version versions[FILES])
{
	memset(versions, 0, FILES * sizeof(versions[0]));
	for (int i = 0; i < FILES; i++) {
		struct stat status;
		if (!tls->paths[i] || stat(tls->paths[i], &status) != 0)
			continue;
		versions[i].device = status.st_dev;
		versions[i].inode = status.st_ino;
		versions[i].size = status.st_size;
		versions[i].changed = status.st_mtim;
	}
}

bool tls_reload(struct tls *tls, struct error *error)
{
	/* Before the files: what changes in between is then seen the next time. */
	read_versions(tls, tls->versions);
	SSL_CTX *context = make_context(tls->paths, error);
	if (!context)
		return false;
	SSL_CTX_free(tls->context);
	tls->context = context;
	return true;
}

static void check_files(struct timer *timer)
{
	struct tls *tls = (struct tls *)(void *)((char *)timer - offsetof(struct tls, timer));
	struct file_version now[FILES];
	read_versions(tls, now);
	if (memcmp(now, tls->versions, sizeof(now)) != 0) {
		struct error error = { 0 };
		bool is_loaded = tls_reload(tls, &error);
		if (tls->reloaded)
			tls->reloaded(tls->reloaded_context, is_loaded ? NULL : &error);
	}
	if (!tls->loop->is_closing)
		loop_timer_set(tls->loop, &tls->timer, tls->check_ms);
}

struct tls *tls_new(struct loop *loop, const struct tls_options *options, struct error *error)
{
	struct tls *tls = NEW(struct tls);
	tls->loop = loop;
	tls->paths[0] = memory_text(options->certificate_path);
	tls->paths[1] = memory_text(options->key_path);
	tls->paths[2] = options->ca_path ? memory_text(options->ca_path) : NULL;
	tls->check_ms = options->check_ms > 0 ? options->check_ms : CHECK_MS;
	tls->reloaded = options->reloaded;
	tls->reloaded_context = options->context;
	tls->timer = TIMER(check_files);
	if (!tls_reload(tls, error)) {
		tls_free(tls);
		return NULL;
	}
	loop_timer_set(loop, &tls->timer, tls->check_ms);
	return tls;
}

void tls_free(struct tls *tls)
{
	if (!tls)
		return;
	loop_timer_clear(tls->loop, &tls->timer);
	SSL_CTX_free(tls->context);
	for (int i = 0; i < FILES; i++)
		free(tls->paths[i]);
	free(tls);
}
