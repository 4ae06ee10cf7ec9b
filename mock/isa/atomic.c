/* Atomics, lane by lane in order. Global ones are atomic on the host too, since waves run on several threads;
 * those of LDS need not be: a group has one thread. RDNA3 Shader ISA document, chapter 13 "Float memory
 * atomics", sections 16.15 to 16.18. */
#include "mock/isa/atomic.h"

#include <string.h>

#include "mock/isa/memory.h"
#include "mock/isa/uops.h"

/* A format of floats by its bits. */
struct format {
    uint64_t sign, exponent, quiet;
};
static const struct format f32 = {0x80000000u, 0x7f800000u, 0x00400000u};
static const struct format f64 = {1ull << 63, 0x7ffull << 52, 1ull << 51};

static bool is_nan(const struct format *f, uint64_t x)
{
    return (x & ~f->sign) > f->exponent;
}

static bool is_signaling(const struct format *f, uint64_t x)
{
    return is_nan(f, x) && !(x & f->quiet);
}

static uint64_t flushed(const struct format *f, uint64_t x)
{
    return x & f->exponent ? x : x & f->sign;
}

/* Whether a lies before b in the order of minima and maxima, in which -0 comes before +0; no NaN. */
static bool is_less(const struct format *f, uint64_t a, uint64_t b)
{
    if ((a ^ b) & f->sign)
        return a & f->sign;
    return a & f->sign ? b < a : a < b;
}

/* Section 13.3 "NaN handling": a signaling NaN comes out quiet, a quiet one gives way to a number, and what
 * comes out is one of the operands as it was, even where denormals are flushed for the comparison. */
static uint64_t selected(const struct format *f, uint64_t old, uint64_t data, bool want_less, bool flush)
{
    if (is_signaling(f, old) || is_signaling(f, data))
        return (is_signaling(f, old) ? old : data) | f->quiet;
    if (is_nan(f, old) || is_nan(f, data))
        return is_nan(f, old) ? data : old;
    uint64_t a = flush ? flushed(f, data) : data, b = flush ? flushed(f, old) : old;
    return (want_less ? is_less(f, a, b) : is_less(f, b, a)) ? data : old;
}

static uint64_t swapped_if_equal(const struct format *f, uint64_t old, uint64_t data, uint64_t with,
                                 bool flush)
{
    uint64_t a = flush ? flushed(f, old) : old, b = flush ? flushed(f, with) : with;
    bool is_equal = !is_nan(f, a) && (a == b || ((a | b) & ~f->sign) == 0);
    return !is_equal ? old : flush ? flushed(f, data) : data;
}

/* Always to the nearest even (section 13.1), which is how the host's thread rounds too. */
static uint32_t sum_f32(uint32_t old, uint32_t data)
{
    float a, b;
    memcpy(&a, &old, 4);
    memcpy(&b, &data, 4);
    a += b;
    memcpy(&old, &a, 4);
    return old;
}

/* What a float atomic does with denormals. */
enum { FLUSH_INPUTS = 1, FLUSH_OUTPUT = 2 };

static uint64_t combined_float(enum bw_atomic atomic, bool wide, uint64_t old, uint64_t data, uint64_t data2,
                               unsigned flush)
{
    const struct format *f = wide ? &f64 : &f32;
    bool inputs = flush & FLUSH_INPUTS;
    switch (atomic) {
    case BW_ATOMIC_CMPSWAP_F:
        return swapped_if_equal(f, old, data, data2, inputs);
    case BW_ATOMIC_MIN_F:
        return selected(f, old, data, true, inputs);
    case BW_ATOMIC_MAX_F:
        return selected(f, old, data, false, inputs);
    default: /* BW_ATOMIC_ADD_F, single precision only */
        old = inputs ? flushed(f, old) : old;
        old = sum_f32((uint32_t)old, (uint32_t)(inputs ? flushed(f, data) : data));
        return flush & FLUSH_OUTPUT ? flushed(f, old) : old;
    }
}

/* MODE's denormal bits, section 13.2: DS operations obey both of them, the others only that of the inputs;
 * memory's own adder always flushes its inputs. */
