/* Firmware files as linux-firmware has them (amdgpu/NAME.bin): a header that names the parts, each of which
 * the security processor loads under a number of its own. Layout: the Linux kernel's amdgpu_ucode.h; which
 * part goes under which number: its amdgpu_psp.c and psp_gfx_if.h. */
#ifndef BW_DRIVERS_AMD_FIRMWARE_H
#define BW_DRIVERS_AMD_FIRMWARE_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/err.h>

/* By the end of the file's name. */
enum bw_amd_firmware_kind {
    BW_AMD_FIRMWARE_SOS, /* psp_VERSION_sos: what the security processor boots from */
    BW_AMD_FIRMWARE_SMU,
    BW_AMD_FIRMWARE_SDMA,
    BW_AMD_FIRMWARE_PFP,
    BW_AMD_FIRMWARE_ME,
    BW_AMD_FIRMWARE_MEC,
    BW_AMD_FIRMWARE_IMU,
    BW_AMD_FIRMWARE_RLC,
    BW_AMD_FIRMWARE_KINDS,
};

/* Of parts of SOS: enum psp_fw_type. */
enum bw_amd_sos_type {
    BW_AMD_SOS_SOS = 1,
    BW_AMD_SOS_SYS_DRV,
    BW_AMD_SOS_KDB,
    BW_AMD_SOS_TOC,
    BW_AMD_SOS_SPL,
    BW_AMD_SOS_RL,
    BW_AMD_SOS_SOC_DRV,
    BW_AMD_SOS_INTF_DRV,
    BW_AMD_SOS_DBG_DRV,
    BW_AMD_SOS_RAS_DRV,
};

/* Of parts of the others: enum psp_gfx_fw_type. */
enum bw_amd_firmware_type {
    BW_AMD_LOAD_ME = 1,
    BW_AMD_LOAD_PFP = 2,
    BW_AMD_LOAD_MEC = 4,
    BW_AMD_LOAD_MEC_JUMPS = 5, /* its jump table */
    BW_AMD_LOAD_RLC_V = 7,
    BW_AMD_LOAD_RLC_G = 8,
    BW_AMD_LOAD_SDMA = 9, /* and 10, 0x34, 0x35 for the other engines, the same bytes */
    BW_AMD_LOAD_SMU = 0x12,
    BW_AMD_LOAD_RLC_RESTORE_GPM = 0x14,
    BW_AMD_LOAD_RLC_RESTORE_SRM = 0x15,
    BW_AMD_LOAD_RLC_RESTORE_CNTL = 0x16,
    BW_AMD_LOAD_RLC_P = 0x19,
    BW_AMD_LOAD_RLC_IRAM = 0x1a,
    BW_AMD_LOAD_RLC_DRAM = 0x30,
    BW_AMD_LOAD_IMU_IRAM = 0x44,
    BW_AMD_LOAD_IMU_DRAM = 0x45,
    BW_AMD_LOAD_SDMA_CONTEXT = 0x47, /* thread 0; of SDMA 7 all of it */
    BW_AMD_LOAD_SDMA_CONTROL = 0x48, /* thread 1 */
    BW_AMD_LOAD_RS64_PFP = 0x57,
    BW_AMD_LOAD_RS64_ME = 0x58,
    BW_AMD_LOAD_RS64_MEC = 0x59,
    BW_AMD_LOAD_RS64_PFP_STACK = 0x5a, /* of pipe 0 */
    BW_AMD_LOAD_RS64_ME_STACK = 0x5c,
    BW_AMD_LOAD_RS64_MEC_STACK = 0x5e,
    BW_AMD_LOAD_P2S_TABLE = 0x81, /* of SMU 13.0.6's kind, which has its code in flash; see id below */
};

struct bw_amd_firmware_part {
    uint32_t type; /* enum bw_amd_sos_type or bw_amd_firmware_type */
    uint32_t version;
    uint32_t offset, size_bytes; /* in the file */
    bool auxiliary;              /* of SOS: for another stepping of the chip */
    uint32_t id;                 /* of P2S tables: "P2S" and a letter, the high byte first */
};

enum { BW_AMD_FIRMWARE_PARTS_MAX = 32 };

struct bw_amd_firmware {
    uint16_t header_major, header_minor;
    uint16_t ip_major, ip_minor; /* that it is for */
    uint32_t version;
    bool crc_matches; /* the header's sum of what follows it; many files of AMD's have another */
    bool has_start;   /* of PFP, ME, MEC with RS64 cores: where they begin */
    uint64_t start_va;
    uint32_t part_count;
    struct bw_amd_firmware_part parts[BW_AMD_FIRMWARE_PARTS_MAX]; /* in the order in which they are loaded */
};

/* data may hold anything. 0; -EPROTO: it is no firmware of that kind, or a part lies outside of it: err names
 * the field; -ENOTSUP: a version of the header that is not known. */
int bw_amd_firmware_parse(enum bw_amd_firmware_kind kind, const void *data, uint64_t size_bytes,
                          struct bw_amd_firmware *firmware, struct bw_err *err);

/* The part of that type that is not auxiliary, NULL: none. */
const struct bw_amd_firmware_part *bw_amd_firmware_find(const struct bw_amd_firmware *firmware,
                                                        uint32_t type);

#endif
