/* secret.c - secrets of jobs, sealed wherever they are kept: in the store and on nodes */
#include "seal/secret.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { KEY_BYTES = 32, NONCE_BYTES = 12, TAG_BYTES = 16, NAME_BYTES = 32, SECRET_MAX = 1 << 24 };

static const char mark[] = "sealed:1:";
#define MARK_SIZE (sizeof(mark) - 1)

struct key {
	char name[NAME_BYTES + 1];
	unsigned char bytes[KEY_BYTES];
};

struct secret_keys {
	struct key *keys;
	size_t count, capacity;
};

void secret_keys_free(struct secret_keys *keys)
{
	if (!keys)
		return;
	if (keys->keys)
		OPENSSL_cleanse(keys->keys, keys->capacity * sizeof(*keys->keys));
	free(keys->keys);
	free(keys);
}

static const struct key *find_key(const struct secret_keys *keys, const char *name, size_t length)
{
	for (size_t i = 0; i < keys->count; i++)
		if (strlen(keys->keys[i].name) == length &&
		    memcmp(keys->keys[i].name, name, length) == 0)
			return &keys->keys[i];
	return NULL;
}

/* Decodes base64 that is exactly as it would be encoded. */
static bool secret_decode(const char *text, size_t length, struct buffer *bytes)
{
	if (length == 0 || length % 4 != 0 || length > INT_MAX / 2)
		return false;
	unsigned char *plain = memory_alloc(length / 4 * 3);
	char *again = memory_alloc(length + 1);
	int size = EVP_DecodeBlock(plain, (const unsigned char *)text, (int)length);
	size -= (text[length - 1] == '=') + (text[length - 2] == '=');
	bool fine = size > 0 &&
	            EVP_EncodeBlock((unsigned char *)again, plain, size) == (int)length &&
	            memcmp(again, text, length) == 0;
	if (fine)
		buffer_bytes(bytes, plain, (size_t)size);
	OPENSSL_cleanse(plain, length / 4 * 3);
	OPENSSL_cleanse(again, length + 1);
	free(plain);
	free(again);
	return fine;
}

static void encode(struct buffer *text, const unsigned char *bytes, size_t size)
{
	char *encoded = memory_alloc(size / 3 * 4 + 5);
	int length = EVP_EncodeBlock((unsigned char *)encoded, bytes, (int)size);
	buffer_bytes(text, encoded, (size_t)length);
	free(encoded);
}

static bool add_key(struct secret_keys *keys, const char *pair, size_t length, struct error *error)
{
	const char *colon = memchr(pair, ':', length);
	size_t name = colon ? (size_t)(colon - pair) : 0;
	const char *letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	if (name == 0 || name > NAME_BYTES || strspn(pair, letters) < name)
		return error_set(error, ERROR_INVALID,
		                 "key %zu has no name: write NAME:KEY, the name in letters and "
		                 "digits",
		                 keys->count + 1);
	if (find_key(keys, pair, name))
		return error_set(error, ERROR_INVALID, "there are two keys of the name %.*s",
		                 (int)name, pair);
	struct buffer bytes = { 0 };
	if (!secret_decode(colon + 1, length - name - 1, &bytes) || bytes.size != KEY_BYTES) {
		if (bytes.data)
			OPENSSL_cleanse(bytes.data, bytes.size);
		buffer_free(&bytes);
		return error_set(error, ERROR_INVALID,
		                 "the key %.*s is not %d bytes in base64: make one with "
		                 "'openssl rand -base64 32'",
		                 (int)name, pair, KEY_BYTES);
	}
	array_reserve(keys->keys, keys->capacity, keys->count + 1);
	struct key *key = &keys->keys[keys->count++];
	*key = (struct key){ 0 };
	memcpy(key->name, pair, name);
	memcpy(key->bytes, bytes.data, KEY_BYTES);
	OPENSSL_cleanse(bytes.data, bytes.size);
	buffer_free(&bytes);
	return true;
}

struct secret_keys *secret_keys_read(const char *text, struct error *error)
{
	static const char separators[] = ", \t\r\n";
	struct secret_keys *keys = NEW(struct secret_keys);
	for (text += strspn(text, separators); *text; text += strspn(text, separators)) {
		size_t length = strcspn(text, separators);
		if (!add_key(keys, text, length, error)) {
			secret_keys_free(keys);
			return NULL;
		}
		text += length;
	}
	if (keys->count > 0)
		return keys;
	error_set(error, ERROR_INVALID, "there is no key: make one with 'openssl rand -base64 32'");
	secret_keys_free(keys);
	return NULL;
}