static unsigned flush_of(const struct bw_wave *wave, enum bw_atomic atomic, bool wide,
                         enum bw_address_form form, bool in_memory)
{
    unsigned denormal = wave->mode >> (wide ? 6 : 4) & 3;
    unsigned flush = (denormal & 1 ? 0 : FLUSH_INPUTS) | (denormal & 2 ? 0 : FLUSH_OUTPUT);
    if (atomic == BW_ATOMIC_ADD_F && in_memory)
        return FLUSH_INPUTS;
    return form == BW_ADDRESS_LDS ? flush : flush & FLUSH_INPUTS;
}

static int64_t sign_extended(bool wide, uint64_t value)
{
    return wide ? (int64_t)value : (int32_t)value;
}

/* What memory holds afterwards; operands are zero-extended when not wide. */
static uint64_t combined(enum bw_atomic atomic, bool wide, uint64_t old, uint64_t data, uint64_t data2,
                         unsigned flush)
{
    int64_t old_i = sign_extended(wide, old), data_i = sign_extended(wide, data);
    switch (atomic) {
    case BW_ATOMIC_SWAP:
        return data;
    case BW_ATOMIC_CMPSWAP:
        return old == data2 ? data : old;
    case BW_ATOMIC_ADD:
        return old + data;
    case BW_ATOMIC_SUB:
        return old - data;
    case BW_ATOMIC_RSUB:
        return data - old;
    case BW_ATOMIC_CSUB:
        return old < data ? 0 : old - data;
    case BW_ATOMIC_MIN_I:
        return data_i < old_i ? data : old;
    case BW_ATOMIC_MIN_U:
        return data < old ? data : old;
    case BW_ATOMIC_MAX_I:
        return data_i >= old_i ? data : old;
    case BW_ATOMIC_MAX_U:
        return data >= old ? data : old;
    case BW_ATOMIC_AND:
        return old & data;
    case BW_ATOMIC_OR:
        return old | data;
    case BW_ATOMIC_XOR:
        return old ^ data;
    case BW_ATOMIC_INC:
        return old >= data ? 0 : old + 1;
    case BW_ATOMIC_DEC:
        return old == 0 || old > data ? data : old - 1;
    case BW_ATOMIC_MSKOR:
        return (old & ~data) | data2;
    case BW_ATOMIC_WRAP:
        return old >= data ? old - data : old + data2;
    default:
        return combined_float(atomic, wide, old, data, data2, flush);
    }
}

