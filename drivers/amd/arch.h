/* The AMD architectures that the driver knows, one row each. Whatever differs between them is a property
 * here; nowhere is an architecture compared by number. */
#ifndef BW_DRIVERS_AMD_ARCH_H
#define BW_DRIVERS_AMD_ARCH_H

#include <stdbool.h>
#include <stdint.h>

/* Properties, for bw_amd_arch.verified: bit n is set when that property of that row agrees with a public
 * source that was opened for it (the column's source stands in devices_table.c). None has been seen on a
 * board yet. */
#define BW_AMD_ARCH_PROPERTIES(P) \
    P(gfx_version)                \
    P(elf_machine)                \
    P(llvm_major)                 \
    P(packets)                    \
    P(wave_sizes)                 \
    P(lds_bytes)                  \
    P(lds_granule_bytes)          \
    P(simds_per_cu)               \
    P(waves_per_simd)             \
    P(vgprs_per_simd)             \
    P(vgpr_granule)               \
    P(vgpr_unit)                  \
    P(vgprs_per_wave)             \
    P(has_wgp_mode)               \
    P(scratch_granule_bytes)      \
    P(scratch_units_max)          \
    P(scratch_waves_per_engine)   \
    P(rsrc1_reserved)             \
    P(rsrc2_reserved)             \
    P(rsrc3_reserved)             \
    P(rsrc3_register)             \
    P(rsrc3_layout)               \
    P(kernarg_preload)            \
    P(architected_flat_scratch)   \
    P(workgroup_id_in_ttmp)       \
    P(xcc_max)

#define BW_AMD_ARCH_PROPERTY(name) BW_AMD_PROPERTY_##name,
enum bw_amd_property { BW_AMD_ARCH_PROPERTIES(BW_AMD_ARCH_PROPERTY) BW_AMD_PROPERTY_COUNT };
#undef BW_AMD_ARCH_PROPERTY

/* What COMPUTE_PGM_RSRC3 holds of a kernel's registers. */
enum bw_amd_rsrc3_layout {
    BW_AMD_RSRC3_ACCUM_OFFSET, /* and TG_SPLIT */
    BW_AMD_RSRC3_SHARED_VGPRS,
    BW_AMD_RSRC3_NO_REGISTERS,
};

struct bw_amd_arch {
    const char *name;           /* as LLVM's -mcpu */
    uint32_t verified;          /* 1 << enum bw_amd_property */
    bool drivable;              /* bw_amd_open accepts it; false: known to tools and the compiler only */
    uint32_t gfx_version;       /* KFD's gfx_target_version: major*10000 + minor*100 + stepping */
    uint32_t elf_machine;       /* EF_AMDGPU_MACH of e_flags */
    uint32_t llvm_major;        /* the first that makes code for it; 0: any that this project builds with */
    uint32_t packets;           /* enum bw_amd_packet_generation: one PM4 and one SDMA bit */
    uint32_t wave_sizes;        /* 32 | 64 */
    uint32_t wave_size;         /* what the compiler picks */
    uint32_t lds_bytes;         /* most per workgroup */
    uint32_t lds_granule_bytes; /* unit of COMPUTE_PGM_RSRC2.LDS_SIZE */
    uint32_t simds_per_cu;      /* a workgroup runs on those of one CU, */
    bool has_wgp_mode;          /* or, where COMPUTE_PGM_RSRC1 says so, of two */
    uint32_t waves_per_simd;    /* most */
    uint32_t vgprs_per_simd;    /* of 64 lanes; of 32 there are twice as many */
    uint32_t vgpr_granule;      /* a wave of 64 is given a multiple of it; one of 32, of twice as many */
    uint32_t vgpr_unit;         /* in which COMPUTE_PGM_RSRC1.VGPRS counts, 64 lanes; 32: twice that */
    uint32_t vgprs_per_wave;    /* most, of any size */
    uint32_t scratch_granule_bytes; /* unit of COMPUTE_TMPRING_SIZE.WAVESIZE */
    uint32_t scratch_units_max;     /* its largest value */
    bool scratch_waves_per_engine;  /* COMPUTE_TMPRING_SIZE.WAVES counts per shader engine, not per GPU */
    uint32_t rsrc1_reserved, rsrc2_reserved, rsrc3_reserved; /* bits that must be 0 in a kernel descriptor */
    uint32_t rsrc3_register;                                 /* dword address of COMPUTE_PGM_RSRC3 */
    enum bw_amd_rsrc3_layout rsrc3_layout;
    bool kernarg_preload;          /* a kernel descriptor may ask for arguments in user SGPRs */
    bool architected_flat_scratch; /* scratch base comes in hardware registers, never in user SGPRs */
    bool workgroup_id_in_ttmp;     /* trap temporaries instead of SGPRs after the user ones */
    uint32_t xcc_max;              /* compute dies that share a queue */
};

enum {
    BW_AMD_ELF_FLAGS_MACHINE = 0xff, /* EF_AMDGPU_MACH: LLVM BinaryFormat/ELF.h */
    BW_AMD_GROUP_SIZE_MAX = 1024,    /* work-items; HSA and every row's hardware (16 waves of 64, 32 of 32) */
    BW_AMD_USER_SGPRS_MAX = 16,      /* COMPUTE_USER_DATA_0..15 */
};

/* NULL: not in the table, and then neither this driver nor LLVM is to be asked about it. */
const struct bw_amd_arch *bw_amd_arch_find(const char *name);
const struct bw_amd_arch *bw_amd_arch_by_version(uint32_t gfx_version);
const struct bw_amd_arch *bw_amd_arch_by_elf_machine(uint32_t elf_machine);
/* All rows. */
const struct bw_amd_arch *bw_amd_arch_table(uint32_t *count);
/* "gfx90a, gfx942, ..." for error texts. */
void bw_amd_arch_names(char *text, uint32_t text_size);
const char *bw_amd_property_name(enum bw_amd_property property);

static inline bool bw_amd_arch_is_verified(const struct bw_amd_arch *arch, enum bw_amd_property property)
{
    return (arch->verified >> property) & 1;
}

#endif
