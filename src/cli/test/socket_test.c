/* socket_test.c - what counts as the agreement to a WebSocket */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/client/socket.h"

/* The example of RFC 6455. */
#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

static void an_answer_to_the_key_is_accepted(void **state)
{
	(void)state;
	assert_true(socket_is_accepted("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
	                               "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n",
	                               KEY));
	assert_true(
	    socket_is_accepted("HTTP/1.1 101 \r\nsec-websocket-accept:" ACCEPT " \r\n\r\n", KEY));
}

static void any_other_answer_is_not(void **state)
{
	static const char *const heads[] = {
		"",
		"HTTP/1.1 101",
		"HTTP/1.1 200 OK\r\nSec-WebSocket-Accept: " ACCEPT "\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: \r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: " ACCEPT "x\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nX: Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		assert_false(socket_is_accepted(heads[i], KEY));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_to_the_key_is_accepted),
		cmocka_unit_test(any_other_answer_is_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
