/* Goal: a device made from any row of the table encodes what its generation reads, the same words each time,
 * and takes no work. */
#include <bellwire/program.h>

#include <errno.h>

#include "base/bits.h"
#include "base/text.h"
#include "compiler/llvm/assemble.h"
#include "drivers/amd/device.h"
#include "drivers/amd/pm4.h"
#include "drivers/amd/sdma.h"
#include "tests/check.h"
#include "tests/unit/drivers/amd/elf_files.h"

struct fixture {
    struct bw_sys *sys;
    struct bw_device *device;
    const struct bw_driver_ops *ops;
    struct bw_queue *compute, *copy;
    struct bw_memory host, vram;
    struct bw_err err;
};

static bool fixture_open(struct fixture *f, const char *arch)
{
    memset(f, 0, sizeof *f);
    if (!BW_EQ(bw_sys_host_create(&f->sys), 0) ||
        !BW_OK(bw_amd_open_unfed(NULL, f->sys, arch, &f->device, &f->err), &f->err))
        return false;
    f->ops = f->device->ops;
    return BW_OK(f->ops->queue_create(f->device, BW_QUEUE_COMPUTE, 0, &f->compute, &f->err), &f->err) &&
           BW_OK(f->ops->queue_create(f->device, BW_QUEUE_COPY, 0, &f->copy, &f->err), &f->err) &&
           BW_OK(f->ops->alloc(f->device, 100, BW_BUFFER_HOST, &f->host, &f->err), &f->err) &&
           BW_OK(f->ops->alloc(f->device, 64ull << 30, BW_BUFFER_DEVICE, &f->vram, &f->err), &f->err);
}

static void fixture_close(struct fixture *f)
{
    f->ops->free(f->device, &f->vram);
    f->ops->free(f->device, &f->host);
    f->ops->queue_destroy(f->compute);
    f->ops->queue_destroy(f->copy);
    f->ops->close(f->device);
    bw_sys_destroy(f->sys);
}

static void encode(struct fixture *f, struct bw_queue *queue, struct bw_encoder *e)
{
    uint64_t done_bytes;
    struct bw_operand host = bw_operand_constant(f->host.address),
                      vram = bw_operand_constant(f->vram.address);
    if (f->ops->encode_begin)
        f->ops->encode_begin(queue, e);
    BW_EQ(f->ops->encode_wait(queue, e, host, bw_operand_constant(7)), 0);
    BW_EQ(f->ops->encode_barrier(queue, e, BW_BARRIER_EXECUTION | BW_BARRIER_ACQUIRE | BW_BARRIER_RELEASE),
          0);
    BW_EQ(f->ops->encode_copy(queue, e, vram, host, 100, &done_bytes), 0);
    BW_EQ(done_bytes, 100);
    BW_EQ(f->ops->encode_timestamp(queue, e, host), 0);
    BW_EQ(f->ops->encode_signal(queue, e, host, bw_operand_constant(8), true), 0);
    BW_EQ(f->ops->encode_end(queue, e), 0);
}

static void every_row_encodes(void)
{
    uint32_t count;
    const struct bw_amd_arch *table = bw_amd_arch_table(&count);
    for (uint32_t i = 0; i < count; i++) {
        struct bw_encoder e[2][2] = {0};
        for (int round = 0; round < 2; round++) {
            struct fixture f;
            if (!fixture_open(&f, table[i].name))
                return;
            BW_STR(f.device->info.arch, table[i].name);
            BW_EQ(f.vram.cpu.size_bytes, 0);
            BW_EQ(f.host.cpu.size_bytes, 4096);
            encode(&f, f.compute, &e[round][0]);
            encode(&f, f.copy, &e[round][1]);
            BW_EQ(f.ops->submit(f.compute, f.host.address, f.device->caps.command_alignment_words), -ENODEV);
            BW_EQ(f.ops->submit(f.copy, f.host.address, f.device->caps.command_alignment_words), -ENODEV);
            fixture_close(&f);
        }
        struct bw_text text = {0};
        BW_EQ(bw_amd_pm4_print_generation(table[i].packets & (BW_AMD_PM4_COHER | BW_AMD_PM4_GCR),
                                          e[0][0].words, e[0][0].count, &text),
              0);
        BW_EQ(bw_amd_sdma_print_generation(table[i].packets & (BW_AMD_SDMA_4 | BW_AMD_SDMA_5), e[0][1].words,
                                           e[0][1].count, &text),
              0);
        bw_text_free(&text);
        for (int k = 0; k < 2; k++) {
            BW_EQ(e[0][k].count, e[1][k].count);
            BW_BYTES(e[0][k].words, e[1][k].words, e[0][k].count * 4);
            bw_encoder_free(&e[0][k]);
            bw_encoder_free(&e[1][k]);
        }
    }
}

