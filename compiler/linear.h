/* Linear programs: what the interpreter and the code generators read.
 *
 * A list of nodes in order of execution. A value node stands for "compute this now"; the same node may stand
 * in the list again, in another loop, and is computed again there. LOOP(range) .. END_LOOP(range) nest; a
 * RANGE has its value inside its loop. ACCUMULATOR(initial) declares a variable (its arg makes it unique)
 * and, used as a source, reads it; ASSIGN writes it. SPECIAL is the number of the workgroup or of the
 * work-item. The program is executed by every work-item of every workgroup; loops are the same for all of
 * them. */
#ifndef BW_COMPILER_LINEAR_H
#define BW_COMPILER_LINEAR_H

#include "base/vec.h"
#include "compiler/ir.h"

enum bw_special {
    BW_SPECIAL_GROUP_X,
    BW_SPECIAL_GROUP_Y,
    BW_SPECIAL_GROUP_Z,
    BW_SPECIAL_ITEM,
    BW_SPECIAL_COUNT
};
bw_node bw_ir_special(struct bw_ir *ir, enum bw_dtype dtype, enum bw_special which, int64_t size);
enum bw_special bw_ir_special_which(const struct bw_ir *ir, bw_node special);

/* A FOLD over the work-items of a group. */
bool bw_ir_is_group_fold(const struct bw_ir *ir, bw_node node);

enum { BW_LINEAR_PARAMS_MAX = 1024 };

struct bw_linear {
    struct bw_ir *ir; /* not owned */
    BW_VEC(bw_node) list;
    uint32_t group_count[3];
    uint32_t item_count;
    BW_VEC(bw_node) params; /* by number; each present */
};

/* sink: a kernel whose ranges are GLOBAL, ITEM, LOOP or REDUCE. */
int bw_linearize(struct bw_ir *ir, bw_node sink, struct bw_linear *linear, struct bw_err *err);
void bw_linear_free(struct bw_linear *linear);

#endif
