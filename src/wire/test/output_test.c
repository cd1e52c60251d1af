/* output_test.c - tests of bytes that wait to be sent, and of those that many hold */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/number.h"
#include "wire/net/output.h"

enum { VECTORS = 4096, KEPT_BYTES = 1 << 20 };

/* All bytes in the order in which they would be sent. */
static void flatten(const struct output *output, struct buffer *out)
{
	uv_buf_t vectors[VECTORS];
	unsigned count = output_vectors(output, vectors, VECTORS, SIZE_MAX);
	buffer_clear(out);
	for (unsigned i = 0; i < count; i++)
		buffer_bytes(out, vectors[i].base, vectors[i].len);
	assert_int_equal(out->size, output->bytes);
}

static void small_pieces_become_one(void **state)
{
	(void)state;
	struct output_blocks blocks = { 0 };
	struct output output = output_new(&blocks, NULL);
	for (int i = 0; i < 100; i++)
		output_text(&output, TEXT("answer "));
	assert_int_equal(output.count, 1);
	assert_int_equal(output.bytes, 700);
	output_consume(&output, 700);
	assert_int_equal(output.count, 0);
	assert_int_equal(blocks.free_count, 1);
	output_free(&output);
	output_blocks_free(&blocks);
}

static void shared_bytes_are_held_until_they_are_sent(void **state)
{
	(void)state;
	struct output_blocks blocks = { 0 };
	struct output one = output_new(&blocks, NULL), other = output_new(&blocks, NULL);
	struct shared *shared = shared_new("to everyone", 11);
	output_share(&one, shared_hold(shared), shared_text(shared));
	output_share(&other, shared_hold(shared), shared_text(shared));
	assert_int_equal(atomic_load(&shared->holders), 3);
	output_consume(&one, 5);
	assert_int_equal(atomic_load(&shared->holders), 3);
	output_consume(&one, 6);
	output_free(&other);
	assert_int_equal(atomic_load(&shared->holders), 1);
	shared_drop(shared);
	output_free(&one);
	output_blocks_free(&blocks);
}

static void moving_takes_as_much_as_is_asked_for(void **state)
{
	(void)state;
	struct output_blocks blocks = { 0 };
	struct output to = output_new(&blocks, NULL), from = output_new(&blocks, NULL);
	struct buffer bytes = { 0 };
	struct shared *shared = shared_new("0123456789", 10);
	output_text(&from, TEXT("abc"));
	output_share(&from, shared, shared_text(shared));
	output_text(&from, TEXT("xyz"));
	output_text(&to, TEXT(">"));
	output_move(&to, &from, 7);
	flatten(&to, &bytes);
	assert_memory_equal(bytes.data, ">abc0123", 8);
	flatten(&from, &bytes);
	assert_memory_equal(bytes.data, "456789xyz", 9);
	output_move(&to, &from, SIZE_MAX);
	assert_int_equal(from.bytes, 0);
	flatten(&to, &bytes);
	assert_memory_equal(bytes.data, ">abc0123456789xyz", 17);
	output_free(&to);
	output_free(&from);
	buffer_free(&bytes);
	output_blocks_free(&blocks);
}

/* Adds bytes in one of the ways there are. */
static void output_add(struct output *output, struct output *aside, uint64_t way, const char *part,
                       size_t size)
{
	if (way == 0) {
		struct shared *shared = shared_new(part, size);
		output_share(output, shared, shared_text(shared));
	} else if (way == 1) {
		output_bytes(aside, part, size);
		output_move(output, aside, SIZE_MAX);
	} else {
		output_bytes(output, part, size);
	}
}

static void anything_done_to_it_keeps_the_bytes_in_order(void **state)
{
	(void)state;
	uint64_t random = 7;
	struct output_blocks blocks = { 0 };
	struct output output = output_new(&blocks, NULL), aside = output_new(&blocks, NULL);
	struct buffer wanted = { 0 }, bytes = { 0 };
	size_t sent = 0;
	unsigned char next = 0;
	for (int i = 0; i < 5000; i++) {
		char part[40000];
		size_t size = random_below(&random, i % 10 == 0 ? sizeof(part) : 300);
		for (size_t j = 0; j < size; j++)
			part[j] = (char)next++;
		output_add(&output, &aside, random_below(&random, 4), part, size);
		buffer_bytes(&wanted, part, size);
		flatten(&output, &bytes);
		assert_true(bytes.size == 0 ||
		            memcmp(bytes.data, wanted.data + sent, bytes.size) == 0);
		size_t gone = random_below(&random, output.bytes + 1);
		output_consume(&output, gone);
		sent += gone;
		if (wanted.size > KEPT_BYTES) {
			output_consume(&output, output.bytes);
			buffer_clear(&wanted);
			sent = 0;
		}
	}
	output_free(&output);
	output_free(&aside);
	buffer_free(&wanted);
	buffer_free(&bytes);
	output_blocks_free(&blocks);
}

static void vectors_are_cut_to_the_bytes_asked_for(void **state)
{
	(void)state;
	struct output_blocks blocks = { 0 };
	struct output output = output_new(&blocks, NULL);
	struct shared *shared = shared_new("0123456789", 10);
	uv_buf_t vectors[3];
	output_text(&output, TEXT("abc"));
	output_share(&output, shared, shared_text(shared));
	assert_int_equal(output_vectors(&output, vectors, 3, 5), 2);
	assert_int_equal(vectors[1].len, 2);
	assert_int_equal(output_vectors(&output, vectors, 1, SIZE_MAX), 1);
	output_free(&output);
	output_blocks_free(&blocks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_pieces_become_one),
		cmocka_unit_test(shared_bytes_are_held_until_they_are_sent),
		cmocka_unit_test(moving_takes_as_much_as_is_asked_for),
		cmocka_unit_test(anything_done_to_it_keeps_the_bytes_in_order),
		cmocka_unit_test(vectors_are_cut_to_the_bytes_asked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
