/* login_cookie.c - the cookies of a sign-in, and what is derived from them */
#include <stdio.h>
#include <sys/random.h>

#include "api/login/login_local.h"
#include "api/text/base64.h"
#include "api/text/digest.h"
#include "base/clock.h"

/* A cookie is the time, in seconds, and random bytes. The values that the provider gets are made of
 * it with a secret of this process, so they fit the one browser that began the sign-in, and nothing
 * has to be remembered for it. */
enum { RANDOM_BYTES = 24, TIME_BYTES = 8, COOKIE_BYTES = RANDOM_BYTES + TIME_BYTES };
enum { SIGN_IN_S = 600 };

static void write_base64(char to[LOGIN_PROOF_MAX], const void *data, size_t size)
{
	struct buffer text = { 0 };

	base64url_write(&text, data, size);
	snprintf(to, LOGIN_PROOF_MAX, "%.*s", (int)text.size, text.data);
	buffer_free(&text);
}

void login_derive(const struct login *login, struct text cookie, const char *purpose,
                  char proof[LOGIN_PROOF_MAX])
{
	unsigned char digest[DIGEST_SIZE];
	struct buffer text = { 0 };

	buffer_print(&text, "%s.", purpose);
	buffer_bytes(&text, cookie.data, cookie.size);
	digest_hmac((struct text){ (const char *)login->secret, sizeof(login->secret) },
	            (struct text){ text.data, text.size }, digest);
	buffer_free(&text);
	write_base64(proof, digest, sizeof(digest));
}

bool login_new_cookie(char cookie[LOGIN_PROOF_MAX], struct error *error)
{
	unsigned char bytes[COOKIE_BYTES];
	uint64_t now_s = (uint64_t)(clock_unix_ms() / 1000);

	for (int i = 0; i < TIME_BYTES; i++)
		bytes[i] = (unsigned char)(now_s >> (8 * i));
	if (getrandom(bytes + TIME_BYTES, RANDOM_BYTES, 0) != RANDOM_BYTES)
		return error_set(error, ERROR_UNAVAILABLE, "the system gives no random bytes");
	write_base64(cookie, bytes, sizeof(bytes));
	return true;
}

bool login_cookie_is_fresh(struct text cookie)
{
	struct buffer bytes = { 0 };
	uint64_t made_s = 0, now_s = (uint64_t)(clock_unix_ms() / 1000);
	bool ok = cookie.data && cookie.size < LOGIN_PROOF_MAX && base64url_read(cookie, &bytes) &&
	          bytes.size == COOKIE_BYTES;

	for (int i = 0; ok && i < TIME_BYTES; i++)
		made_s |= (uint64_t)(unsigned char)bytes.data[i] << (8 * i);
	buffer_free(&bytes);
	return ok && made_s <= now_s && now_s - made_s < SIGN_IN_S;
}

const char *login_cookie_name(const struct login *login, bool of_session)
{
	/* The prefix has browsers refuse such a cookie from another host, and without TLS. */
	if (of_session)
		return login->is_secure ? "__Host-gpu-scheduler" : "gpu-scheduler";
	return login->is_secure ? "__Host-gpu-scheduler-login" : "gpu-scheduler-login";
}

struct text login_set_cookie(const struct login *login, struct request *request, const char *name,
                             const char *value, bool is_strict, int64_t seconds)
{
	struct buffer text = { 0 };

	buffer_print(&text, "%s=%s; Path=/; Max-Age=%lld; HttpOnly; SameSite=%s%s", name, value,
	             (long long)seconds, is_strict ? "Strict" : "Lax",
	             login->is_secure ? "; Secure" : "");
	struct text kept = { arena_copy(&request->engine.arena, text.data, text.size), text.size };
	buffer_free(&text);
	return kept;
}
