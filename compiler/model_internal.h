/* Inside of struct bw_model, for compiler/model*.c only. */
#ifndef BW_COMPILER_MODEL_INTERNAL_H
#define BW_COMPILER_MODEL_INTERNAL_H

#include <bellwire/profile.h>

#include "compiler/onnx/import.h"

enum {
    BW_MODEL_SEGMENTS_MAX = 64, /* plans of pieces of imports that cannot be kept whole */
    /* Runs of plans whose profiles a run keeps: a loop may have any number. About as many slices as a viewer
     * takes. */
    BW_MODEL_PROFILES_MAX = 10000,
    BW_MODEL_ENTRIES_MAX = 16, /* imports kept for replay; the one that was not used for longest goes */
};

/* An input or output as the file declares it. */
struct bw_declared {
    const char *name;
    uint32_t graph_input; /* inputs: index among the graph's, which may list initializers too */
    bool optional, sequence, strings, has_shape;
    enum bw_dtype dtype;
    uint32_t rank;
    struct bw_model_dim dims[BW_TENSOR_RANK_MAX];
    bool shape_bound; /* by bw_model_bind_shape */
    int64_t bound[BW_TENSOR_RANK_MAX];
};

struct bw_binding {
    const char *symbol;
    int64_t size;
};

/* Where an output of a kept import comes from. */
enum bw_output_source { BW_OUTPUT_COMPUTED, BW_OUTPUT_FIXED, BW_OUTPUT_INPUT };
struct bw_output_row {
    enum bw_output_source source;
    uint32_t index;        /* computed: among the entry's tensors; input: among the model's inputs */
    struct bw_value value; /* fixed: the value; else dtype and shape with no data */
};

/* An import kept for inputs of these shapes (and values, where specialised). */
struct bw_model_entry {
    struct bw_device *device; /* NULL: the evaluator */
    struct bw_value *inputs;  /* copies without data, but for specialised ones */
    struct bw_tensor_graph *graph;
    uint32_t *graph_inputs; /* graph input -> model input */
    uint32_t graph_input_count;
    bw_tensor *tensors; /* computed ones */
    uint32_t tensor_count;
    struct bw_output_row *outputs;
    struct bw_onnx_index_check *index_checks; /* of inputs, before each run */
    size_t index_check_count;
    struct bw_plan *plan;
    uint64_t nodes;
    uint64_t last_used; /* number of the run */
};

/* The plan of a piece of an import, by what it computes. */
struct bw_model_segment {
    uint64_t key[2];
    struct bw_device *device;
    struct bw_plan *plan; /* NULL: the row is free */
    uint32_t *inputs;     /* place among the inputs that the piece reads -> input of the plan */
    uint32_t input_count; /* of the plan */
    uint64_t last_used;
};

/* A file that elements are in. */
struct bw_model_file {
    int fd;
    dev_t device;
    ino_t inode;
    struct bw_device *disk; /* NULL: nothing was read through it yet */
};

struct bw_model {
    struct bw_onnx_model *proto;
    BW_VEC(struct bw_onnx_mapping)
    mappings; /* fd: place in files, or -1; the model's own file first, if mapped */
    BW_VEC(struct bw_model_file) files;
    char *path, *directory; /* the file, and where its external data are; NULL when loaded from memory */
    struct bw_arena arena;
    struct bw_declared *inputs, *outputs;
    uint32_t input_count, output_count;
    bool *decided; /* by input: see bw_model_input_decided */
    BW_VEC(struct bw_binding) bindings;
    BW_VEC(struct bw_model_entry *) entries;
    struct bw_model_segment segments[BW_MODEL_SEGMENTS_MAX];
    uint64_t segment_clock;
    struct bw_model_stats stats;
    struct bw_rng rng;
    bool profile;
    BW_VEC(struct bw_profile *) profiles; /* of the last run, plan by plan */
};

/* bw_onnx_session.tensor_data of a model. */
int bw_model_tensor_data(void *user, struct bw_onnx_tensor *tensor, const void **data, struct bw_err *err);
void bw_model_plans_destroy(struct bw_model *model);
/* Puts the model's file in front of what was found in it: a byte or a node says nothing without. */
void bw_model_err_name(const struct bw_model *model, struct bw_err *err);

/* model_files.c: takes a mapping over, to the end of the model; what it fails to keep is left mapped. */
int bw_model_mapping_keep(struct bw_model *model, struct bw_onnx_mapping mapping, struct bw_err *err);
/* The mapped bytes as a range of a disk, for a device that would copy them into memory of its own; NULL:
 * there is no such range, or it is not worth one. The caller destroys it. */
struct bw_buffer *bw_model_range(struct bw_model *model, const struct bw_device *device, const void *data,
                                 uint64_t size_bytes);
void bw_model_disks_close(struct bw_model *model);
void bw_model_files_close(struct bw_model *model);

/* model_segment.c: computes tensors on a device, through a kept plan where one fits. inputs: by input of the
 * graph; data from malloc. */
int bw_model_segment_run(struct bw_model *model, struct bw_device *device, struct bw_tensor_graph *graph,
                         const bw_tensor *outputs, uint32_t count, const void *const *inputs, void **data,
                         struct bw_err *err);
void bw_model_segment_free(struct bw_model *model, struct bw_model_segment *segment);
/* Memory for the elements of tensors, one malloc each; on failure none, and data[] is NULL. */
int bw_model_outputs_alloc(const struct bw_tensor_graph *graph, const bw_tensor *outputs, uint32_t count,
                           void **data, struct bw_err *err);
int bw_model_plan_create(struct bw_model *model, struct bw_device *device, struct bw_tensor_graph *graph,
                         const bw_tensor *outputs, uint32_t count, struct bw_plan **plan, struct bw_err *err);
/* Adds a plan's figures and its profile to those of the run. */
int bw_model_plan_ran(struct bw_model *model, struct bw_plan *plan, struct bw_err *err);
/* Forgets the last run's. */
void bw_model_profiles_drop(struct bw_model *model);

#endif
