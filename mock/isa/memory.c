/* Memory accesses lane by lane: every form, every size, faults by lane. */
#include "mock/isa/memory.h"

#include <string.h>

/* Byte offset into the wave's scratch memory -> address. Scratch is swizzled so that the same dword of all
 * lanes lies together (RDNA3 ISA document, section 11.4 "Scratch"; LLVM AMDGPUUsage, "Flat scratch"). */
static uint64_t scratch_address(const struct bw_wave *wave, uint64_t offset, unsigned lane)
{
    return wave->scratch_va + (offset & ~3ull) * wave->wave_size + 4 * lane + (offset & 3);
}

/* Lane number in the wave: the second half of a wave64 is at the high EXEC word. */
static unsigned wave_lane(const struct bw_uop *uop, unsigned lane)
{
    return lane + (uop->x == BW_OFFSET_SGPR(BW_SREG_EXEC_HI) ? BW_LANES : 0);
}

static uint64_t vector_address(const struct bw_wave *wave, const struct bw_uop *uop, unsigned lane)
{
    const uint32_t *low = BW_AT(const uint32_t, wave, uop->a);
    return ((uint64_t)low[lane + BW_LANES] << 32 | low[lane]) + (uint64_t)(int64_t)uop->g;
}

static uint64_t scratch_offset(const struct bw_wave *wave, const struct bw_uop *uop, unsigned lane)
{
    uint32_t offset = (uint32_t)uop->g;
    if (uop->a)
        offset += BW_AT(const uint32_t, wave, uop->a)[lane];
    if (uop->c)
        offset += *BW_AT(const uint32_t, wave, uop->c);
    return offset;
}

static uint8_t *lds_memory(struct bw_wave *wave, uint64_t offset, unsigned bytes, bool *dropped)
{
    /* Out of range: loads return 0, stores are dropped (RDNA3 ISA document, section 12.1 "LDS out of range").
     */
    *dropped = offset > wave->lds_bytes || wave->lds_bytes - offset < bytes;
    return *dropped ? NULL : wave->lds + offset;
}

static uint8_t *mapped_memory(struct bw_wave *wave, const struct bw_uop *uop, uint64_t va, unsigned lane,
                              unsigned bytes, enum bw_isa_access access)
{
    struct bw_worker *worker = wave->worker;
    struct bw_range *range = access == BW_ISA_READ    ? &worker->read[uop->e]
                             : access == BW_ISA_WRITE ? &worker->write[uop->e]
                                                      : &worker->atomic[uop->e];
    uint64_t offset = va - range->start_va;
    if (offset < range->size_bytes && range->size_bytes - offset >= bytes)
        return range->host + offset;
    uint8_t *memory = bw_worker_resolve(worker, range, va, bytes, access);
    if (!memory)
        bw_wave_fault(wave, uop, BW_ISA_MEMORY_FAULT, va, access, wave_lane(uop, lane));
    return memory;
}

static uint8_t *scratch_memory(struct bw_wave *wave, const struct bw_uop *uop, uint64_t offset, unsigned lane,
                               unsigned bytes, enum bw_isa_access access)
{
    uint64_t lane_bytes = wave->scratch_bytes / wave->wave_size;
    if (offset > lane_bytes || lane_bytes - offset < bytes) {
        bw_wave_fault(wave, uop, BW_ISA_MEMORY_FAULT, wave->private_aperture + offset, access,
                      wave_lane(uop, lane));
        bw_wave_explain(wave,
                        "beyond the wave's scratch of %llu bytes a lane: ", (unsigned long long)lane_bytes);
        return NULL;
    }
    return mapped_memory(wave, uop, scratch_address(wave, offset, wave_lane(uop, lane)), lane,
                         bytes < 4 ? bytes : 4, access);
}

static uint64_t scalar_based_address(const struct bw_wave *wave, const struct bw_uop *uop, unsigned lane)
{
    uint64_t va = bw_sgpr64(wave, uop->c) + (uint64_t)(int64_t)uop->g;
    return uop->a ? va + BW_AT(const uint32_t, wave, uop->a)[lane] : va;
}

static uint32_t lds_offset(const struct bw_wave *wave, const struct bw_uop *uop, unsigned lane)
{
    return BW_AT(const uint32_t, wave, uop->a)[lane] + (uint32_t)uop->g;
}

uint64_t bw_lane_address(const struct bw_wave *wave, const struct bw_uop *uop, enum bw_address_form form,
                         unsigned lane)
{
    switch (form) {
    case BW_ADDRESS_GLOBAL_SCALAR:
        return scalar_based_address(wave, uop, lane);
    case BW_ADDRESS_SCRATCH:
        return scratch_offset(wave, uop, lane);
    case BW_ADDRESS_LDS:
        return lds_offset(wave, uop, lane);
    default:
        return vector_address(wave, uop, lane);
    }
}

