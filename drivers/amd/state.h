/* What a command buffer has written to the compute registers so far, so that a dispatch writes only those
 * that change. Known from the start of the buffer: another buffer may have run on the queue before. */
#ifndef BW_DRIVERS_AMD_STATE_H
#define BW_DRIVERS_AMD_STATE_H

#include "drivers/amd/pm4.h"

/* Forgets what is known, if anything is: a command buffer begins. */
void bw_amd_state_begin(struct bw_encoder *encoder);
/* Registers from `reg` on get these values at the next bw_amd_state_emit; `wide` ones take two. */
void bw_amd_state_set(struct bw_encoder *encoder, uint32_t reg, const struct bw_amd_register_value *values,
                      uint32_t count);
/* Counts a dispatch of this command buffer: how many there are by now, 0 once the encoder has failed. */
uint32_t bw_amd_state_dispatch(struct bw_encoder *encoder);
/* Appends SET_SH_REG packets for the registers that differ from what is known. */
void bw_amd_state_emit(struct bw_encoder *encoder);

#endif
