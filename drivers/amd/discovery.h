/* What a GPU says of itself: a table of its IP blocks (which version, where its registers are, what was fused
 * off) and of its graphics core's shape, which firmware leaves near the end of VRAM. Layout: the Linux
 * kernel's include/discovery.h; what is checked, and against what: its amdgpu_discovery.c. */
#ifndef BW_DRIVERS_AMD_DISCOVERY_H
#define BW_DRIVERS_AMD_DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/err.h>

#include "base/vec.h"

enum {
    /* amdgpu_discovery.h: the table begins so far before the end of VRAM, and is no longer than that. */
    BW_AMD_DISCOVERY_FROM_END_BYTES = 64 << 10,
    BW_AMD_DISCOVERY_BYTES_MAX = 10 << 10,
    BW_AMD_DISCOVERY_DIES_MAX = 16,
    BW_AMD_IP_BASES_MAX = 8, /* kept of a block; those that a driver of compute asks for have 6 at most */
};

/* IP blocks by hardware id (soc15_hw_ip.h), as far as a driver of compute asks for them. */
enum bw_amd_hw_id {
    BW_AMD_HW_MP1 = 0x01,    /* power management (SMU) */
    BW_AMD_HW_GC = 0x0b,     /* graphics and compute */
    BW_AMD_HW_MMHUB = 0x22,  /* memory hub */
    BW_AMD_HW_OSSSYS = 0x28, /* interrupt handler */
    BW_AMD_HW_HDP = 0x29,    /* host data path */
    BW_AMD_HW_SDMA0 = 0x2a,
    BW_AMD_HW_SDMA1 = 0x2b,
    BW_AMD_HW_NBIF = 0x6c, /* bus interface */
    BW_AMD_HW_XGMI = 0xc8,
    BW_AMD_HW_MP0 = 0xff, /* security processor (PSP) */
};

/* One instance of a block on one die. */
struct bw_amd_ip {
    uint16_t hw_id; /* enum bw_amd_hw_id, or another */
    uint8_t instance, die;
    uint8_t major, minor, revision;
    bool harvested; /* fused off */
    uint8_t base_count;
    uint64_t bases[BW_AMD_IP_BASES_MAX]; /* of its register segments, in dwords */
};

/* Shape of the graphics core. Compute units (of RDNA: halves of WGPs) as they are built; which of them are
 * fused off is said elsewhere. */
struct bw_amd_core_shape {
    uint32_t shader_engines, arrays_per_engine, units_per_array;
    uint32_t wave_size, waves_per_simd, scratch_slots_per_unit, lds_kib;
};

struct bw_amd_discovery {
    uint16_t version_major, version_minor;
    uint32_t die_count;
    BW_VEC(struct bw_amd_ip) ips; /* in the table's order */
    bool has_shape;               /* some boards do not say */
    struct bw_amd_core_shape shape;
};

/* table: size_bytes bytes from where the table begins; they may come from a GPU and hold anything. 0;
 * -EPROTO: it is none, or contradicts itself: err names the field; -ENXIO: all ones, as a virtual function or
 * a device that left the bus reads; -ENOMEM. Ended by bw_amd_discovery_free, also after a failure. */
int bw_amd_discovery_parse(const void *table, uint64_t size_bytes, struct bw_amd_discovery *discovery,
                           struct bw_err *err);
void bw_amd_discovery_free(struct bw_amd_discovery *discovery);

/* The nth instance of a block that is not fused off, in the table's order; NULL: there are not so many. */
const struct bw_amd_ip *bw_amd_discovery_find(const struct bw_amd_discovery *discovery, uint16_t hw_id,
                                              uint32_t nth);

#endif
