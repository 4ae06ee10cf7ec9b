/* Atomics, lane by lane in order. Global ones are atomic on the host too, since waves run on several threads;
 * those of LDS need not be: a group has one thread. RDNA3 Shader ISA document, sections 16.13 to 16.16. */
#include "mock/isa/atomic.h"

#include <math.h>
#include <string.h>

#include "mock/isa/memory.h"
#include "mock/isa/uops.h"

static float as_f32(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, 4);
    return value;
}

static double as_f64(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

static uint64_t of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static uint64_t combined_float(enum bw_atomic atomic, bool wide, uint64_t old, uint64_t data, uint64_t data2)
{
    double a = wide ? as_f64(old) : as_f32(old), b = wide ? as_f64(data) : as_f32(data);
    switch (atomic) {
    case BW_ATOMIC_CMPSWAP_F:
        return a == (wide ? as_f64(data2) : as_f32(data2)) ? data : old;
    case BW_ATOMIC_MIN_F:
        return b < a ? data : old;
    case BW_ATOMIC_MAX_F:
        return b > a ? data : old;
    default: /* BW_ATOMIC_ADD_F, single precision only */
        return of_f32(as_f32(old) + as_f32(data));
    }
}

static int64_t sign_extended(bool wide, uint64_t value)
{
    return wide ? (int64_t)value : (int32_t)value;
}

/* What memory holds afterwards; operands are zero-extended when not wide. */
static uint64_t combined(enum bw_atomic atomic, bool wide, uint64_t old, uint64_t data, uint64_t data2)
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
        return combined_float(atomic, wide, old, data, data2);
    }
}

static uint64_t perform32(uint32_t *memory, enum bw_atomic atomic, bool shared, uint64_t data, uint64_t data2)
{
    if (!shared) {
        uint32_t old = *memory;
        *memory = (uint32_t)combined(atomic, false, old, data, data2);
        return old;
    }
    uint32_t old = __atomic_load_n(memory, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(memory, &old, (uint32_t)combined(atomic, false, old, data, data2),
                                        false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        continue;
    return old;
}

static uint64_t perform64(uint64_t *memory, enum bw_atomic atomic, bool shared, uint64_t data, uint64_t data2)
{
    if (!shared) {
        uint64_t old = *memory;
        *memory = combined(atomic, true, old, data, data2);
        return old;
    }
    uint64_t old = __atomic_load_n(memory, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(memory, &old, combined(atomic, true, old, data, data2), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        continue;
    return old;
}

static uint64_t element_of(const uint32_t *registers, unsigned lane, bool wide)
{
    return registers[lane] | (wide ? (uint64_t)registers[lane + BW_LANES] << 32 : 0);
}

/* One lane; false on a fault. */
static bool atomic_lane(struct bw_wave *wave, const struct bw_uop *uop, unsigned lane, uint64_t *old)
{
    bool wide = uop->f & BW_ATOMIC_WIDE, dropped;
    enum bw_atomic atomic = (enum bw_atomic)(uop->f & 0xff);
    enum bw_address_form form = (enum bw_address_form)(uop->f >> 8 & 0xff);
    unsigned bytes = wide ? 8 : 4;
    uint8_t *memory = bw_lane_memory(wave, uop, form, lane, bytes, BW_ISA_ATOMIC, &dropped);
    *old = 0;
    if (!memory)
        return dropped;
    if ((uintptr_t)memory % bytes) {
        bw_wave_fault(wave, uop, BW_ISA_MISALIGNED, bw_lane_address(wave, uop, form, lane), BW_ISA_ATOMIC,
                      lane);
        return false;
    }
    const uint32_t *data = BW_AT(const uint32_t, wave, uop->b);
    bool is_pair = atomic == BW_ATOMIC_CMPSWAP || atomic == BW_ATOMIC_CMPSWAP_F;
    const uint32_t *data2 = uop->f & BW_ATOMIC_DATA2_SEPARATE ? BW_AT(const uint32_t, wave, uop->c)
                            : is_pair                         ? data + (wide ? 2 : 1) * BW_LANES
                                                              : data;
    uint64_t value = element_of(data, lane, wide), value2 = element_of(data2, lane, wide);
    bool shared = memory < wave->lds || memory >= wave->lds + wave->lds_bytes;
    *old = wide ? perform64((uint64_t *)(void *)memory, atomic, shared, value, value2)
                : perform32((uint32_t *)(void *)memory, atomic, shared, value, value2);
    return true;
}

static const struct bw_uop *x_ATOMIC(struct bw_wave *wave, const struct bw_uop *uop)
{
    uint32_t exec = *BW_AT(uint32_t, wave, uop->x);
    uint64_t old[BW_LANES];
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        if (!atomic_lane(wave, uop, lane, &old[lane]))
            return NULL;
    }
    if (uop->f & BW_ATOMIC_RETURN) {
        uint32_t *d = BW_AT(uint32_t, wave, uop->d);
        for (uint32_t rest = exec; rest; rest &= rest - 1) {
            unsigned lane = (unsigned)__builtin_ctz(rest);
            d[lane] = (uint32_t)old[lane];
            if (uop->f & BW_ATOMIC_WIDE)
                d[lane + BW_LANES] = (uint32_t)(old[lane] >> 32);
        }
    }
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

static const struct bw_uop_row rows[] = {{BW_UOP_ATOMIC, x_ATOMIC}, {BW_UOP_LDS_APPEND, x_LDS_APPEND}};
const struct bw_uop_table bw_plain_atomic = {rows, sizeof rows / sizeof rows[0]};
