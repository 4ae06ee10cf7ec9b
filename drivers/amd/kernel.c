/* Launch geometry and argument blocks. Hidden arguments: LLVM AMDGPUUsage, code object V5 metadata; the
 * dispatch packet is AQL's (aql_table.h). */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/amd/aql.h"
#include "drivers/amd/device.h"

static const char subsystem[] = "amd";

/* A little-endian block under construction: bytes, and operands that become patches. */
enum { BLOCK_OPERANDS_MAX = 8 };
struct block {
    uint8_t bytes[BW_AMD_ARGUMENT_BYTES_MAX + 128];
    uint32_t operand_count;
    struct {
        uint32_t offset;
        bool wide;
        struct bw_operand operand;
    } operands[BLOCK_OPERANDS_MAX];
};

static void block_put(struct block *block, uint32_t offset, uint64_t value, uint32_t size_bytes)
{
    memcpy(block->bytes + offset, &value, size_bytes < sizeof value ? size_bytes : sizeof value);
}

/* A 4-byte or 8-byte (wide) value. */
static void block_operand(struct block *block, uint32_t offset, struct bw_operand operand, bool wide)
{
    if (operand.symbol == BW_SYMBOL_NONE) {
        block_put(block, offset, operand.addend, wide ? 8 : 4);
        return;
    }
    assert(offset % 4 == 0 && block->operand_count < BLOCK_OPERANDS_MAX);
    uint32_t index = block->operand_count++;
    block->operands[index].offset = offset;
    block->operands[index].wide = wide;
    block->operands[index].operand = operand;
}

static void block_append(const struct block *block, uint32_t size_bytes, struct bw_encoder *encoder)
{
    for (uint32_t at = 0; at < size_bytes; at += 4) {
        uint32_t index = 0, word;
        while (index < block->operand_count && block->operands[index].offset != at)
            index++;
        memcpy(&word, block->bytes + at, sizeof word);
        if (index == block->operand_count) {
            bw_encoder_word(encoder, word);
        } else if (block->operands[index].wide) {
            bw_encoder_operand64(encoder, block->operands[index].operand, 0);
            at += 4;
        } else {
            bw_encoder_operand32(encoder, block->operands[index].operand, 0, UINT32_MAX, 0);
        }
    }
}

static int refuse(struct bw_err *err, int code, const struct bw_amd_kernel *kernel, const char *what,
                  uint64_t observed, uint64_t limit, const char *limit_name)
{
    bw_fail(err, code, subsystem, "kernel %s: %s", kernel->base.info.name, what);
    bw_err_expected(err, "at most %" PRIu64 " (%s)", limit, limit_name);
    bw_err_observed(err, "%" PRIu64, observed);
    return code;
}

static int check_group(const struct bw_amd_kernel *kernel, const uint32_t size[3], struct bw_err *err)
{
    uint64_t product = 1;
    for (int i = 0; i < 3; i++) {
        if (size[i] == 0)
            return bw_fail(err, -EINVAL, subsystem, "kernel %s: group size %ux%ux%u", kernel->base.info.name,
                           size[0], size[1], size[2]);
        if (size[i] > BW_AMD_GROUP_SIZE_MAX)
            return refuse(err, -E2BIG, kernel, "group size in one dimension", size[i], BW_AMD_GROUP_SIZE_MAX,
                          "BW_AMD_GROUP_SIZE_MAX");
        product *= size[i];
    }
    if (product > BW_AMD_GROUP_SIZE_MAX)
        return refuse(err, -E2BIG, kernel, "group size", product, BW_AMD_GROUP_SIZE_MAX,
                      "BW_AMD_GROUP_SIZE_MAX");
    if (kernel->code->group_size_max && product > kernel->code->group_size_max)
        return refuse(err, -E2BIG, kernel, "group size", product, kernel->code->group_size_max,
                      "what the kernel was compiled for");
    const uint32_t *required = kernel->code->group_size_required;
    if (required[0] && (size[0] != required[0] || size[1] != required[1] || size[2] != required[2])) {
        bw_fail(err, -EINVAL, subsystem, "kernel %s: group size", kernel->base.info.name);
        bw_err_expected(err, "%ux%ux%u (reqd_work_group_size)", required[0], required[1], required[2]);
        bw_err_observed(err, "%ux%ux%u", size[0], size[1], size[2]);
        return -EINVAL;
    }
    return 0;
}

/* COMPUTE_PGM_RSRC1 (AMDGPUUsage). */
enum { RSRC1_VGPRS_HIGH = 5, RSRC1_WGP_MODE = 29 };

