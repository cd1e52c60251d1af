/* bench_prefix.c - what choosing a replica by the beginning of a prompt costs: bench_prefix
 * JSON-FILE
 *
 * 64 replicas with full tables; a prompt of 100 KB is 400 blocks of 256 bytes. Each round looks up
 * another prompt, so that the table is not in the nearest cache. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"
#include "gateway/state/prefix.h"
#include "gateway/text/body.h"

enum {
	REPLICAS = 64,
	BLOCKS_EACH = 8192,
	BLOCKS = 400,
	SHARED = 20,    /* blocks of each prompt that all prompts begin with */
	PROMPTS = 1200, /* as many as the tables hold, each at one replica */
	ROUNDS = 20000,
	PASSES = 5,
};

struct prompts {
	uint64_t (*blocks)[BLOCKS];
	struct prefixes *prefixes;
};

static void prompts_make(struct prompts *prompts)
{
	prompts->blocks = memory_alloc(PROMPTS * sizeof(*prompts->blocks));
	for (uint64_t p = 0; p < PROMPTS; p++) {
		uint64_t hash = 1;
		for (uint64_t b = 0; b < BLOCKS; b++) {
			hash = hash_combine(hash, b < SHARED ? b : hash_combine(p, b));
			prompts->blocks[p][b] = hash;
		}
	}
	prompts->prefixes = prefixes_new(BLOCKS_EACH);
	for (int r = 0; r < REPLICAS; r++)
		prefixes_add(prompts->prefixes);
	for (int p = 0; p < PROMPTS; p++)
		prefixes_note(prompts->prefixes, p % REPLICAS, prompts->blocks[p], BLOCKS);
}

/* The best of several passes, in us for each call. */
static double match_us(const struct prompts *prompts, int64_t *matched)
{
	double best = 1e9;

	for (int pass = 0; pass < PASSES; pass++) {
		uint64_t seed = 7;
		int64_t began = clock_ns(CLOCK_MONOTONIC);
		for (int i = 0; i < ROUNDS; i++) {
			uint64_t p = random_below(&seed, PROMPTS);
			const int *got =
			    prefixes_match(prompts->prefixes, prompts->blocks[p], BLOCKS);
			int most = 0;
			for (int r = 0; r < REPLICAS; r++)
				most = got[r] > most ? got[r] : most;
			*matched += most;
		}
		double us = (double)(clock_ns(CLOCK_MONOTONIC) - began) / 1000.0 / ROUNDS;
		best = us < best ? us : best;
	}
	return best;
}

static double note_us(const struct prompts *prompts)
{
	double best = 1e9;

	for (int pass = 0; pass < PASSES; pass++) {
		uint64_t seed = 11;
		int64_t began = clock_ns(CLOCK_MONOTONIC);
		for (int i = 0; i < ROUNDS / 10; i++)
			prefixes_note(prompts->prefixes, (int)random_below(&seed, REPLICAS),
			              prompts->blocks[random_below(&seed, PROMPTS)], BLOCKS);
		double us = (double)(clock_ns(CLOCK_MONOTONIC) - began) / 1000.0 / (ROUNDS / 10.0);
		best = us < best ? us : best;
	}
	return best;
}

/* The hashes of a body whose turns are of that many bytes. */
static double hash_us(uint64_t *sum)
{
	enum { BYTES = BLOCKS * BODY_BLOCK_BYTES };
	char *bytes = memory_alloc(BYTES);
	uint64_t hashes[BLOCKS], seed = 3;
	struct body_scan scan = { .turns = { 0, BYTES } };
	double best = 1e9;

	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = (char)('a' + (char)random_below(&seed, 26));
	for (int pass = 0; pass < PASSES; pass++) {
		int64_t began = clock_ns(CLOCK_MONOTONIC);
		for (int i = 0; i < ROUNDS / 100; i++) {
			body_prefix((struct text){ bytes, BYTES }, &scan, (uint64_t)i, hashes,
			            BLOCKS);
			*sum += hashes[BLOCKS - 1];
		}
		double us = (double)(clock_ns(CLOCK_MONOTONIC) - began) / 1000.0 / (ROUNDS / 100.0);
		best = us < best ? us : best;
	}
	free(bytes);
	return best;
}

int main(int argc, char **argv)
{
	struct prompts prompts;
	int64_t matched = 0;
	uint64_t sum = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: bench_prefix JSON-FILE\n");
		return 2;
	}
	prompts_make(&prompts);
	double look_up = match_us(&prompts, &matched), note = note_us(&prompts),
	       hash = hash_us(&sum);
	prefixes_free(prompts.prefixes);
	free(prompts.blocks);
	printf("a prompt of 100 KB, %d replicas with %d blocks each\n", REPLICAS, BLOCKS_EACH);
	printf("%-34s %8.2f us   at most 5 %s\n", "look-up among all replicas", look_up,
	       look_up <= 5 ? "" : "MISSED");
	printf("%-34s %8.2f us\n", "noting what a replica was sent", note);
	printf("%-34s %8.2f us   (once for each body)\n", "hashing the prompt", hash);
	printf("%.0f blocks matched on average (%llx)\n",
	       (double)matched / ((double)ROUNDS * PASSES), (unsigned long long)(sum & 0xf));
	FILE *file = fopen(argv[1], "w");
	if (!file ||
	    fprintf(file,
	            "{\"prefix_look_up_us\":%.3f,\"prefix_note_us\":%.3f,"
	            "\"prefix_hash_us\":%.3f}\n",
	            look_up, note, hash) < 0 ||
	    fclose(file) != 0) {
		fprintf(stderr, "bench_prefix: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	return look_up <= 5 ? 0 : 1;
}