static void programs_are_placed(void)
{
    struct fixture f;
    struct bw_program *program;
    struct bw_kernel *kernel;
    struct bw_encoder e = {0};
    if (!fixture_open(&f, "gfx1100"))
        return;
    struct elf_file file = elf_file_read("kernels.rel.elf");
    struct bw_dispatch dispatch = {
        .group_count = {bw_operand_constant(3), bw_operand_constant(1), bw_operand_constant(1)},
        .group_size = {64, 1, 1},
        .argument_block = bw_operand_constant(f.host.address)};
    if (BW_OK(f.ops->program_load(f.device, file.data, file.size_bytes, &program, &f.err), &f.err)) {
        BW_OK(f.ops->program_kernel(program, "vector_add", &kernel, &f.err), &f.err);
        f.ops->encode_begin(f.compute, &e);
        BW_OK(f.ops->encode_kernel(f.compute, &e, kernel, &dispatch, &f.err), &f.err);
        struct bw_text text = {0};
        BW_EQ(bw_amd_pm4_print(e.words, e.count, &text), 0);
        BW_TRUE(strstr(bw_text_string(&text), "DISPATCH_DIRECT") != NULL);
        bw_text_free(&text);
        f.ops->program_destroy(program);
    }
    bw_encoder_free(&e);
    free(file.data);
    fixture_close(&f);
}

#if BW_HAVE_LLVM
/* gfx90a's scratch comes in user SGPRs: a kernel that has none runs, another is refused by name. */
static void scratch_in_sgprs_is_refused(void)
{
    static const char source[] = ".text\n.p2align 8\n.globl k\n.type k,@function\nk:\n  s_endpgm\n"
                                 ".rodata\n.p2align 6\n.amdhsa_kernel k\n"
                                 "  .amdhsa_user_sgpr_private_segment_buffer 1\n"
                                 "  .amdhsa_user_sgpr_flat_scratch_init 1\n"
                                 "  .amdhsa_next_free_vgpr 8\n  .amdhsa_next_free_sgpr 16\n"
                                 "  .amdhsa_accum_offset 8\n"
                                 "  .amdhsa_private_segment_fixed_size %u\n.end_amdhsa_kernel\n";
    for (uint32_t bytes = 0; bytes <= 16; bytes += 16) {
        struct fixture f;
        struct bw_program *program;
        struct bw_kernel *kernel;
        struct bw_encoder e = {0};
        struct bw_text text = {0};
        void *object;
        uint64_t object_bytes;
        if (!fixture_open(&f, "gfx90a"))
            return;
        struct bw_dispatch dispatch = {
            .group_count = {bw_operand_constant(1), bw_operand_constant(1), bw_operand_constant(1)},
            .group_size = {64, 1, 1},
            .argument_block = bw_operand_constant(f.host.address)};
        bw_text_add(&text, source, bytes);
        if (BW_OK(bw_llvm_assemble("gfx90a", bw_text_string(&text), text.length, &object, &object_bytes,
                                   &f.err),
                  &f.err) &&
            BW_OK(f.ops->program_load(f.device, object, object_bytes, &program, &f.err), &f.err) &&
            BW_OK(f.ops->program_kernel(program, "k", &kernel, &f.err), &f.err)) {
            f.ops->encode_begin(f.compute, &e);
            BW_EQ(f.ops->encode_kernel(f.compute, &e, kernel, &dispatch, &f.err), bytes ? -ENOTSUP : 0);
            if (bytes)
                BW_STR(f.err.what, "kernel k: scratch of 16 bytes per work-item in user SGPRs");
            f.ops->program_destroy(program);
            free(object);
        }
        bw_encoder_free(&e);
        bw_text_free(&text);
        fixture_close(&f);
    }
}