uint8_t *bw_lane_memory(struct bw_wave *wave, const struct bw_uop *uop, enum bw_address_form form,
                        unsigned lane, unsigned bytes, enum bw_isa_access access, bool *dropped)
{
    uint64_t va;
    *dropped = false;
    switch (form) {
    case BW_ADDRESS_GLOBAL_VECTOR:
        return mapped_memory(wave, uop, vector_address(wave, uop, lane), lane, bytes, access);
    case BW_ADDRESS_GLOBAL_SCALAR:
        return mapped_memory(wave, uop, scalar_based_address(wave, uop, lane), lane, bytes, access);
    case BW_ADDRESS_FLAT:
        va = vector_address(wave, uop, lane);
        if (va >> 32 == wave->shared_aperture >> 32) {
            uint8_t *memory = lds_memory(wave, (uint32_t)va, bytes, dropped);
            if (!memory) /* through the aperture it is a memory violation */
                bw_wave_fault(wave, uop, BW_ISA_LDS_OUT_OF_RANGE, va, access, wave_lane(uop, lane));
            *dropped = false;
            return memory;
        }
        if (va >> 32 == wave->private_aperture >> 32)
            return scratch_memory(wave, uop, (uint32_t)va, lane, bytes, access);
        return mapped_memory(wave, uop, va, lane, bytes, access);
    case BW_ADDRESS_SCRATCH:
        return scratch_memory(wave, uop, scratch_offset(wave, uop, lane), lane, bytes, access);
    case BW_ADDRESS_LDS:
        return lds_memory(wave, lds_offset(wave, uop, lane), bytes, dropped);
    }
    return NULL;
}

/* Scratch is not contiguous for a lane beyond one dword: there, and only there, an element is moved dword by
 * dword. */
static bool is_scratch(const struct bw_wave *wave, const struct bw_uop *uop, enum bw_address_form form,
                       unsigned lane)
{
    return form == BW_ADDRESS_SCRATCH ||
           (form == BW_ADDRESS_FLAT && vector_address(wave, uop, lane) >> 32 == wave->private_aperture >> 32);
}

/* Calls for each piece of the lane's element: copies to or from data. False on a fault. */
static bool move_element(struct bw_wave *wave, const struct bw_uop *uop, enum bw_address_form form,
                         unsigned lane, unsigned bytes, enum bw_isa_access access, uint8_t *data)
{
    struct bw_uop piece = *uop;
    bool scratch = is_scratch(wave, uop, form, lane);
    for (unsigned done = 0, step; done < bytes; done += step) {
        bool dropped;
        step = bytes;
        if (scratch) {
            uint64_t offset = (form == BW_ADDRESS_SCRATCH ? scratch_offset(wave, uop, lane)
                                                          : (uint32_t)vector_address(wave, uop, lane)) +
                              done;
            step = 4 - (unsigned)(offset & 3);
            step = step < bytes - done ? step : bytes - done;
            piece.g = uop->g + (int32_t)done;
        }
        uint8_t *memory = bw_lane_memory(wave, &piece, form, lane, step, access, &dropped);
        if (!memory && !dropped)
            return false;
        if (access == BW_ISA_READ && dropped)
            memset(data + done, 0, step);
        else if (access == BW_ISA_READ)
            memcpy(data + done, memory, step);
        else if (!dropped)
            memcpy(memory, data + done, step);
    }
    return true;
}

static uint32_t extended(enum bw_element element, uint32_t raw, uint32_t old)
{
    switch (element) {
    case BW_ELEMENT_U8:
        return raw & 0xff;
    case BW_ELEMENT_I8:
        return (uint32_t)(int8_t)raw;
    case BW_ELEMENT_U16:
        return raw & 0xffff;
    case BW_ELEMENT_I16:
        return (uint32_t)(int16_t)raw;
    case BW_ELEMENT_D16_U8:
        return (old & 0xffff0000u) | (raw & 0xff);
    case BW_ELEMENT_D16_I8:
        return (old & 0xffff0000u) | (uint16_t)(int8_t)raw;
    case BW_ELEMENT_D16_B16:
        return (old & 0xffff0000u) | (raw & 0xffff);
    case BW_ELEMENT_D16_HI_U8:
        return (old & 0xffff) | (raw & 0xff) << 16;
    case BW_ELEMENT_D16_HI_I8:
        return (old & 0xffff) | (uint32_t)(int8_t)raw << 16;
    case BW_ELEMENT_D16_HI_B16:
        return (old & 0xffff) | raw << 16;
    default:
        return raw;
    }
}

const struct bw_uop *bw_load_lanes(struct bw_wave *wave, const struct bw_uop *uop, enum bw_address_form form,
                                   enum bw_element element)
{
    uint32_t loaded[4][BW_LANES];
    uint32_t exec = *BW_AT(uint32_t, wave, uop->x);
    unsigned bytes = bw_element_bytes(element), dwords = bytes < 4 ? 1 : bytes / 4;
    uint32_t *d = BW_AT(uint32_t, wave, uop->d);
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint32_t raw[4] = {0};
        if (!move_element(wave, uop, form, lane, bytes, BW_ISA_READ, (uint8_t *)raw))
            return NULL;
        for (unsigned i = 0; i < dwords; i++)
            loaded[i][lane] = raw[i];
    }
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        for (unsigned i = 0; i < dwords; i++)
            d[i * BW_LANES + lane] = extended(element, loaded[i][lane], d[i * BW_LANES + lane]);
    }
    return uop + 1;
}

const struct bw_uop *bw_store_lanes(struct bw_wave *wave, const struct bw_uop *uop, enum bw_address_form form,
                                    enum bw_element element)
{
    unsigned bytes = bw_element_bytes(element), dwords = bytes < 4 ? 1 : bytes / 4;
    const uint32_t *data = BW_AT(const uint32_t, wave, uop->b);
    for (uint32_t rest = *BW_AT(uint32_t, wave, uop->x); rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint32_t raw[4];
        for (unsigned i = 0; i < dwords; i++)
            raw[i] = data[i * BW_LANES + lane];
        if (element >= BW_ELEMENT_D16_HI_U8)
            raw[0] >>= 16;
        if (!move_element(wave, uop, form, lane, bytes, BW_ISA_WRITE, (uint8_t *)raw))
            return NULL;
    }
    return uop + 1;
}
