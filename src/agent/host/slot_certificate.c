/* slot_certificate.c - what a node shows to who asks its models by TLS */
#include "agent/host/slot_certificate.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

#include "agent/host/file.h"

enum { FILE_BYTES_MAX = 30 << 10, YEARS = 20 };

void slot_certificate_free(struct slot_certificate *certificate)
{
	if (certificate->pem.data)
		explicit_bzero(certificate->pem.data, certificate->pem.capacity);
	buffer_free(&certificate->pem);
}

/* Of the first certificate, if the key is its. */
static bool check_pem(struct slot_certificate *certificate)
{
	const struct buffer *pem = &certificate->pem;
	BIO *one = BIO_new_mem_buf(pem->data, (int)pem->size);
	BIO *other = BIO_new_mem_buf(pem->data, (int)pem->size);
	X509 *shown = PEM_read_bio_X509(one, NULL, NULL, NULL);
	EVP_PKEY *key = PEM_read_bio_PrivateKey(other, NULL, NULL, NULL);
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned size = 0;
	bool good = shown && key && X509_check_private_key(shown, key) == 1 &&
	            X509_digest(shown, EVP_sha256(), digest, &size) == 1 &&
	            size == SLOT_KEY_SIZE / 2;

	for (size_t i = 0; good && i < size; i++)
		snprintf(certificate->fingerprint + 2 * i, 3, "%02x", digest[i]);
	EVP_PKEY_free(key);
	X509_free(shown);
	BIO_free(other);
	BIO_free(one);
	ERR_clear_error();
	return good;
}

static bool append_file(struct buffer *pem, const char *path, struct error *error)
{
	struct buffer text = { 0 };
	bool whole = file_read(path, FILE_BYTES_MAX, &text);
	int reason = errno;

	if (whole) {
		buffer_bytes(pem, text.data, text.size);
		buffer_text(pem, "\n");
	}
	if (text.data)
		explicit_bzero(text.data, text.capacity);
	buffer_free(&text);
	return whole ||
	       error_set(error, ERROR_INVALID, "cannot read %s: %s", path, strerror(reason));
}

bool slot_certificate_read(const char *certificate_path, const char *key_path,
                           struct slot_certificate *certificate, struct error *error)
{
	*certificate = (struct slot_certificate){ 0 };
	if (append_file(&certificate->pem, certificate_path, error) &&
	    (!key_path || append_file(&certificate->pem, key_path, error)) &&
	    (check_pem(certificate) ||
	     error_set(error, ERROR_INVALID, "%s is no certificate in PEM, or %s is not its key",
	               certificate_path, key_path ? key_path : "what follows in it")))
		return true;
	slot_certificate_free(certificate);
	return false;
}

static bool fill_certificate(X509 *made, EVP_PKEY *key)
{
	X509_NAME *name = X509_get_subject_name(made);
	uint64_t serial = 0;

	return RAND_bytes((unsigned char *)&serial, sizeof(serial)) == 1 &&
	       X509_set_version(made, 2) == 1 &&
	       ASN1_INTEGER_set_uint64(X509_get_serialNumber(made), serial >> 1 | 1) == 1 &&
	       X509_gmtime_adj(X509_getm_notBefore(made), -86400) &&
	       X509_time_adj_ex(X509_getm_notAfter(made), 365 * YEARS, 0, NULL) &&
	       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
	                                  (const unsigned char *)"gpu-agent", -1, -1, 0) == 1 &&
	       X509_set_issuer_name(made, name) == 1 && X509_set_pubkey(made, key) == 1 &&
	       X509_sign(made, key, EVP_sha256()) > 0;
}

/* A new key and a certificate that it signs itself. */
static bool make_pem(struct buffer *pem)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *made = X509_new();
	BIO *bio = BIO_new(BIO_s_secmem());
	char *data;
	bool good = key && made && bio && fill_certificate(made, key) &&
	            PEM_write_bio_X509(bio, made) == 1 &&
	            PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1;

	if (good) {
		long size = BIO_get_mem_data(bio, &data);
		buffer_bytes(pem, data, (size_t)size);
	}
	BIO_free(bio);
	X509_free(made);
	EVP_PKEY_free(key);
	ERR_clear_error();
	return good;
}

bool slot_certificate_own(const char *path, struct slot_certificate *certificate,
                          struct error *error)
{
	struct error ignored = { 0 };

	if (slot_certificate_read(path, NULL, certificate, &ignored))
		return true;
	*certificate = (struct slot_certificate){ 0 };
	if (!make_pem(&certificate->pem) || !check_pem(certificate)) {
		slot_certificate_free(certificate);
		return error_set(error, ERROR_UNAVAILABLE, "a certificate cannot be made");
	}
	if (file_replace(path, certificate->pem.data, certificate->pem.size, 0600, error))
		return true;
	slot_certificate_free(certificate);
	return false;
}
