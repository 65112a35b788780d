/* Differences of 32-bit numbers, each from the one so many before it as the parameter says. */
#include "refrain_plugin.h"

static uint32_t number(const uint8_t *from) {
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static void put(uint8_t *to, uint32_t number) {
    for (int byte = 0; byte < 4; byte++)
        to[byte] = (uint8_t)(number >> 8 * byte);
}

static int64_t encode(uint8_t *bytes, size_t bytes_count, uint32_t distance) {
    for (size_t at = bytes_count / 4; at-- > distance;)
        put(bytes + 4 * at, number(bytes + 4 * at) - number(bytes + 4 * (at - distance)));
    return (int64_t)bytes_count;
}

static int64_t decode(uint8_t *bytes, size_t bytes_count, uint32_t distance) {
    for (size_t at = distance; at < bytes_count / 4; at++)
        put(bytes + 4 * at, number(bytes + 4 * at) + number(bytes + 4 * (at - distance)));
    return (int64_t)bytes_count;
}

#ifndef NUMBER
#define NUMBER 224
#endif
#ifndef NAME
#define NAME "numbers"
#endif
#ifndef ABI
#define ABI REFRAIN_PLUGIN_ABI
#endif
#ifndef FIRST
#define FIRST 1
#endif
#ifndef LAST
#define LAST 255
#endif
#ifndef MEMORY
#define MEMORY 0
#endif
#ifndef ENCODE
#define ENCODE encode
#endif
#ifndef DECODE
#define DECODE decode
#endif

/* Lies. */
#define UNUSED __attribute__((unused)) static int64_t
UNUSED short_length(uint8_t *b, size_t n, uint32_t p) { return encode(b, n, p) - 1; }
UNUSED long_length(uint8_t *b, size_t n, uint32_t p) { return encode(b, n, p), INT64_MAX; }
UNUSED negative(uint8_t *b, size_t n, uint32_t p) { return encode(b, n, p), INT64_MIN; }
UNUSED behind(uint8_t *b, size_t n, uint32_t p) { return b[n] = 1, encode(b, n, p); }
UNUSED other_every_time(uint8_t *b, size_t n, uint32_t p) {
    static uint8_t calls;
    b[0] ^= ++calls;
    return encode(b, n, p);
}
UNUSED undoes_less(uint8_t *b, size_t n, uint32_t p) { return decode(b, n / 2, p), (int64_t)n; }
UNUSED undoes_nothing(uint8_t *b, size_t n, uint32_t p) {
    (void)b; (void)n; (void)p;
    return REFRAIN_PLUGIN_DAMAGED;
}
UNUSED undoes_long(uint8_t *b, size_t n, uint32_t p) { return decode(b, n, p) + 1; }

static const refrain_filter_plugin_description description = {
    ABI, NUMBER, NAME, FIRST, LAST, MEMORY, ENCODE, DECODE,
};

const refrain_filter_plugin_description *refrain_filter_plugin(void) {
#ifdef NOTHING
    (void)&description;
    return NULL;
#else
    return &description;
#endif
}

#ifdef BOTH
const refrain_plugin_description *refrain_plugin(void) { return NULL; }
#endif
