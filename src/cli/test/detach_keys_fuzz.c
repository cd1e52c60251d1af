/* detach_keys_fuzz.c - keys in one piece are the same as keys one by one */
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "cli/job/detach_keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct detach_keys whole = { 0 }, single = { 0 };
	struct buffer first = { 0 }, second = { 0 };
	bool left = detach_keys_filter(&whole, (const char *)data, size, &first),
	     left_single = false;

	for (size_t i = 0; i < size && !left_single; i++)
		left_single = detach_keys_filter(&single, (const char *)data + i, 1, &second);
	INVARIANT(left == left_single && first.size == second.size && first.size <= size);
	INVARIANT(first.size == 0 || memcmp(first.data, second.data, first.size) == 0);
	buffer_free(&first);
	buffer_free(&second);
	return 0;
}
