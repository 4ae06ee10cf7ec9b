/* Goal: a workgroup that no compute unit can hold is refused, with the numbers. */
#include <errno.h>

#include "base/bits.h"
#include "drivers/amd/device.h"
#include "tests/check.h"

/* What fits is worked out by hand: registers of a SIMD, divided by those of a wave in whole granules, on the
 * SIMDs of one CU or two, and never more than there are wave slots. */
static void groups_fit_the_registers(void)
{
    static const struct {
        const char *arch;
        uint32_t wave_size, vgprs, unit; /* in which RSRC1 counts */
        bool wgp;
        uint32_t items; /* the largest group that fits */
    } cases[] = {
        {"gfx1100", 32, 256, 8, false, 2 * 5 * 32}, /* 1536 / 264 */
        {"gfx1100", 32, 256, 8, true, 4 * 5 * 32},
        {"gfx1100", 64, 256, 4, false, 2 * 2 * 64}, /* 768 / 264 */
        {"gfx1101", 64, 256, 4, true, 4 * 2 * 64},
        {"gfx1100", 32, 96, 8, false, 1024},
        {"gfx1100", 32, 104, 8, false, 2 * 12 * 32}, /* 1536 / 120 */
        {"gfx1102", 32, 256, 8, false, 2 * 4 * 32},  /* 1024 / 256 */
        {"gfx1102", 64, 248, 4, false, 2 * 2 * 64},
        {"gfx1102", 32, 64, 8, false, 1024},
        {"gfx1102", 32, 72, 8, false, 2 * 12 * 32}, /* 1024 / 80 */
        {"gfx1200", 32, 8, 8, false, 1024},
        {"gfx1201", 64, 184, 4, false, 2 * 4 * 64}, /* 768 / 192 */
        {"gfx90a", 64, 512, 8, false, 4 * 64},
        {"gfx942", 64, 128, 8, false, 1024},
        {"gfx950", 64, 136, 8, false, 4 * 3 * 64}, /* 512 / 136 */
    };
    struct bw_amd_device device = {0};
    struct bw_amd_program program = {.base.device = &device.base};
    struct bw_amd_code_kernel code = {0};
    struct bw_amd_kernel kernel = {.base = {.program = &program.base, .info.name = "k"}, .code = &code};
    struct bw_dispatch dispatch = {
        .group_count = {bw_operand_constant(1), bw_operand_constant(1), bw_operand_constant(1)},
        .group_size = {1, 1, 1}};
    struct bw_err err;
    char line[512];
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        dispatch.group_size[0] = cases[i].items;
        device.arch = bw_amd_arch_find(cases[i].arch);
        code.descriptor.rsrc1 = (cases[i].vgprs / cases[i].unit - 1) | (uint32_t)cases[i].wgp << 29;
        code.descriptor.properties = cases[i].wave_size == 32 ? BW_AMD_KERNEL_WAVEFRONT_SIZE32 : 0;
        BW_OK(bw_amd_dispatch_check(&kernel, &dispatch, &err), &err);
        dispatch.group_size[0]++;
        if (!BW_EQ(bw_amd_dispatch_check(&kernel, &dispatch, &err), -E2BIG))
            printf("      case %zu\n", i);
    }
    dispatch.group_size[0] = 1024;
    device.arch = bw_amd_arch_find("gfx1100");
    code.descriptor.properties = BW_AMD_KERNEL_WAVEFRONT_SIZE32;
    code.descriptor.rsrc1 = 31;
    BW_EQ(bw_amd_dispatch_check(&kernel, &dispatch, &err), -E2BIG);
    bw_err_format(&err, line, sizeof line);
    BW_STR(line, "amd: kernel k: a group of 32 waves of 32 with 264 vector registers each: expected at "
                 "most 10 waves (2 SIMDs of 1536 registers, 5 waves on each), observed 32 (E2BIG)");
    code.descriptor.rsrc1 = 32;
    BW_EQ(bw_amd_dispatch_check(&kernel, &dispatch, &err), -E2BIG);
    bw_err_format(&err, line, sizeof line);
    BW_STR(line, "amd: kernel k: vector registers: expected at most 256 (vgprs_per_wave of the "
                 "architecture), observed 264 (E2BIG)");
}

BW_TEST_MAIN("amd kernel", {"groups_fit_the_registers", groups_fit_the_registers})
