/* Sizes of the buffers of a compute queue. The kernel computes them from the node's properties and refuses a
 * queue whose buffers differ: kfd_queue_ctx_save_restore_size and kfd_queue_acquire_buffers in
 * amdkfd/kfd_queue.c (Linux 6.12 to 6.18). */
#include <errno.h>

#include "base/bits.h"
#include "iface/kfd_topology.h"

enum {
    PAGE_BYTES = 4096,
    EOP_BYTES = 4096, /* every GPU since gfx8 but Tonga */
    /* Saved per CU besides the vector registers. */
    SGPR_BYTES_PER_CU = 0x4000,
    LDS_BYTES_PER_CU = 0x10000,
    HWREG_BYTES_PER_CU = 0x1000,
    DEBUG_BYTES_PER_WAVE = 32,
    DEBUG_ALIGNMENT = 64,
    /* struct kfd_context_save_area_header, and what the trap handler adds behind the control stack. */
    SAVE_HEADER_BYTES = 40,
    CONTROL_STACK_EXTRA_BYTES = 8,
    /* Waves in flight: gfx9 is limited per CU and per shader engine, gfx10 and later by the CU alone. */
    GFX9_WAVES_PER_CU = 40,
    GFX9_WAVES_PER_ENGINE = 512,
    GFX10_WAVES_PER_CU = 32,
    /* The hardware's control stack of gfx10.x ends here. */
    GFX10_CONTROL_STACK_MAX = 0x7000,
    GFX9 = 90000,
    GFX10_1 = 100100,
    GFX950 = 90500,
};

static uint32_t vgpr_bytes_per_cu(uint32_t gfx_version)
{
    switch (gfx_version) {
    case 90008: /* Arcturus */
    case 90010: /* Aldebaran, gfx90a */
    case 90402: /* Aqua Vanjaram, gfx942 */
    case GFX950:
        return 0x80000;
    case 110000: /* Plum Bonito, gfx1100 */
    case 110001: /* Wheat Nas, gfx1101 */
    case 110501: /* gfx1151; kernels before 6.18.4 ask for less, and take more */
    case 120000:
    case 120001:
        return 0x60000;
    default:
        return 0x40000;
    }
}

int bw_kfd_queue_sizes(const struct bw_kfd_node *node, struct bw_kfd_queue_sizes *sizes, struct bw_err *err)
{
    uint32_t gfx = node->gfx_version;
    uint64_t cus = node->simd_count / node->simd_per_cu / node->xcc_count;
    if (gfx < GFX9 || !cus)
        return bw_fail(err, -ENOTSUP, "kfd", "gfx version %u with %u SIMDs: no known context save size", gfx,
                       node->simd_count);
    uint64_t waves = cus * GFX10_WAVES_PER_CU;
    if (gfx < GFX10_1) {
        uint64_t by_engine = (uint64_t)(node->array_count / node->arrays_per_engine) * GFX9_WAVES_PER_ENGINE;
        waves = cus * GFX9_WAVES_PER_CU;
        waves = waves < by_engine ? waves : by_engine;
    }
    uint64_t lds = gfx == GFX950 ? (uint64_t)node->lds_kib << 10 : LDS_BYTES_PER_CU;
    uint64_t wave_data = cus * (vgpr_bytes_per_cu(gfx) + SGPR_BYTES_PER_CU + lds + HWREG_BYTES_PER_CU);
    uint64_t stack = waves * (gfx >= GFX10_1 ? 12 : 8) + CONTROL_STACK_EXTRA_BYTES + SAVE_HEADER_BYTES;
    stack = bw_align_up(stack, PAGE_BYTES);
    if (gfx / 10000 == 10 && stack > GFX10_CONTROL_STACK_MAX)
        stack = GFX10_CONTROL_STACK_MAX;
    uint64_t save = stack + bw_align_up(wave_data, PAGE_BYTES);
    uint64_t debug = bw_align_up(waves * DEBUG_BYTES_PER_WAVE, DEBUG_ALIGNMENT);
    /* What the kernel itself says in the properties goes first: it knows GPUs that this table does not. */
    if (node->save_bytes && node->control_stack_bytes) {
        stack = node->control_stack_bytes;
        save = node->save_bytes;
    }
    /* All of it ends up in 32-bit arguments. */
    if (save > UINT32_MAX || (save + debug) * node->xcc_count > UINT32_MAX - PAGE_BYTES)
        return bw_fail(err, -ENOTSUP, "kfd", "context save area of %u SIMDs is larger than 4 GiB",
                       node->simd_count);
    *sizes = (struct bw_kfd_queue_sizes){
        .eop_bytes = EOP_BYTES,
        .control_stack_bytes = (uint32_t)stack,
        .save_bytes = (uint32_t)save,
        .debug_bytes = (uint32_t)debug,
        .area_bytes = bw_align_up((save + debug) * node->xcc_count, PAGE_BYTES),
    };
    return 0;
}
