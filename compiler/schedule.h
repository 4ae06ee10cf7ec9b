/* From a tensor graph to kernels: which values are stored, and one kernel-stage graph for each.
 *
 * Everything between two stored values is recomputed inside the kernel that needs it, at the index that it
 * needs: movement operations become index arithmetic, PAD becomes a gate, GATHER an index that is loaded or
 * computed. The rules of what is stored are in schedule.c. Kernels are graphs in one ir whose parameters and
 * ranges are numbered from 0 in each, so that equal kernels are one node. */
#ifndef BW_COMPILER_SCHEDULE_H
#define BW_COMPILER_SCHEDULE_H

#include "base/vec.h"
#include "compiler/ir.h"

enum bw_schedule_buffer_kind {
    BW_SCHEDULE_TENSOR, /* a BUFFER of the tensor graph: an input or a constant */
    BW_SCHEDULE_STORED, /* written by one kernel */
};

struct bw_schedule_buffer {
    enum bw_schedule_buffer_kind kind;
    enum bw_dtype dtype;
    int64_t elements;
    bw_node node;           /* of the tensor graph, whose value it is */
    uint32_t tensor_buffer; /* number of the BUFFER node, for TENSOR */
    bool output;            /* some output of the graph is this buffer */
    bool once;              /* depends on constants only: computed when the plan is made */
};

struct bw_schedule_kernel {
    bw_node sink;
    uint32_t *arguments; /* parameter number -> buffer; parameter 0 is the one written */
    int64_t *offsets;    /* the element of its buffer where each argument begins; NULL: all at 0 */
    uint32_t argument_count;
    bool once;
};

struct bw_schedule {
    struct bw_ir *ir; /* of the kernels */
    BW_VEC(struct bw_schedule_buffer) buffers;
    BW_VEC(struct bw_schedule_kernel) kernels; /* in an order of execution */
    uint32_t *outputs;                         /* output number -> buffer (may be an input or a constant) */
    uint32_t output_count;
};

/* is_input tells by number of BUFFER node which are given anew at each run. Errors name the node. */
int bw_schedule_create(const struct bw_ir *tensors, const bool *is_input, uint32_t buffer_count,
                       const bw_node *outputs, uint32_t output_count, struct bw_schedule **schedule,
                       struct bw_err *err);
void bw_schedule_destroy(struct bw_schedule *schedule);

#endif
