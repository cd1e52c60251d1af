/* webhook_certificate.h - a certificate of our own, for an API server that is told to trust it */
#ifndef SERVER_KUBERNETES_WEBHOOK_CERTIFICATE_H
#define SERVER_KUBERNETES_WEBHOOK_CERTIFICATE_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/* Makes the files if they are not there, cannot be used for the host (a DNS name or an address), or
 * end within a third of their life, which is 90 days. The key can be read by its owner alone. `pem`
 * gets the certificate. False with a reason if the files cannot be written. */
bool webhook_certificate_keep(const char *certificate_path, const char *key_path, const char *host,
                              int64_t now_s, struct buffer *pem, struct error *error);

#endif