static uint64_t perform32(uint32_t *memory, enum bw_atomic atomic, bool shared, const uint64_t data[2],
                          unsigned flush)
{
    if (!shared) {
        uint32_t old = *memory;
        *memory = (uint32_t)combined(atomic, false, old, data[0], data[1], flush);
        return old;
    }
    uint32_t old = __atomic_load_n(memory, __ATOMIC_RELAXED), new;
    do
        new = (uint32_t)combined(atomic, false, old, data[0], data[1], flush);
    while (!__atomic_compare_exchange_n(memory, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return old;
}

static uint64_t perform64(uint64_t *memory, enum bw_atomic atomic, bool shared, const uint64_t data[2],
                          unsigned flush)
{
    if (!shared) {
        uint64_t old = *memory;
        *memory = combined(atomic, true, old, data[0], data[1], flush);
        return old;
    }
    uint64_t old = __atomic_load_n(memory, __ATOMIC_RELAXED), new;
    do
        new = combined(atomic, true, old, data[0], data[1], flush);
    while (!__atomic_compare_exchange_n(memory, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return old;
}

static uint64_t element_of(const uint32_t *registers, unsigned lane, bool wide)
{
    return registers[lane] | (wide ? (uint64_t)registers[lane + BW_LANES] << 32 : 0);
}

/* Memory of one lane for an atomic, aligned; NULL on a fault, or with *dropped. */
static uint8_t *atomic_memory(struct bw_wave *wave, const struct bw_uop *uop, enum bw_address_form form,
                              unsigned lane, unsigned bytes, bool *dropped)
{
    uint64_t va = bw_lane_address(wave, uop, form, lane);
    enum bw_memory_kind kind = bw_lane_memory_kind(wave, uop, form, lane);
    if (kind == BW_MEMORY_MAPPED && va % bytes) { /* before it is translated */
        bw_wave_fault(wave, uop, BW_ISA_MISALIGNED, va, BW_ISA_ATOMIC, bw_wave_lane(uop, lane));
        *dropped = false;
        return NULL;
    }
    uint8_t *memory = bw_lane_memory(wave, uop, form, lane, bytes, BW_ISA_ATOMIC, dropped);
    if (!memory || kind != BW_MEMORY_LDS || va % bytes == 0)
        return memory;
    bw_wave_fault(wave, uop, BW_ISA_LDS_MISALIGNED, va, BW_ISA_ATOMIC, bw_wave_lane(uop, lane));
    return NULL;
}

uint64_t bw_atomic_perform(struct bw_wave *wave, const struct bw_uop *uop, unsigned lane, uint8_t *memory)
{
    bool wide = uop->f & BW_ATOMIC_WIDE;
    enum bw_atomic atomic = (enum bw_atomic)(uop->f & 0xff);
    enum bw_address_form form = (enum bw_address_form)(uop->f >> 8 & 0xff);
    const uint32_t *data = BW_AT(const uint32_t, wave, uop->b);
    bool is_pair = atomic == BW_ATOMIC_CMPSWAP || atomic == BW_ATOMIC_CMPSWAP_F;
    const uint32_t *data2 = uop->f & BW_ATOMIC_DATA2_SEPARATE ? BW_AT(const uint32_t, wave, uop->c)
                            : is_pair                         ? data + (wide ? 2 : 1) * BW_LANES
                                                              : data;
    uint64_t values[2] = {element_of(data, lane, wide), element_of(data2, lane, wide)};
    bool in_memory = memory < wave->lds || memory >= wave->lds + wave->lds_bytes;
    unsigned flush = flush_of(wave, atomic, wide, form, in_memory);
    return wide ? perform64((uint64_t *)(void *)memory, atomic, in_memory, values, flush)
                : perform32((uint32_t *)(void *)memory, atomic, in_memory, values, flush);
}

void bw_atomic_return(struct bw_wave *wave, int32_t offset, uint32_t exec, const uint64_t *values, bool wide)
{
    uint32_t *d = BW_AT(uint32_t, wave, offset);
    for (; exec; exec &= exec - 1) {
        unsigned lane = (unsigned)__builtin_ctz(exec);
        d[lane] = (uint32_t)values[lane];
        if (wide)
            d[lane + BW_LANES] = (uint32_t)(values[lane] >> 32);
    }
}

static const struct bw_uop *x_ATOMIC(struct bw_wave *wave, const struct bw_uop *uop)
{
    enum bw_address_form form = (enum bw_address_form)(uop->f >> 8 & 0xff);
    uint32_t exec = *BW_AT(uint32_t, wave, uop->x);
    bool wide = uop->f & BW_ATOMIC_WIDE, dropped;
    uint64_t old[BW_LANES];
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint8_t *memory = atomic_memory(wave, uop, form, lane, wide ? 8 : 4, &dropped);
        if (!memory && !dropped)
            return NULL;
        old[lane] = memory ? bw_atomic_perform(wave, uop, lane, memory) : 0;
    }
    if (uop->f & BW_ATOMIC_RETURN)
        bw_atomic_return(wave, uop->d, exec, old, wide);
    return uop + 1;
}

/* DS_STOREXCHG_2ADDR: each lane reads both elements, then writes both. uop->g and uop->e are the two offsets
 * in bytes, b and c the data, f as for ATOMIC. */
static const struct bw_uop *x_LDS_EXCHANGE_PAIR(struct bw_wave *wave, const struct bw_uop *uop)
{
    uint32_t exec = *BW_AT(uint32_t, wave, uop->x);
    bool wide = uop->f & BW_ATOMIC_WIDE, dropped;
    unsigned bytes = wide ? 8 : 4;
    uint64_t old[2][BW_LANES] = {{0}};
    struct bw_uop second = *uop;
    second.g = uop->e;
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint8_t *memory[2];
        for (unsigned i = 0; i < 2; i++) {
            memory[i] = atomic_memory(wave, i ? &second : uop, BW_ADDRESS_LDS, lane, bytes, &dropped);
            if (!memory[i] && !dropped)
                return NULL;
            if (memory[i])
                memcpy(&old[i][lane], memory[i], bytes);
        }
        for (unsigned i = 0; i < 2; i++) {
            uint64_t value = element_of(BW_AT(const uint32_t, wave, i ? uop->c : uop->b), lane, wide);
            if (memory[i])
                memcpy(memory[i], &value, bytes);
        }
    }
    bw_atomic_return(wave, uop->d, exec, old[0], wide);
    bw_atomic_return(wave, uop->d + (int32_t)bytes / 4 * BW_VREG_BYTES, exec, old[1], wide);
    return uop + 1;
}

/* Two dwords, each exchanged where its datum's highest bit is set, which is not stored; the address is taken
 * modulo 64 KiB and loses its low three bits. */
static const struct bw_uop *x_DS_CONDXCHG32_RTN_B64(struct bw_wave *wave, const struct bw_uop *uop)
{
    uint32_t exec = *BW_AT(uint32_t, wave, uop->x);
    const uint32_t *data = BW_AT(const uint32_t, wave, uop->b);
    uint64_t old[BW_LANES];
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint32_t words[2] = {0},
                 address = (uint32_t)bw_lane_address(wave, uop, BW_ADDRESS_LDS, lane) & 0xfff8;
        for (unsigned i = 0; i < 2 && address + 4 * i + 4 <= wave->lds_bytes; i++) {
            uint32_t datum = data[i * BW_LANES + lane], stored = datum & 0x7fffffff;
            memcpy(&words[i], wave->lds + address + 4 * i, 4);
            if (datum >> 31)
                memcpy(wave->lds + address + 4 * i, &stored, 4);
        }
        old[lane] = words[0] | (uint64_t)words[1] << 32;
    }
    bw_atomic_return(wave, uop->d, exec, old, true);
    return uop + 1;
}

/* DS_APPEND and DS_CONSUME: the count of active lanes is added to, or taken from, one dword at M0[15:0] +
 * offset; every lane gets the old value. uop->a is 1 or -1, uop->c the distance to the second half of d
 * (wave64). */
static const struct bw_uop *x_LDS_APPEND(struct bw_wave *wave, const struct bw_uop *uop)
{
    uint64_t exec = uop->c ? bw_sgpr64(wave, BW_OFFSET_SGPR(BW_SREG_EXEC_LO)) : wave->sgpr[BW_SREG_EXEC_LO];
    uint64_t address = (wave->sgpr[BW_SREG_M0] & 0xffff) + (uint64_t)(uint32_t)uop->g;
    uint32_t old = 0;
    if (address % 4)
        return bw_wave_fault(wave, uop, BW_ISA_LDS_MISALIGNED, address, BW_ISA_ATOMIC, 0);
    if (address + 4 <= wave->lds_bytes) {
        memcpy(&old, wave->lds + address, 4);
        uint32_t new = old + (uint32_t)uop->a *(uint32_t)__builtin_popcountll(exec);
        memcpy(wave->lds + address, &new, 4);
    }
    for (; exec; exec &= exec - 1) {
        unsigned lane = (unsigned)__builtin_ctzll(exec);
        BW_AT(uint32_t, wave, uop->d + (lane >= BW_LANES ? uop->c : 0))[lane % BW_LANES] = old;
    }
    return uop + 1;
}

static const struct bw_uop_row rows[] = {
    {BW_UOP_ATOMIC, x_ATOMIC},
    {BW_UOP_LDS_APPEND, x_LDS_APPEND},
    {BW_UOP_LDS_EXCHANGE_PAIR, x_LDS_EXCHANGE_PAIR},
    {BW_GFX11_DS_CONDXCHG32_RTN_B64, x_DS_CONDXCHG32_RTN_B64},
};
const struct bw_uop_table bw_plain_atomic = {rows, sizeof rows / sizeof rows[0]};
