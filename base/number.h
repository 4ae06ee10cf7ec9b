/* Numbers as people type them, read strictly: they begin with a digit (no space, no sign), are never octal,
 * and what has more than 64 bits is no number. Every option, argument, environment variable and fault that is
 * a number goes through here. */
#ifndef BW_BASE_NUMBER_H
#define BW_BASE_NUMBER_H

#include <stdint.h>

/* The decimal number at *text, which is moved behind it. -EINVAL: none is there; -ERANGE: too large. */
int bw_number_take(const char **text, uint64_t *value);
/* The whole text, decimal or 0x and hexadecimal. */
int bw_number_parse(const char *text, uint64_t *value);
/* The same, a - in front of a negative one. */
int bw_integer_parse(const char *text, int64_t *value);
/* The whole text, decimal, with K, M, G or T (powers of 1024, either case) behind it. */
int bw_size_parse(const char *text, uint64_t *value);
/* As strtod has it ("1e-3", "-.5", "nan", "inf"), but for spaces and a + in front. *text is moved behind it.
 * -ERANGE: no double is near. */
int bw_real_take(const char **text, double *value);

#endif