/* The arguments of a kernel without metadata are what its user says, where that can be. */
static void arguments_are_described(void)
{
    static const char source[] =
        ".text\n.p2align 8\n.globl k\n.type k,@function\nk:\n  s_endpgm\n"
        ".rodata\n.p2align 6\n.amdhsa_kernel k\n  .amdhsa_kernarg_size 20\n"
        "  .amdhsa_user_sgpr_kernarg_segment_ptr 1\n  .amdhsa_wavefront_size32 1\n"
        "  .amdhsa_next_free_vgpr 8\n  .amdhsa_next_free_sgpr 16\n.end_amdhsa_kernel\n";
    static const struct bw_argument_info
        good[] = {{"a", BW_ARGUMENT_VALUE, 0, 1},
                  {"b", BW_ARGUMENT_VALUE, 2, 2},
                  {"c", BW_ARGUMENT_BUFFER, 8, 8},
                  {"d", BW_ARGUMENT_VALUE, 16, 4}},
        bad[][2] = {{{"a", BW_ARGUMENT_VALUE, 4, 4}, {"b", BW_ARGUMENT_VALUE, 6, 2}},
                    {{"a", BW_ARGUMENT_VALUE, 8, 4}, {"b", BW_ARGUMENT_VALUE, 4, 4}},
                    {{"a", BW_ARGUMENT_VALUE, 0, 4}, {"b", BW_ARGUMENT_BUFFER, 12, 8}},
                    {{"a", BW_ARGUMENT_VALUE, 0, 4}, {"b", BW_ARGUMENT_BUFFER, 16, 8}},
                    {{"a", BW_ARGUMENT_VALUE, 0, 4}, {"b", BW_ARGUMENT_BUFFER, 8, 4}},
                    {{"a", BW_ARGUMENT_VALUE, 0, 4}, {"b", BW_ARGUMENT_HIDDEN, 8, 8}},
                    {{"a", BW_ARGUMENT_VALUE, 0, 4}, {"b", BW_ARGUMENT_VALUE, 6, 3}},
                    {{"a", BW_ARGUMENT_VALUE, 0, 4}, {"b", BW_ARGUMENT_VALUE, 16, 0}}};
    struct fixture f;
    struct bw_program *program;
    struct bw_kernel *kernel;
    void *object;
    uint64_t object_bytes;
    if (!fixture_open(&f, "gfx1100") ||
        !BW_OK(bw_llvm_assemble("gfx1100", source, sizeof source - 1, &object, &object_bytes, &f.err),
               &f.err) ||
        !BW_OK(f.ops->program_load(f.device, object, object_bytes, &program, &f.err), &f.err) ||
        !BW_OK(f.ops->program_kernel(program, "k", &kernel, &f.err), &f.err))
        return;
    BW_EQ(kernel->info.undescribed_bytes, 20);
    for (size_t i = 0; i < BW_COUNT_OF(bad); i++) {
        BW_EQ(bw_kernel_describe(kernel, bad[i], 2, &f.err), -EINVAL);
        BW_TRUE(strstr(f.err.what, "kernel k: argument 1 of ") == f.err.what);
        BW_EQ(kernel->info.argument_count, 0);
    }
    BW_OK(bw_kernel_describe(kernel, good, 4, &f.err), &f.err);
    BW_EQ(kernel->info.argument_count, 4);
    BW_EQ(kernel->info.undescribed_bytes, 0);
    BW_EQ(bw_kernel_describe(kernel, good, 4, &f.err), -EINVAL);
    f.ops->program_destroy(program);
    free(object);
    fixture_close(&f);
}
#else
static void scratch_in_sgprs_is_refused(void)
{
}
static void arguments_are_described(void)
{
}
#endif

static void unknown_ones_are_refused(void)
{
    struct bw_device *device;
    struct bw_err err;
    BW_EQ(bw_amd_open_unfed(NULL, NULL, "gfx1103", &device, &err), -ENOTSUP);
    BW_TRUE(strstr(err.hint, "gfx1100") != NULL);
}

BW_TEST_MAIN("amd unfed", {"every_row_encodes", every_row_encodes},
             {"programs_are_placed", programs_are_placed},
             {"scratch_in_sgprs_is_refused", scratch_in_sgprs_is_refused},
             {"arguments_are_described", arguments_are_described},
             {"unknown_ones_are_refused", unknown_ones_are_refused})
