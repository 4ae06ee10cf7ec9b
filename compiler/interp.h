/* The interpreter of linear programs: the oracle of code generation, and exact about what a program may
 * touch. */
#ifndef BW_COMPILER_INTERP_H
#define BW_COMPILER_INTERP_H

#include "compiler/linear.h"

struct bw_interp_buffer {
    void *data;
    uint64_t size_bytes;
};

/* Runs every workgroup in order, its work-items in step. buffers: by parameter number. -ERANGE: an access
 * outside its buffer (err names the parameter, index and size); -EINVAL: not a linear program. */
int bw_interp_run(const struct bw_linear *linear, const struct bw_interp_buffer *buffers,
                  uint32_t buffer_count, struct bw_err *err);

#endif
