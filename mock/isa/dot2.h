/* The sum of two products of halves or bfloats and a third number: the step of which V_DOT2 consists, and
 * WMMA eight. The ISA document gives neither order nor rounding. This is what AMD's rocjitsu (rocm-systems,
 * shared/gfx11_dot2.h and issue 12056) reports of gfx1100, where it held for every bit measured:
 *
 * - products are exact; a bfloat or a single that is denormal counts as zero, a half does not;
 * - the three terms are cut to one unit, 2^-26 of the largest term, or 2^-24 of the largest product as its
 *   factors' exponents alone announce it, if that is more;
 * - a term whose sign is not the third number's counts as the complement of its magnitude, one unit less;
 * - the sum is rounded once to nearest even, whatever MODE says; single precision has no denormal results. A
 *   bfloat result is the single's upper half.
 *
 * NaNs: one of a factor gives 0xffc00a3d, an invalid product or sum 0xffc00000, else the third number's comes
 * out quiet. */
#ifndef BW_MOCK_ISA_DOT2_H
#define BW_MOCK_ISA_DOT2_H

#include <stdbool.h>
#include <stdint.h>

/* a, b: two halves (is_bfloat: bfloats) each; c and the result: a single. */
uint32_t bw_dot2(uint32_t a, uint32_t b, uint32_t c, bool is_bfloat);

/* c and the result: 16 bits. keep_finite: MODE.FP16_OVFL. */
uint32_t bw_dot2_narrow(uint32_t a, uint32_t b, uint32_t c, bool is_bfloat, bool keep_finite);

#endif
