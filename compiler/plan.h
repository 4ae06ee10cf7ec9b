/* What stands behind struct bw_plan, and the texts of every stage for people. Public API:
 * include/bellwire/tensor.h. */
#ifndef BW_COMPILER_PLAN_H
#define BW_COMPILER_PLAN_H

#include <bellwire/graph.h>
#include <bellwire/tensor.h>

#include "base/text.h"
#include "compiler/codegen.h"
#include "compiler/compile.h"
#include "compiler/schedule.h"

/* Which buffers share memory: offsets in one arena, by lifetime over the kernels that run each time. */
enum { BW_PLAN_ALIGN_BYTES = 256 }; /* a cache line of every device, and what images want */

struct bw_plan_lifetime {
    uint64_t size_bytes;
    uint32_t first, last; /* numbers of the kernels that touch it first and last, inclusive */
    uint64_t offset;      /* result */
};
/* Fills offsets; returns the arena's size. -ENOMEM as UINT64_MAX. */
uint64_t bw_plan_place(struct bw_plan_lifetime *lifetimes, uint32_t count);

enum bw_plan_dump {
    BW_DUMP_GRAPH = 1,    /* tensor graph */
    BW_DUMP_KERNELS = 2,  /* one line per launch, then each kernel's graph */
    BW_DUMP_LINEAR = 4,   /* linear programs */
    BW_DUMP_ASSEMBLY = 8, /* machine code as text */
};

/* Compiles without a device (for any target) and without the cache, and prints what was asked for. */
int bw_plan_dump(struct bw_tensor_graph *g, const struct bw_target *target, const bw_tensor *outputs,
                 uint32_t output_count, uint32_t what, struct bw_text *text, struct bw_err *err);

/* The linked graph of a plan, for its statistics, profile and dump of queues. Owned by the plan. */
struct bw_linked_graph;
struct bw_linked_graph *bw_plan_linked(struct bw_plan *plan);

/* A plan that is a part of something larger: it has no graph of its own and is not run by bw_plan_run. Its
 * kernels are appended to a graph of the caller, who fills the inputs and reads the outputs where they lie,
 * in that graph too. */
int bw_plan_part_create(struct bw_tensor_graph *g, struct bw_device *device, const bw_tensor *outputs,
                        uint32_t output_count, struct bw_plan **plan, struct bw_err *err);
int bw_plan_part_add(const struct bw_plan *plan, struct bw_graph *graph, struct bw_err *err);
/* Size 0: no output needs the input. */
struct bw_range bw_plan_part_input(const struct bw_plan *plan, uint32_t input);
struct bw_range bw_plan_part_output(const struct bw_plan *plan, uint32_t output);

/* Shared by plan*.c. */
int bw_plan_schedule(struct bw_tensor_graph *g, const bw_tensor *outputs, uint32_t output_count,
                     struct bw_schedule **schedule, struct bw_err *err);
/* The distinct kernels of a schedule as jobs; job_of[kernel] is the number of its job. Caller frees both. */
int bw_plan_jobs(struct bw_schedule *schedule, const struct bw_target *target, struct bw_compile_job **jobs,
                 uint32_t *job_count, uint32_t **job_of, struct bw_err *err);

#endif
