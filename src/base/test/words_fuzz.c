/* words_fuzz.c - numbers, times, durations, sizes, URLs and networks are read within their bounds,
 * or refused; what is written of them is read again as the same */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/calendar.h"
#include "base/duration.h"
#include "base/endpoint.h"
#include "base/error.h"
#include "base/ip.h"
#include "base/memory.h"
#include "base/number_text.h"
#include "base/size.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool words_is_within(struct text part, struct text whole)
{
	return part.data >= whole.data && part.data + part.size <= whole.data + whole.size;
}

static void words_check_numbers(struct text text)
{
	int64_t number = 0, again = 0;
	struct text rest = text;

	if (number_read(text, -5, 1000, &number)) {
		INVARIANT(number >= -5 && number <= 1000);
		INVARIANT(number_read_decimal(text, 3, -5000, 1000000, &again));
		INVARIANT(again == number * 1000);
	}
	if (number_read_decimal(text, 3, -5, 1000, &number))
		INVARIANT(number >= -5 && number <= 1000);
	if (number_take_decimal(&rest, 6, INT64_MAX, &number))
		INVARIANT(number >= 0 && rest.size < text.size);
}

static void check_times(struct text text)
{
	const int64_t longest_ms = 36500 * DAY_MS;
	char written[CALENDAR_TEXT_MAX];
	int64_t number = 0, again = 0;

	if (calendar_read_day(text, &number)) {
		INVARIANT(number >= 0 && number < INT64_C(253402300800000) + DAY_MS);
		size_t length = calendar_write(number * 1000, 3, written);
		INVARIANT(calendar_read((struct text){ written, length }, &again));
		INVARIANT(again == number || number >= INT64_C(253402300800000));
	}
	if (duration_read(text, longest_ms, &number)) {
		struct buffer printed = { 0 };
		INVARIANT(number >= 0 && number <= longest_ms);
		duration_print_hours(&printed, number);
		INVARIANT(duration_read(text_of(printed.data), longest_ms, &again));
		INVARIANT(again == number - number % SECOND_MS);
		buffer_free(&printed);
	}
	if (size_read(text, &number))
		INVARIANT(number > 0 && number <= SIZE_MAX_MIB);
}

static void check_addresses(struct text text, const char *string)
{
	struct endpoint endpoint;
	struct ip_network network;

	if (endpoint_read(text, &endpoint)) {
		INVARIANT(endpoint.port >= 1 && endpoint.port <= 65535);
		INVARIANT(endpoint.host.size > 0 && endpoint.host.size <= 253);
		INVARIANT(words_is_within(endpoint.host, text) &&
		          words_is_within(endpoint.target, text));
		INVARIANT(!memchr(text.data, '@', (size_t)(endpoint.target.data - text.data)));
	}
	if (ip_network_read(string, &network))
		INVARIANT(network.bits >= 0 && network.bits <= 128 &&
		          ip_network_has(&network, &network.start));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *string = memory_alloc(size + 1);
	struct text text = { string, size };

	memcpy(string, data, size);
	string[size] = '\0';
	words_check_numbers(text);
	check_times(text);
	check_addresses(text, string);
	free(string);
	return 0;
}