/* A workgroup whose waves do not all find registers and slots at once never starts, and the queue stands. */
static int check_registers(const struct bw_amd_kernel *kernel, const uint32_t size[3], struct bw_err *err)
{
    const struct bw_amd_arch *arch = bw_amd_device(kernel->base.program->device)->arch;
    const struct bw_amd_descriptor *descriptor = &kernel->code->descriptor;
    uint32_t wave_size = descriptor->properties & BW_AMD_KERNEL_WAVEFRONT_SIZE32 ? 32 : 64;
    uint32_t twice = wave_size == 32 ? 2 : 1, file = arch->vgprs_per_simd * twice;
    uint32_t vgprs = (bw_field(descriptor->rsrc1, 0, RSRC1_VGPRS_HIGH) + 1) * arch->vgpr_unit * twice;
    if (vgprs > arch->vgprs_per_wave)
        return refuse(err, -E2BIG, kernel, "vector registers", vgprs, arch->vgprs_per_wave,
                      "vgprs_per_wave of the architecture");
    bool wgp = arch->has_wgp_mode && (descriptor->rsrc1 >> RSRC1_WGP_MODE & 1);
    uint32_t simds = arch->simds_per_cu * (wgp ? 2 : 1);
    uint32_t granule = arch->vgpr_granule * twice; /* no power of two everywhere */
    uint32_t given = (uint32_t)bw_div_up(vgprs, granule) * granule, per_simd = file / given;
    uint64_t waves = bw_div_up((uint64_t)size[0] * size[1] * size[2], wave_size);
    per_simd = per_simd < arch->waves_per_simd ? per_simd : arch->waves_per_simd;
    if (waves <= (uint64_t)per_simd * simds)
        return 0;
    bw_fail(err, -E2BIG, subsystem,
            "kernel %s: a group of %" PRIu64 " waves of %u with %u vector registers each",
            kernel->base.info.name, waves, wave_size, given);
    bw_err_expected(err, "at most %u waves (%u SIMDs of %u registers, %u waves on each)", per_simd * simds,
                    simds, file, per_simd);
    bw_err_observed(err, "%" PRIu64, waves);
    return -E2BIG;
}

int bw_amd_dispatch_check(const struct bw_amd_kernel *kernel, const struct bw_dispatch *dispatch,
                          struct bw_err *err)
{
    int rc = check_group(kernel, dispatch->group_size, err);
    if (!rc)
        rc = check_registers(kernel, dispatch->group_size, err);
    if (rc)
        return rc;
    for (int i = 0; i < 3; i++) {
        const struct bw_operand *count = &dispatch->group_count[i];
        if (count->symbol != BW_SYMBOL_NONE)
            continue;
        /* Work-item numbers and hidden arguments are 32 bits. */
        if (count->addend > UINT32_MAX || count->addend * dispatch->group_size[i] > UINT32_MAX)
            return refuse(err, -E2BIG, kernel, "grid in one dimension, in groups", count->addend,
                          UINT32_MAX / dispatch->group_size[i], "2^32 - 1 work-items");
    }
    const struct bw_amd_arch *arch = bw_amd_device(kernel->base.program->device)->arch;
    uint64_t lds_bytes = (uint64_t)kernel->base.info.group_memory_bytes + dispatch->dynamic_lds_bytes;
    if (lds_bytes > arch->lds_bytes)
        return refuse(err, -E2BIG, kernel, "LDS bytes, static and dynamic", lds_bytes, arch->lds_bytes,
                      "lds_bytes of the architecture");
    return 0;
}

/* Dimensions that the launch uses; a symbolic count may be anything. */
static uint32_t dimensions(const struct bw_dispatch *dispatch)
{
    for (uint32_t i = 2; i > 0; i--) {
        const struct bw_operand *count = &dispatch->group_count[i];
        if (dispatch->group_size[i] > 1 || count->symbol != BW_SYMBOL_NONE || count->addend > 1)
            return i + 1;
    }
    return 1;
}

static void put_hidden(struct block *block, const struct bw_amd_hidden_argument *hidden,
                       const struct bw_amd_device *device, const struct bw_dispatch *dispatch)
{
    const struct bw_iface_properties *properties = &device->iface->properties;
    switch (hidden->kind) {
    case BW_AMD_HIDDEN_BLOCK_COUNT_X:
    case BW_AMD_HIDDEN_BLOCK_COUNT_Y:
    case BW_AMD_HIDDEN_BLOCK_COUNT_Z:
        block_operand(block, hidden->offset,
                      dispatch->group_count[hidden->kind - BW_AMD_HIDDEN_BLOCK_COUNT_X], false);
        break;
    case BW_AMD_HIDDEN_GROUP_SIZE_X:
    case BW_AMD_HIDDEN_GROUP_SIZE_Y:
    case BW_AMD_HIDDEN_GROUP_SIZE_Z:
        block_put(block, hidden->offset, dispatch->group_size[hidden->kind - BW_AMD_HIDDEN_GROUP_SIZE_X],
                  hidden->size_bytes);
        break;
    case BW_AMD_HIDDEN_GRID_DIMS:
        block_put(block, hidden->offset, dimensions(dispatch), hidden->size_bytes);
        break;
    case BW_AMD_HIDDEN_DYNAMIC_LDS_SIZE:
        block_put(block, hidden->offset, dispatch->dynamic_lds_bytes, hidden->size_bytes);
        break;
    case BW_AMD_HIDDEN_PRIVATE_BASE:
        block_put(block, hidden->offset, properties->scratch_aperture >> 32, hidden->size_bytes);
        break;
    case BW_AMD_HIDDEN_SHARED_BASE:
        block_put(block, hidden->offset, properties->lds_aperture >> 32, hidden->size_bytes);
        break;
    case BW_AMD_HIDDEN_ZERO:
    case BW_AMD_HIDDEN_REMAINDER: /* grids are whole groups */
    case BW_AMD_HIDDEN_GLOBAL_OFFSET:
        break;
    }
}

