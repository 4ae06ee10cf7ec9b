/* Memory accesses lane by lane: every form, every size, faults by lane. */
#include "mock/isa/memory.h"

#include <string.h>

/* Byte offset into the wave's scratch memory -> address. Scratch is swizzled so that the same dword of all
 * lanes lies together (RDNA3 ISA document, section 11.4 "Scratch"; LLVM AMDGPUUsage, "Flat scratch"). */
static uint64_t scratch_address(const struct bw_wave *wave, uint64_t offset, unsigned lane)
{
    return wave->scratch_va + (offset & ~3ull) * wave->wave_size + 4 * lane + (offset & 3);
}

static uint64_t vector_base(const struct bw_wave *wave, const struct bw_uop *uop, unsigned lane)
{
    const uint32_t *low = BW_AT(const uint32_t, wave, uop->a);
    return (uint64_t)low[lane + BW_LANES] << 32 | low[lane];
}

static uint64_t vector_address(const struct bw_wave *wave, const struct bw_uop *uop, unsigned lane)
{
    return vector_base(wave, uop, lane) + (uint64_t)(int64_t)uop->g;
}

/* Registers are unsigned, their sum with the offset must not be negative, and nothing wraps (RDNA3 ISA
 * document, section 11.2). */
static uint64_t scratch_offset(const struct bw_wave *wave, const struct bw_uop *uop, unsigned lane)
{
    uint64_t offset = (uint64_t)(int64_t)uop->g;
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

static struct bw_range *range_of(struct bw_worker *worker, const struct bw_uop *uop,
                                 enum bw_isa_access access)
{
    return access == BW_ISA_READ    ? &worker->read[uop->e]
           : access == BW_ISA_WRITE ? &worker->write[uop->e]
                                    : &worker->atomic[uop->e];
}

/* A translation fails by itself, page by page: the fault is at the first byte that may not be reached, which
 * an access that began before the edge of a mapping has not named. */
static void fault_inside(struct bw_wave *wave, const struct bw_uop *uop, uint64_t va, unsigned lane,
                         unsigned bytes, uint64_t denied_va, enum bw_isa_access access)
{
    bw_wave_fault(wave, uop, BW_ISA_MEMORY_FAULT, denied_va, access, bw_wave_lane(uop, lane));
    if (denied_va != va)
        bw_wave_explain(wave, "of %u bytes from 0x%llx on: ", bytes, (unsigned long long)va);
}

/* The first of the bytes that may not be accessed so; some may not, or they lie in several mappings. */
static uint64_t first_denied(struct bw_wave *wave, uint64_t va, unsigned bytes, enum bw_isa_access access)
{
    const struct bw_isa_memory *memory = &wave->worker->memory;
    uint64_t at = va, start, valid;
    while (at - va < bytes && memory->resolve(memory->user, at, access, &start, &valid))
        at += valid;
    return at - va < bytes ? at : va;
}

uint8_t *bw_mapped_memory(struct bw_wave *wave, const struct bw_uop *uop, uint64_t va, unsigned lane,
                          unsigned bytes, enum bw_isa_access access)
{
    struct bw_worker *worker = wave->worker;
    struct bw_range *range = range_of(worker, uop, access);
    uint64_t offset = va - range->start_va;
    if (offset < range->size_bytes && range->size_bytes - offset >= bytes)
        return range->host + offset;
    uint8_t *memory = bw_worker_resolve(worker, range, va, bytes, access);
    if (!memory)
        fault_inside(wave, uop, va, lane, bytes, first_denied(wave, va, bytes, access), access);
    return memory;
}

/* Faults by name where hardware would reach into another wave's scratch. */
static bool is_in_scratch(struct bw_wave *wave, const struct bw_uop *uop, uint64_t offset, unsigned lane,
                          unsigned bytes, enum bw_isa_access access)
{
    uint64_t lane_bytes = wave->scratch_bytes / wave->wave_size;
    if (offset <= lane_bytes && lane_bytes - offset >= bytes)
        return true;
    bw_wave_fault(wave, uop, BW_ISA_MEMORY_FAULT, wave->private_aperture + offset, access,
                  bw_wave_lane(uop, lane));
    bw_wave_explain(wave, "beyond the wave's scratch of %llu bytes a lane: ", (unsigned long long)lane_bytes);
    return false;
}

/* For atomics: an element of one dword. */
static uint8_t *scratch_memory(struct bw_wave *wave, const struct bw_uop *uop, uint64_t offset, unsigned lane,
                               unsigned bytes, enum bw_isa_access access)
{
    if (!is_in_scratch(wave, uop, offset, lane, bytes, access))
        return NULL;
    if (bytes > 4 || offset % 4) {
        bw_wave_fault(wave, uop, offset % 4 ? BW_ISA_MISALIGNED : BW_ISA_UNSUPPORTED,
                      wave->private_aperture + offset, access, bw_wave_lane(uop, lane));
        bw_wave_explain(wave, "an atomic of scratch: ");
        return NULL;
    }
    return bw_mapped_memory(wave, uop, scratch_address(wave, offset, bw_wave_lane(uop, lane)), lane, bytes,
                            access);
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

/* Which memory a flat address means is told by the register alone, before the offset is added (RDNA3 ISA
 * document, section 11.1.1); how far into it, with the offset. */
static bool is_in_aperture(uint64_t base, uint64_t aperture)
{
    return base >> 32 == aperture >> 32;
}

enum bw_memory_kind bw_lane_memory_kind(const struct bw_wave *wave, const struct bw_uop *uop,
                                        enum bw_address_form form, unsigned lane)
{
    if (form == BW_ADDRESS_LDS ||
        (form == BW_ADDRESS_FLAT && is_in_aperture(vector_base(wave, uop, lane), wave->shared_aperture)))
        return BW_MEMORY_LDS;
    if (form == BW_ADDRESS_SCRATCH ||
        (form == BW_ADDRESS_FLAT && is_in_aperture(vector_base(wave, uop, lane), wave->private_aperture)))
        return BW_MEMORY_SCRATCH;
    return BW_MEMORY_MAPPED;
}

static uint8_t *flat_memory(struct bw_wave *wave, const struct bw_uop *uop, unsigned lane, unsigned bytes,
                            enum bw_isa_access access)
{
    bool dropped;
    uint64_t base = vector_base(wave, uop, lane), va = base + (uint64_t)(int64_t)uop->g;
    if (is_in_aperture(base, wave->shared_aperture)) {
        uint8_t *memory = lds_memory(wave, va - wave->shared_aperture, bytes, &dropped);
        if (!memory) { /* through the aperture it is a memory violation */
            bw_wave_fault(wave, uop, BW_ISA_LDS_OUT_OF_RANGE, va, access, bw_wave_lane(uop, lane));
            bw_wave_explain(wave, "beyond the group's %llu bytes: ", (unsigned long long)wave->lds_bytes);
        }
        return memory;
    }
    if (is_in_aperture(base, wave->private_aperture))
        return scratch_memory(wave, uop, va - wave->private_aperture, lane, bytes, access);
    return bw_mapped_memory(wave, uop, va, lane, bytes, access);
}

uint8_t *bw_lane_memory(struct bw_wave *wave, const struct bw_uop *uop, enum bw_address_form form,
                        unsigned lane, unsigned bytes, enum bw_isa_access access, bool *dropped)
{
    *dropped = false;
    switch (form) {
    case BW_ADDRESS_GLOBAL_VECTOR:
        return bw_mapped_memory(wave, uop, vector_address(wave, uop, lane), lane, bytes, access);
    case BW_ADDRESS_GLOBAL_SCALAR:
        return bw_mapped_memory(wave, uop, scalar_based_address(wave, uop, lane), lane, bytes, access);
    case BW_ADDRESS_FLAT:
        return flat_memory(wave, uop, lane, bytes, access);
    case BW_ADDRESS_SCRATCH:
        return scratch_memory(wave, uop, scratch_offset(wave, uop, lane), lane, bytes, access);
    case BW_ADDRESS_LDS:
        return lds_memory(wave, lds_offset(wave, uop, lane), bytes, dropped);
    default: /* BW_ADDRESS_BUFFER has its own */
        return NULL;
    }
}

static void copy(uint8_t *memory, uint8_t *data, unsigned bytes, enum bw_isa_access access)
{
    if (access == BW_ISA_READ)
        memcpy(data, memory, bytes);
    else
        memcpy(memory, data, bytes);
}

/* Dword by dword: only those of a lane's scratch lie in one place each. Checked whole first, so that a store
 * that goes too far changes nothing. */
static bool move_scratch(struct bw_wave *wave, const struct bw_uop *uop, uint64_t offset, unsigned lane,
                         unsigned bytes, enum bw_isa_access access, uint8_t *data)
{
    if (!is_in_scratch(wave, uop, offset, lane, bytes, access))
        return false;
    for (unsigned done = 0, step; done < bytes; done += step) {
        step = 4 - (unsigned)((offset + done) & 3);
        step = step < bytes - done ? step : bytes - done;
        uint64_t va = scratch_address(wave, offset + done, bw_wave_lane(uop, lane));
        uint8_t *memory = bw_mapped_memory(wave, uop, va, lane, step, access);
        if (!memory)
            return false;
        copy(memory, data + done, step, access);
    }
    return true;
}

bool bw_move_mapped(struct bw_wave *wave, const struct bw_uop *uop, uint64_t va, unsigned lane,
                    unsigned bytes, enum bw_isa_access access, uint8_t *data)
{
    struct bw_range *range = range_of(wave->worker, uop, access);
    for (unsigned done = 0, step; done < bytes; done += step) {
        uint64_t offset = va + done - range->start_va, valid;
        if (offset >= range->size_bytes && !bw_worker_resolve(wave->worker, range, va + done, 1, access)) {
            fault_inside(wave, uop, va, lane, bytes, va + done, access);
            return false;
        }
        offset = va + done - range->start_va;
        valid = range->size_bytes - offset;
        step = valid < bytes - done ? (unsigned)valid : bytes - done;
        copy(range->host + offset, data + done, step, access);
    }
    return true;
}

static bool move_lds(struct bw_wave *wave, uint64_t offset, unsigned bytes, enum bw_isa_access access,
                     uint8_t *data)
{
    bool dropped;
    uint8_t *memory = lds_memory(wave, offset, bytes, &dropped);
    if (memory)
        copy(memory, data, bytes, access);
    else if (access == BW_ISA_READ)
        memset(data, 0, bytes);
    return true;
}

/* Copies the lane's element to or from data. False on a fault. */
static bool move_element(struct bw_wave *wave, const struct bw_uop *uop, enum bw_address_form form,
                         unsigned lane, unsigned bytes, enum bw_isa_access access, uint8_t *data)
{
    uint64_t address = bw_lane_address(wave, uop, form, lane);
    switch (form) {
    case BW_ADDRESS_SCRATCH:
        return move_scratch(wave, uop, address, lane, bytes, access, data);
    case BW_ADDRESS_LDS:
        return move_lds(wave, address, bytes, access, data);
    case BW_ADDRESS_FLAT:
        if (is_in_aperture(vector_base(wave, uop, lane), wave->shared_aperture)) {
            uint8_t *memory = flat_memory(wave, uop, lane, bytes, access);
            if (memory)
                copy(memory, data, bytes, access);
            return memory;
        }
        if (is_in_aperture(vector_base(wave, uop, lane), wave->private_aperture))
            return move_scratch(wave, uop, address - wave->private_aperture, lane, bytes, access, data);
        return bw_move_mapped(wave, uop, address, lane, bytes, access, data);
    default:
        return bw_move_mapped(wave, uop, address, lane, bytes, access, data);
    }
}

uint32_t bw_extended(enum bw_element element, uint32_t raw, uint32_t old)
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
            d[i * BW_LANES + lane] = bw_extended(element, loaded[i][lane], d[i * BW_LANES + lane]);
    }
    return uop + 1;
}

void bw_element_of(enum bw_element element, const uint32_t *data, unsigned lane, uint32_t raw[4])
{
    unsigned bytes = bw_element_bytes(element), dwords = bytes < 4 ? 1 : bytes / 4;
    for (unsigned i = 0; i < dwords; i++)
        raw[i] = data[i * BW_LANES + lane];
    if (element >= BW_ELEMENT_D16_HI_U8)
        raw[0] >>= 16;
}

const struct bw_uop *bw_store_lanes(struct bw_wave *wave, const struct bw_uop *uop, enum bw_address_form form,
                                    enum bw_element element)
{
    unsigned bytes = bw_element_bytes(element);
    const uint32_t *data = BW_AT(const uint32_t, wave, uop->b);
    for (uint32_t rest = *BW_AT(uint32_t, wave, uop->x); rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint32_t raw[4];
        bw_element_of(element, data, lane, raw);
        if (!move_element(wave, uop, form, lane, bytes, BW_ISA_WRITE, (uint8_t *)raw))
            return NULL;
    }
    return uop + 1;
}
