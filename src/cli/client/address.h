/* address.h - where a service is: its URL taken apart */
#ifndef CLI_CLIENT_ADDRESS_H
#define CLI_CLIENT_ADDRESS_H

#include "base/error.h"

enum { ADDRESS_HOST_MAX = 256, ADDRESS_PREFIX_MAX = 256 };

/* Of http://HOST[:PORT][/PREFIX] or https://. The host is without the brackets of IPv6;
 * the prefix is without a slash at its end. */
struct address {
	bool secure;
	char host[ADDRESS_HOST_MAX], port[6];
	char authority[ADDRESS_HOST_MAX + 16]; /* as in the header Host */
	char prefix[ADDRESS_PREFIX_MAX];
};

bool address_read(const char *url, struct address *address, struct error *error);

#endif