/* A field of the dispatch packet at `at`; all of them are whole bytes, but for DIMENSIONS in a byte of its
 * own. */
static void put_field(struct block *block, uint32_t at, uint32_t bits, uint64_t value)
{
    uint32_t size_bytes = (bw_amd_bits_high(bits) - bw_amd_bits_low(bits)) / 8 + 1;
    block_put(block, at + 4 * bw_amd_bits_word(bits) + bw_amd_bits_low(bits) / 8, value, size_bytes);
}

static int put_dispatch_packet(struct block *block, const struct bw_amd_kernel *kernel,
                               const struct bw_dispatch *dispatch, struct bw_err *err)
{
    static const uint32_t groups[3] = {BW_AMD_AQL_KERNEL_DISPATCH_WORKGROUP_SIZE_X,
                                       BW_AMD_AQL_KERNEL_DISPATCH_WORKGROUP_SIZE_Y,
                                       BW_AMD_AQL_KERNEL_DISPATCH_WORKGROUP_SIZE_Z};
    uint32_t at = kernel->packet_offset;
    uint32_t grid_at = at + 4 * bw_amd_bits_word(BW_AMD_AQL_KERNEL_DISPATCH_GRID_SIZE_X);
    uint32_t object_at = at + 4 * bw_amd_bits_word(BW_AMD_AQL_KERNEL_DISPATCH_KERNEL_OBJECT_LO);
    uint32_t arguments_at = at + 4 * bw_amd_bits_word(BW_AMD_AQL_KERNEL_DISPATCH_KERNARG_ADDRESS_LO);
    block_put(block, at, BW_AMD_AQL_OP_KERNEL_DISPATCH, 2);
    put_field(block, at, BW_AMD_AQL_KERNEL_DISPATCH_DIMENSIONS, dimensions(dispatch));
    for (uint32_t i = 0; i < 3; i++) {
        const struct bw_operand *count = &dispatch->group_count[i];
        put_field(block, at, groups[i], dispatch->group_size[i]);
        /* A patch cannot multiply; with one work-item per group it does not have to. */
        if (count->symbol != BW_SYMBOL_NONE && dispatch->group_size[i] != 1)
            return bw_fail(
                err, -ENOTSUP, subsystem,
                "kernel %s reads the dispatch packet, whose grid size cannot follow a variable group count",
                kernel->base.info.name);
        if (count->symbol == BW_SYMBOL_NONE)
            block_put(block, grid_at + 4 * i, count->addend * dispatch->group_size[i], 4);
        else
            block_operand(block, grid_at + 4 * i, *count, false);
    }
    put_field(block, at, BW_AMD_AQL_KERNEL_DISPATCH_PRIVATE_SEGMENT_SIZE, kernel->base.info.private_bytes);
    put_field(block, at, BW_AMD_AQL_KERNEL_DISPATCH_GROUP_SEGMENT_SIZE,
              kernel->base.info.group_memory_bytes + dispatch->dynamic_lds_bytes);
    block_put(block, object_at, kernel->descriptor_va, 8);
    block_operand(block, arguments_at, dispatch->argument_block, true);
    return 0;
}

int bw_amd_argument_block(struct bw_kernel *base, const struct bw_dispatch *dispatch,
                          struct bw_encoder *encoder, struct bw_err *err)
{
    struct bw_amd_kernel *kernel = (struct bw_amd_kernel *)base;
    const struct bw_amd_device *device = bw_amd_device(base->program->device);
    struct block block;
    memset(block.bytes, 0, bw_align_up(base->info.argument_bytes, 4));
    block.operand_count = 0;
    int rc = bw_amd_dispatch_check(kernel, dispatch, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < kernel->code->hidden_count; i++)
        put_hidden(&block, &kernel->code->hidden[i], device, dispatch);
    if (kernel->packet_offset)
        rc = put_dispatch_packet(&block, kernel, dispatch, err);
    if (!rc)
        block_append(&block, base->info.argument_bytes, encoder);
    return rc;
}
