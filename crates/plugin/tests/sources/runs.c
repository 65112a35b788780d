/* Runs: pairs of a count and a byte. */
#include "refrain_plugin.h"

static int64_t encode(const uint8_t *raw, size_t raw_bytes, uint8_t *out, size_t out_bytes,
                      int32_t level) {
    size_t at = 0, to = 0;
    (void)level;
    while (at < raw_bytes) {
        size_t count = 1;
        while (count < 255 && at + count < raw_bytes && raw[at + count] == raw[at])
            count++;
        if (out_bytes - to < 2)
            return REFRAIN_PLUGIN_NO_ROOM;
        out[to++] = (uint8_t)count;
        out[to++] = raw[at];
        at += count;
    }
    return (int64_t)to;
}

static int64_t decode(const uint8_t *data, size_t data_bytes, uint8_t *out, size_t out_bytes) {
    size_t to = 0;
    if (data_bytes % 2 != 0)
        return REFRAIN_PLUGIN_DAMAGED;
    for (size_t at = 0; at < data_bytes; at += 2) {
        if (data[at] == 0 || data[at] > out_bytes - to)
            return REFRAIN_PLUGIN_DAMAGED;
        for (size_t count = data[at]; count > 0; count--)
            out[to++] = data[at + 1];
    }
    return to == out_bytes ? (int64_t)to : REFRAIN_PLUGIN_DAMAGED;
}

#ifndef NUMBER
#define NUMBER 65024
#endif
#ifndef NAME
#define NAME "runs"
#endif
#ifndef ABI
#define ABI REFRAIN_PLUGIN_ABI
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
UNUSED long_length(const uint8_t *r, size_t n, uint8_t *o, size_t m, int32_t l) {
    (void)r; (void)o; (void)l; (void)n;
    return (int64_t)m + 1;
}
UNUSED no_length(const uint8_t *r, size_t n, uint8_t *o, size_t m, int32_t l) {
    (void)r; (void)o; (void)l; (void)n; (void)m;
    return 0;
}
UNUSED negative(const uint8_t *r, size_t n, uint8_t *o, size_t m, int32_t l) {
    (void)r; (void)o; (void)l; (void)n; (void)m;
    return INT64_MIN;
}
UNUSED no_room(const uint8_t *r, size_t n, uint8_t *o, size_t m, int32_t l) {
    (void)r; (void)o; (void)l; (void)n; (void)m;
    return REFRAIN_PLUGIN_NO_ROOM;
}
UNUSED short_length(const uint8_t *r, size_t n, uint8_t *o, size_t m, int32_t l) {
    int64_t length = encode(r, n, o, m, l);
    return length > 2 ? length - 2 : length;
}
UNUSED behind(const uint8_t *r, size_t n, uint8_t *o, size_t m, int32_t l) {
    o[m] = 1;
    return encode(r, n, o, m, l);
}
UNUSED decodes_less(const uint8_t *d, size_t n, uint8_t *o, size_t m) {
    return decode(d, n, o, m) - 1;
}
UNUSED decodes_more(const uint8_t *d, size_t n, uint8_t *o, size_t m) {
    int64_t length = decode(d, n, o, m);
    return length > 0 ? INT64_MAX : length;
}
UNUSED decodes_and_fails(const uint8_t *d, size_t n, uint8_t *o, size_t m) {
    decode(d, n, o, m);
    return REFRAIN_PLUGIN_DAMAGED;
}
UNUSED decodes_wrong(const uint8_t *d, size_t n, uint8_t *o, size_t m) {
    int64_t length = decode(d, n, o, m);
    if (length > 100)
        o[50] ^= 1;
    return length;
}
UNUSED believes(const uint8_t *d, size_t n, uint8_t *o, size_t m) {
    decode(d, n, o, m);
    return (int64_t)m;
}

static const refrain_plugin_description description = {
    ABI, NUMBER, NAME, MEMORY, 0, ENCODE, DECODE,
};

const refrain_plugin_description *refrain_plugin(void) {
#ifdef NOTHING
    (void)&description;
    return NULL;
#else
    return &description;
#endif
}
