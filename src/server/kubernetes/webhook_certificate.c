/* webhook_certificate.c - a certificate of our own, for an API server that is told to trust it */
#include "server/kubernetes/webhook_certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "server/settings/file.h"

enum { DAY_S = 86400, LIFE_DAYS = 90, RENEW_DAYS = 30, PEM_MAX = 65536, SERIAL_BYTES = 16 };

static bool is_address(const char *host)
{
	unsigned char bytes[16];

	return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* Whether it names the host, and will for some time. */
static bool certificate_serves(X509 *certificate, const char *host, int64_t now_s)
{
	time_t until = (time_t)(now_s + (int64_t)RENEW_DAYS * DAY_S), now = (time_t)now_s;
	bool names = is_address(host) ? X509_check_ip_asc(certificate, host, 0) == 1
	                              : X509_check_host(certificate, host, 0, 0, NULL) == 1;

	return names && X509_cmp_time(X509_get0_notAfter(certificate), &until) > 0 &&
	       X509_cmp_time(X509_get0_notBefore(certificate), &now) < 0;
}

static bool is_good(const char *certificate_path, const char *key_path, const char *host,
                    int64_t now_s, struct buffer *pem)
{
	struct buffer key_text = { 0 };
	struct error ignored;

	buffer_clear(pem);
	bool read = file_read(certificate_path, PEM_MAX, pem, &ignored) &&
	            file_read(key_path, PEM_MAX, &key_text, &ignored);
	BIO *of_pem = read ? BIO_new_mem_buf(pem->data, (int)pem->size) : NULL;
	BIO *of_key = read ? BIO_new_mem_buf(key_text.data, (int)key_text.size) : NULL;
	X509 *certificate = of_pem ? PEM_read_bio_X509(of_pem, NULL, NULL, NULL) : NULL;
	EVP_PKEY *key = of_key ? PEM_read_bio_PrivateKey(of_key, NULL, NULL, NULL) : NULL;
	bool good = certificate && key && X509_check_private_key(certificate, key) == 1 &&
	            certificate_serves(certificate, host, now_s);
	X509_free(certificate);
	EVP_PKEY_free(key);
	BIO_free(of_pem);
	BIO_free(of_key);
	buffer_free(&key_text);
	return good;
}

static bool set_serial(X509 *certificate)
{
	unsigned char bytes[SERIAL_BYTES];

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	bytes[0] &= 0x7f;
	BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
	bool set = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
	BN_free(number);
	return set;
}

static bool add_extension(X509 *certificate, int nid, const char *value)
{
	X509V3_CTX context;

	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	bool added = extension && X509_add_ext(certificate, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	return added;
}

static bool fill(X509 *certificate, EVP_PKEY *key, const char *host, int64_t now_s)
{
	char names[300];
	time_t now = (time_t)now_s;
	X509_NAME *subject = X509_get_subject_name(certificate);

	snprintf(names, sizeof(names), "%s:%.255s", is_address(host) ? "IP" : "DNS", host);
	return X509_set_version(certificate, 2) == 1 && set_serial(certificate) &&
	       /* Clocks differ. */
	       X509_time_adj_ex(X509_getm_notBefore(certificate), -1, 0, &now) &&
	       X509_time_adj_ex(X509_getm_notAfter(certificate), LIFE_DAYS, 0, &now) &&
	       X509_set_pubkey(certificate, key) == 1 &&
	       X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
	                                  (const unsigned char *)"gpu-scheduler webhook", -1, -1,
	                                  0) == 1 &&
	       X509_set_issuer_name(certificate, subject) == 1 &&
	       add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE") &&
	       add_extension(certificate, NID_subject_alt_name, names) &&
	       add_extension(certificate, NID_ext_key_usage, "serverAuth") &&
	       X509_sign(certificate, key, EVP_sha256()) > 0;
}

/* In place of what is there, whole. */
static bool write_whole(const char *path, BIO *bio, struct error *error)
{
	char name[4096];
	char *data;
	long size = BIO_get_mem_data(bio, &data);

	snprintf(name, sizeof(name), "%s.new", path);
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
	bool written = fd >= 0 && write(fd, data, (size_t)size) == size && fsync(fd) == 0;
	if (fd >= 0)
		close(fd);
	return (written && rename(name, path) == 0) ||
	       error_set(error, ERROR_UNAVAILABLE, "%.200s: %.100s", path, strerror(errno));
}

static bool write_both(const char *certificate_path, const char *key_path, X509 *certificate,
                       EVP_PKEY *key, struct error *error)
{
	BIO *of_pem = BIO_new(BIO_s_mem()), *of_key = BIO_new(BIO_s_mem());
	bool right = (of_pem && of_key && PEM_write_bio_X509(of_pem, certificate) == 1 &&
	              PEM_write_bio_PrivateKey(of_key, key, NULL, NULL, 0, NULL, NULL) == 1) ||
	             error_set(error, ERROR_UNAVAILABLE,
	                       "the certificate of the webhook could not be printed");

	right = right && write_whole(key_path, of_key, error) &&
	        write_whole(certificate_path, of_pem, error);
	BIO_free(of_pem);
	BIO_free(of_key);
	return right;
}

bool webhook_certificate_keep(const char *certificate_path, const char *key_path, const char *host,
                              int64_t now_s, struct buffer *pem, struct error *error)
{
	if (is_good(certificate_path, key_path, host, now_s, pem))
		return true;
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = X509_new();
	bool right =
	    (key && certificate && fill(certificate, key, host, now_s)) ||
	    error_set(error, ERROR_INVALID,
	              "no certificate could be made for kubernetes.webhook_host '%.255s'", host);

	right = right && write_both(certificate_path, key_path, certificate, key, error);
	X509_free(certificate);
	EVP_PKEY_free(key);
	return right &&
	       (is_good(certificate_path, key_path, host, now_s, pem) ||
	        error_set(error, ERROR_UNAVAILABLE, "%.200s cannot be used", certificate_path));
}
