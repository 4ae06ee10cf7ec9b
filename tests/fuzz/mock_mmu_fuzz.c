/* Any words as page tables, of any generation and shape of context: the walker ends, reads no more entries
 * than there are levels, and gives either a place or a reason; what the TLB then says of the same address is
 * the same. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mock/mmu/faults.h"
#include "mock/mmu/tlb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *words;
    size_t count;
};

struct shape {
    uint8_t generation, lenient, depth, block_size, op, vmid, access_mode, hive;
    uint64_t va, base, start, end, fb_base, fb_top, fb_offset, agp_bot, agp_top, vram_bytes, segment_bytes;
};

/* Entries come round: what a table holds depends on where it lies. */
static int read_word(void *user, const struct bw_mock_mmu_place *place, uint64_t *word)
{
    const struct input *input = user;
    if (place->aperture == BW_MOCK_MMU_NOWHERE || place->aperture == BW_MOCK_MMU_DEFAULT ||
        place->address % 8)
        abort();
    if (input->count == 0)
        return -EIO;
    memcpy(word, input->words + (place->address / 8 + place->region) % input->count * 8, sizeof *word);
    return 0;
}

static void check(const struct bw_mock_mmu_context *context, int rc, const struct bw_mock_mmu_result *result)
{
    struct bw_mock_mmu_faults faults = {.generation = context->hub->generation};
    struct bw_mock_mmu_fault_control control = {.allow_updates = false};
    struct bw_mock_mmu_client client = {.cid = 8};
    if (result->entries_read > context->depth + 2)
        abort();
    if (rc == 0) {
        bool somewhere = result->place.aperture != BW_MOCK_MMU_NOWHERE;
        if (result->contiguous_bytes == 0 || somewhere == result->prt)
            abort();
        return;
    }
    bool recorded = bw_mock_mmu_faults_record(&faults, &control, &result->fault, &client);
    bool hole = result->fault.violation == BW_MOCK_MMU_VA_HOLE;
    if (rc != -EFAULT || result->fault.permission == 0 || recorded == hole || (recorded && !faults.status) ||
        !bw_mock_mmu_violation_name(result->fault.violation))
        abort();
}

static void check_tlb(const struct bw_mock_mmu_context *context, uint64_t va, enum bw_mock_mmu_op op, int rc,
                      const struct bw_mock_mmu_result *walked)
{
    struct bw_mock_tlb *tlb;
    struct bw_mock_tlb_config config = {.l1_entries = 2, .l2_entries = 4, .pde_entries = 4, .negative = true};
    if (bw_mock_tlb_open(&tlb, &config) != 0)
        return;
    for (int again = 0; again < 2; again++) {
        struct bw_mock_mmu_result result;
        int seen = bw_mock_tlb_translate(tlb, 0, context, va, op, &result);
        if (seen != rc)
            abort();
        if (rc == 0 &&
            (result.place.aperture != walked->place.aperture || result.place.region != walked->place.region ||
             result.place.address != walked->place.address ||
             result.contiguous_bytes != walked->contiguous_bytes || result.mtype != walked->mtype))
            abort();
        if (rc != 0 &&
            (result.fault.walker_error != walked->fault.walker_error ||
             result.fault.permission != walked->fault.permission ||
             result.fault.violation != walked->fault.violation || result.fault.word != walked->fault.word))
            abort();
    }
    bw_mock_tlb_close(tlb);
}

/* Fields of 24 bits in units of 16 MiB, as byte addresses: the first and the last byte. */
static uint64_t first_byte(uint64_t field)
{
    return field & 0xffffff000000;
}

static uint64_t last_byte(uint64_t field)
{
    return first_byte(field) | 0xffffff;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shape shape;
    if (size < sizeof shape)
        return 0;
    memcpy(&shape, data, sizeof shape);
    struct input input = {data + sizeof shape, (size - sizeof shape) / 8};
    struct bw_mock_mmu_hub hub = {
        .generation = (enum bw_mock_mmu_generation)(shape.generation % BW_MOCK_MMU_GENERATION_COUNT),
        .lenient = shape.lenient & 1,
        .read = read_word,
        .user = &input,
        .vram_bytes = first_byte(shape.vram_bytes),
        .fb_base = first_byte(shape.fb_base),
        .fb_top = last_byte(shape.fb_top),
        .fb_offset = first_byte(shape.fb_offset),
        .access_mode = (enum bw_mock_mmu_access_mode)(shape.access_mode % 4),
        .system_low = first_byte(shape.fb_base),
        .system_high = last_byte(shape.agp_top),
        .agp_bot = first_byte(shape.agp_bot),
        .agp_top = last_byte(shape.agp_top),
        .segment_bytes = first_byte(shape.segment_bytes),
        .region = shape.hive & 15u,
        .region_max = shape.hive >> 4,
    };
    struct bw_mock_mmu_context context = {
        .hub = &hub,
        .vmid = shape.vmid % BW_MOCK_MMU_VMIDS,
        .enable = true,
        .depth = shape.depth & 3u,
        .block_size = shape.block_size & 15u,
        .base = shape.base,
        .start = shape.start & 0xfffffffff000, /* fields of 36 bits, in pages */
        .end = (shape.end & 0xfffffffff000) | 0xfff,
    };
    enum bw_mock_mmu_op op = (enum bw_mock_mmu_op)(shape.op & 3);
    struct bw_mock_mmu_result result;
    int rc = bw_mock_mmu_walk(&context, shape.va, op, &result);
    check(&context, rc, &result);
    check_tlb(&context, shape.va, op, rc, &result);
    return 0;
}
