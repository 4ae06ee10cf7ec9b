/* Registers of the compute dispatch by name: offsets, fields, and their names for printing. Table:
 * regs_table.h. */
#ifndef BW_DRIVERS_AMD_REGS_H
#define BW_DRIVERS_AMD_REGS_H

#include <stdint.h>

#include "drivers/amd/packet.h"
#include "drivers/amd/regs_table.h"

/* BW_AMD_COMPUTE_PGM_LO and so on: absolute dword addresses. */
#define BW_AMD_REG(name, generations, address) BW_AMD_##name = address,
enum bw_amd_reg { BW_AMD_REGS(BW_AMD_REG) };
#undef BW_AMD_REG

/* BW_AMD_COMPUTE_PGM_RSRC2_LDS_SIZE and so on, for bw_amd_bits_pack; the word number is 0. */
#define BW_AMD_REG_FIELD(reg, field, low, high) BW_AMD_##reg##_##field = BW_AMD_BITS(0, low, high),
enum bw_amd_reg_field { BW_AMD_REG_FIELDS(BW_AMD_REG_FIELD) };
#undef BW_AMD_REG_FIELD

/* The register's name without a generation's suffix, NULL when the address has none. */
const char *bw_amd_reg_name(uint32_t generation, uint32_t address);
/* Bits of the register that no field covers and hardware wants clear; 0 where that is not known: registers
 * without fields, and those of gfx9, whose rows are not complete. */
uint32_t bw_amd_reg_reserved(uint32_t generation, uint32_t address);
/* "COMPUTE_PGM_RSRC2 = 0x00000084 USER_SGPR 2 TGID_X_EN 1" (fields that are not 0), without a newline. */
void bw_amd_reg_print(uint32_t generation, uint32_t address, uint32_t value, struct bw_text *text);

#endif