/* What is authenticated beside the text: the key's name and the context. */
static bool add_context(EVP_CIPHER_CTX *cipher, const struct key *key, const char *context)
{
	int size;
	return EVP_CipherUpdate(cipher, NULL, &size, (const unsigned char *)key->name,
	                        (int)strlen(key->name) + 1) == 1 &&
	       EVP_CipherUpdate(cipher, NULL, &size, (const unsigned char *)context,
	                        (int)strlen(context)) == 1;
}

/* `out` has room for nonce, text and tag. */
static bool encrypt(const struct key *key, const char *context, const char *plain, size_t size,
                    unsigned char *out)
{
	EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
	int written;
	bool done = cipher && RAND_bytes(out, NONCE_BYTES) == 1 &&
	            EVP_EncryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, key->bytes, out) == 1 &&
	            add_context(cipher, key, context) &&
	            EVP_EncryptUpdate(cipher, out + NONCE_BYTES, &written,
	                              (const unsigned char *)plain, (int)size) == 1 &&
	            EVP_EncryptFinal_ex(cipher, out + NONCE_BYTES + size, &written) == 1 &&
	            EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, TAG_BYTES,
	                                out + NONCE_BYTES + size) == 1;
	EVP_CIPHER_CTX_free(cipher);
	return done;
}

bool secret_seal(const struct secret_keys *keys, const char *context, const char *plain,
                 size_t size, struct buffer *sealed, struct error *error)
{
	if (size > SECRET_MAX)
		return error_set(error, ERROR_INVALID, "a secret may have %d bytes at the most",
		                 SECRET_MAX);
	size_t total = NONCE_BYTES + size + TAG_BYTES;
	unsigned char *bytes = memory_alloc(total);
	bool done = encrypt(&keys->keys[0], context, plain, size, bytes);
	if (done) {
		buffer_print(sealed, "%s%s:", mark, keys->keys[0].name);
		encode(sealed, bytes, total);
		buffer_text(sealed, "");
	} else {
		error_set(error, ERROR_UNAVAILABLE, "a secret could not be sealed");
	}
	free(bytes);
	return done;
}

static bool decrypt(const struct key *key, const char *context, const struct buffer *bytes,
                    struct buffer *plain)
{
	const unsigned char *nonce = (const unsigned char *)bytes->data;
	size_t size = bytes->size - NONCE_BYTES - TAG_BYTES;
	unsigned char *text = memory_alloc(size + 1);
	EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
	int written;
	bool done =
	    cipher && EVP_DecryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, key->bytes, nonce) == 1 &&
	    add_context(cipher, key, context) &&
	    EVP_DecryptUpdate(cipher, text, &written, nonce + NONCE_BYTES, (int)size) == 1 &&
	    EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_SET_TAG, TAG_BYTES,
	                        bytes->data + NONCE_BYTES + size) == 1 &&
	    EVP_DecryptFinal_ex(cipher, text + size, &written) == 1;
	if (done)
		buffer_bytes(plain, text, size);
	EVP_CIPHER_CTX_free(cipher);
	OPENSSL_cleanse(text, size + 1);
	free(text);
	return done;
}

/* The key that it names; NULL if there is no such, or it is not a sealed text. */
static const struct key *secret_key_of(const struct secret_keys *keys, const char *sealed)
{
	if (strncmp(sealed, mark, MARK_SIZE) != 0)
		return NULL;
	const char *name = sealed + MARK_SIZE, *colon = strchr(name, ':');
	return colon ? find_key(keys, name, (size_t)(colon - name)) : NULL;
}

bool secret_open(const struct secret_keys *keys, const char *context, const char *sealed,
                 struct buffer *plain, struct error *error)
{
	if (strncmp(sealed, mark, MARK_SIZE) != 0)
		return error_set(error, ERROR_INVALID, "this is not a sealed secret");
	const struct key *key = secret_key_of(keys, sealed);
	if (!key)
		return error_set(error, ERROR_NOT_FOUND,
		                 "a secret is sealed with a key that is not in the settings: put "
		                 "the old key back, behind the new one");
	struct buffer bytes = { 0 };
	const char *text = strchr(sealed + MARK_SIZE, ':') + 1;
	bool done = secret_decode(text, strlen(text), &bytes) &&
	            bytes.size >= NONCE_BYTES + TAG_BYTES && bytes.size <= SECRET_MAX &&
	            decrypt(key, context, &bytes, plain);
	buffer_free(&bytes);
	return done || error_set(error, ERROR_CORRUPT,
	                         "a secret does not open with the key %s: it was changed, or "
	                         "belongs to someone else",
	                         key->name);
}

bool secret_is_old(const struct secret_keys *keys, const char *sealed)
{
	return secret_key_of(keys, sealed) != &keys->keys[0];
}
