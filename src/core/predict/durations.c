/* durations.c - durations on a logarithmic scale, in integers */
#include "core/predict/durations.h"

#include "base/error.h"
#include "base/number.h"

/* Each squaring of a number between 1 and 2 yields the next binary digit of its
 * logarithm. */
int32_t log_of(int64_t value)
{
	INVARIANT(value > 0);
	int whole = 63 - __builtin_clzll((uint64_t)value);
	uint64_t x = (uint64_t)value << (63 - whole);
	int32_t log = whole;
	for (int i = 0; i <= LOG_BITS; i++) {
		x = (uint64_t)((uint128)x * x >> 64);
		bool digit = x >> 63;
		if (!digit)
			x <<= 1;
		log = 2 * log + digit;
	}
	return (log + 1) / 2;
}

/* 2^(1/2), 2^(1/4), ... in 1/2^63. */
static const uint64_t roots[LOG_BITS] = {
	0xb504f333f9de6484U, 0x9837f0518db8a96fU, 0x8b95c1e3ea8bd6e7U, 0x85aac367cc487b15U,
	0x82cd8698ac2ba1d7U, 0x8164d1f3bc030773U, 0x80b1ed4fd999ab6cU, 0x8058d7d2d5e5f6b1U,
	0x802c6436d0e04f51U, 0x8016302f17467628U,
};

int64_t power_of(int32_t log)
{
	uint64_t x = UINT64_C(1) << 63;

	INVARIANT(log >= 0);
	if (log >= LOG_MAX)
		return INT64_MAX;
	for (int i = 0; i < LOG_BITS; i++)
		if (log >> (LOG_BITS - 1 - i) & 1)
			x = (uint64_t)((uint128)x * roots[i] >> 63);
	return (int64_t)(((x >> (62 - log / LOG_ONE)) + 1) / 2);
}

int32_t duration_place(int64_t duration_ms)
{
	int32_t place = duration_ms > 0 ? log_of(duration_ms) - BIN_LOG_FIRST : 0;

	if (place < 0)
		return 0;
	return place < DURATION_BINS * BIN_LOG ? place : DURATION_BINS * BIN_LOG - 1;
}

/* Where log_of() rounds up to the next quarter octave, in 1/2^63. */
static const uint64_t quarters[] = {
	UINT64_C(0x982ac09343cd34ec),
	UINT64_C(0xb4f544bebc676c5a),
	UINT64_C(0xd73256c5362624e7),
	UINT64_C(0xffe9d2b2f7db2757),
};

int32_t duration_bin(int64_t duration_ms)
{
	if (duration_ms <= 0)
		return 0;
	int whole = 63 - __builtin_clzll((uint64_t)duration_ms);
	uint64_t x = (uint64_t)duration_ms << (63 - whole);
	int32_t bin = whole * (LOG_ONE / BIN_LOG) - BIN_LOG_FIRST / BIN_LOG;
	for (int i = 0; i < LOG_ONE / BIN_LOG; i++)
		bin += x >= quarters[i];
	if (bin < 0)
		return 0;
	return bin < DURATION_BINS ? bin : DURATION_BINS - 1;
}

int64_t duration_at(int32_t place)
{
	INVARIANT(place >= 0 && place <= DURATION_BINS * BIN_LOG);
	return power_of(place + BIN_LOG_FIRST);
}
