/* Kernels written by hand for gfx1100 at the time of the test, so that their sizes can be anything. */
#ifndef BW_TESTS_HAND_KERNELS_H
#define BW_TESTS_HAND_KERNELS_H

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/text.h"
#include "compiler/llvm/assemble.h"
#include "tests/check.h"

struct hand_kernel {
    uint32_t argument_bytes; /* of the block; the kernel reads its first pointer and its last 32 bits */
    uint32_t argument_count; /* described ones: out, u64 values 16 bytes apart, the last a u32 at the end; 0
                                of some bytes: nobody describes them */
    uint32_t private_bytes;  /* each work-item keeps a word at the end of that */
};

static inline void hand_kernel_describe(struct bw_text *text, const struct hand_kernel *kernel)
{
    bw_text_add(text, "\n\t.amdgpu_metadata\n---\namdhsa.version: [1, 2]\n"
                      "amdhsa.target: amdgcn-amd-amdhsa--gfx1100\namdhsa.kernels:\n");
    bw_text_add(text,
                "  - { .name: hand, .symbol: hand.kd, .kernarg_segment_size: %u, .kernarg_segment_align: 8, "
                ".group_segment_fixed_size: 0, .private_segment_fixed_size: %u, .wavefront_size: 32, "
                ".sgpr_count: 18, .vgpr_count: 4, .max_flat_workgroup_size: 1024, .args: [",
                kernel->argument_bytes, kernel->private_bytes);
    for (uint32_t i = 0; i < kernel->argument_count; i++) {
        bool last = i + 1 == kernel->argument_count;
        if (i == 0)
            bw_text_add(text,
                        " { .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global }");
        else
            bw_text_add(text, ", { .offset: %u, .size: %d, .value_kind: by_value }",
                        last ? kernel->argument_bytes - 4 : 16 * i, last ? 4 : 8);
    }
    bw_text_add(text, " ] }\n...\n\t.end_amdgpu_metadata\n");
}

/* out[item] = the last 32 bits of the arguments + item, the latter by way of scratch where there is some;
 * with no arguments it does nothing. An ELF object in malloc'ed memory, or NULL after a failed check. */
static inline void *hand_kernel_assemble(const struct hand_kernel *kernel, uint64_t *object_bytes)
{
    struct bw_text text = {0};
    struct bw_err err = {0};
    void *object = NULL;
    bw_text_add(&text,
                "\t.amdgcn_target \"amdgcn-amd-amdhsa--gfx1100\"\n\t.text\n\t.globl hand\n\t.p2align 8\n"
                "\t.type hand,@function\nhand:\n");
    if (kernel->private_bytes)
        bw_text_add(&text,
                    "\ts_mov_b32 s5, %u\n\tscratch_store_b32 off, v0, s5\n"
                    "\ts_waitcnt_vscnt null, 0x0\n\tv_mov_b32 v0, 0\n"
                    "\tscratch_load_b32 v0, off, s5\n\ts_waitcnt vmcnt(0)\n",
                    kernel->private_bytes - 4);
    if (kernel->argument_bytes)
        bw_text_add(&text,
                    "\ts_load_b64 s[2:3], s[0:1], null\n\ts_load_b32 s4, s[0:1], %u\n"
                    "\tv_lshlrev_b32 v1, 2, v0\n\ts_waitcnt lgkmcnt(0)\n\tv_add_nc_u32 v0, s4, v0\n"
                    "\tglobal_store_b32 v1, v0, s[2:3]\n",
                    kernel->argument_bytes - 4);
    bw_text_add(&text,
                "\ts_endpgm\n.Lend:\n\t.size hand, .Lend-hand\n\t.rodata\n\t.p2align 6\n"
                "\t.amdhsa_kernel hand\n\t\t.amdhsa_user_sgpr_kernarg_segment_ptr %d\n"
                "\t\t.amdhsa_kernarg_size %u\n\t\t.amdhsa_private_segment_fixed_size %u\n"
                "\t\t.amdhsa_enable_private_segment %d\n\t\t.amdhsa_next_free_vgpr 4\n"
                "\t\t.amdhsa_next_free_sgpr 16\n\t\t.amdhsa_wavefront_size32 1\n\t.end_amdhsa_kernel\n",
                kernel->argument_bytes != 0, kernel->argument_bytes, kernel->private_bytes,
                kernel->private_bytes != 0);
    if (kernel->argument_count || !kernel->argument_bytes)
        hand_kernel_describe(&text, kernel);
    BW_OK(bw_llvm_assemble("gfx1100", bw_text_string(&text), text.length, &object, object_bytes, &err), &err);
    bw_text_free(&text);
    return object;
}

#endif
