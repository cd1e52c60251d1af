/* tls_session.c - TLS on one connection */
#include "wire/tls_session.h"

#include <openssl/err.h>
#include <stdlib.h>

#include "base/memory.h"
#include "wire/greeting.h"
#include "wire/http1.h"
#include "wire/http2.h"
#include "wire/tls_context.h"

enum {
	PLAIN_BYTES = 16 << 10, /* the most that one record has */
	/* Encrypted at most so far ahead of what the socket takes. */
	SEALED_BYTES = 128 << 10,
};

/* The BIOs belong to `ssl`: what came in is written to one, what is to be sent is read
 * from the other. */
struct tls_session {
	SSL *ssl;
	BIO *incoming, *outgoing;
	struct connection *connection;
	bool is_ready;
};

struct tls_session *tls_session_new(struct tls *tls, struct connection *connection)
{
	struct tls_session *session = NEW(struct tls_session);
	session->connection = connection;
	session->ssl = SSL_new(tls_context(tls));
	session->incoming = BIO_new(BIO_s_mem());
	session->outgoing = BIO_new(BIO_s_mem());
	if (!session->ssl || !session->incoming || !session->outgoing)
		panic("out of memory for TLS");
	BIO_set_mem_eof_return(session->incoming, -1);
	SSL_set_bio(session->ssl, session->incoming, session->outgoing);
	SSL_set_accept_state(session->ssl);
	return session;
}

void tls_session_free(struct tls_session *session)
{
	if (!session)
		return;
	SSL_free(session->ssl);
	free(session);
}

bool tls_session_is_ready(const struct tls_session *session)
{
	return session->is_ready;
}

/* Takes over what OpenSSL has to send. */
static void tls_session_collect(struct tls_session *session)
{
	char *data;
	long size = BIO_get_mem_data(session->outgoing, &data);
	if (size <= 0)
		return;
	output_bytes(&session->connection->sealed, data, (size_t)size);
	(void)BIO_reset(session->outgoing);
	connection_touch(session->connection);
}

/* The handshake is complete: speaks the protocol that was agreed on. */
static void tls_session_begin(struct tls_session *session)
{
	const unsigned char *protocol;
	unsigned size;
	session->is_ready = true;
	SSL_get0_alpn_selected(session->ssl, &protocol, &size);
	struct text agreed = { (const char *)protocol, size };
	if (text_is(agreed, "h2"))
		http2_open(session->connection);
	else if (text_is(agreed, "http/1.1"))
		http1_open(session->connection);
}

static void handshake(struct tls_session *session)
{
	int status = SSL_do_handshake(session->ssl);
	tls_session_collect(session);
	if (status == 1) {
		tls_session_begin(session);
		return;
	}
	int reason = SSL_get_error(session->ssl, status);
	if (reason != SSL_ERROR_WANT_READ && reason != SSL_ERROR_WANT_WRITE) {
		session->connection->loop->counters.protocol_errors++;
		/* The alert that says why is still sent. */
		connection_finish(session->connection);
	}
}

/* Decrypts what is there. */
static void unseal(struct tls_session *session)
{
	struct connection *connection = session->connection;
	struct loop *loop = connection->loop;
	if (!loop->plain)
		loop->plain = memory_alloc(PLAIN_BYTES);
	while (!connection->is_closing && !connection->is_hung_up) {
		int size = SSL_read(session->ssl, loop->plain, PLAIN_BYTES);
		tls_session_collect(session);
		if (size > 0) {
			connection_take(connection, (struct text){ loop->plain, (size_t)size });
			continue;
		}
		int reason = SSL_get_error(session->ssl, size);
		if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE)
			return;
		if (reason == SSL_ERROR_ZERO_RETURN) {
			connection->is_hung_up = true;
			connection->protocol->hangup(connection);
		} else {
			loop->counters.protocol_errors++;
			connection_close(connection);
		}
	}
}

void tls_session_receive(struct tls_session *session, struct text bytes)
{
	ERR_clear_error();
	int taken = BIO_write(session->incoming, bytes.data, (int)bytes.size);
	INVARIANT(taken == (int)bytes.size);
	if (!session->is_ready)
		handshake(session);
	if (session->is_ready)
		unseal(session);
}

void tls_session_seal(struct tls_session *session)
{
	struct connection *connection = session->connection;
	ERR_clear_error();
	while (session->is_ready && connection->output.bytes > 0 &&
	       connection->sealed.bytes < SEALED_BYTES) {
		uv_buf_t piece;
		output_vectors(&connection->output, &piece, 1, PLAIN_BYTES);
		int size = SSL_write(session->ssl, piece.base, (int)piece.len);
		if (size <= 0) {
			connection_close(connection);
			return;
		}
		output_consume(&connection->output, (size_t)size);
		tls_session_collect(session);
	}
}

void tls_session_goodbye(struct tls_session *session)
{
	ERR_clear_error();
	if (session->is_ready)
		SSL_shutdown(session->ssl);
	tls_session_collect(session);
}
