/* Models: an ONNX file as something to run. Shapes may be symbolic in the file; they are known when a run
 * starts.
 *
 *   bw_model_load("model.onnx", &model, &err);
 *   bw_model_bind(model, "batch", 1, &err);
 *   bw_model_run(model, device, inputs, outputs, &err);
 *   bw_value_free(&outputs[0]);
 *   bw_model_destroy(model);
 *
 * A run imports the model for the shapes of its inputs, compiles it, and keeps the plan: a second run with
 * the same shapes only replays. Small inputs whose values decide shapes or branches are part of what "the
 * same" means. One thread at a time per model. */
#ifndef BW_MODEL_H
#define BW_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bw_model;

/* Elements in host memory, row-major. */
struct bw_array {
    enum bw_dtype dtype;
    uint32_t rank;
    int64_t dims[BW_TENSOR_RANK_MAX];
    void *data; /* may be NULL when there are no elements */
};

struct bw_string {
    char *data; /* bytes, UTF-8 by convention, not terminated */
    uint64_t size_bytes;
};

enum bw_value_kind {
    BW_VALUE_NONE, /* an optional without a value */
    BW_VALUE_ARRAY,
    BW_VALUE_STRINGS,  /* array.data is struct bw_string[], array.dtype is BW_VOID */
    BW_VALUE_SEQUENCE, /* items; array unused */
};

/* What models take and give. A zeroed struct is an empty optional. */
struct bw_value {
    enum bw_value_kind kind;
    struct bw_array array;
    struct bw_value *items;
    uint64_t item_count;
};

int64_t bw_array_elements(const struct bw_array *array);
/* Frees what the value owns (data, strings, items: all from malloc) and zeroes it. */
void bw_value_free(struct bw_value *value);
/* A deep copy. -ENOMEM. */
int bw_value_copy(struct bw_value *copy, const struct bw_value *value, struct bw_err *err);

/* The file is mapped and stays so until bw_model_destroy; external data are found beside it. -ENOENT,
 * -EACCES, ...: cannot be read; -EBADMSG: damaged (err says at which byte, in which node); -ENOTSUP: says
 * what is not supported. */
int bw_model_load(const char *path, struct bw_model **model, struct bw_err *err);
/* The same from memory that the caller keeps until bw_model_destroy. */
int bw_model_load_bytes(const void *data, uint64_t size_bytes, struct bw_model **model, struct bw_err *err);
/* Before the devices that it ran on are closed: its plans hold their memory. */
void bw_model_destroy(struct bw_model *model);
/* Drops what is kept for replay: before a device that the model ran on is closed while the model lives on. */
void bw_model_forget(struct bw_model *model);

struct bw_model_dim {
    int64_t size;       /* -1: free and not bound */
    const char *symbol; /* its name in the file, or NULL */
};

/* An input or output as the file declares it, with bound dimensions filled in. Strings live as long as the
 * model. */
struct bw_model_value {
    const char *name;
    enum bw_value_kind kind; /* NONE: an optional */
    enum bw_dtype dtype;     /* of arrays */
    bool has_shape;          /* else rank and dims are unknown */
    uint32_t rank;
    struct bw_model_dim dims[BW_TENSOR_RANK_MAX];
};
uint32_t bw_model_input_count(const struct bw_model *model);
uint32_t bw_model_output_count(const struct bw_model *model);
void bw_model_input(const struct bw_model *model, uint32_t index, struct bw_model_value *value);
void bw_model_output(const struct bw_model *model, uint32_t index, struct bw_model_value *value);

/* Gives a free dimension its size, by symbol. -ENOENT: no input has it (the hint lists those that exist). */
int bw_model_bind(struct bw_model *model, const char *symbol, int64_t size, struct bw_err *err);
/* Gives an input its whole shape, by name. -EINVAL: it contradicts the file. */
int bw_model_bind_shape(struct bw_model *model, const char *input, uint32_t rank, const int64_t *dims,
                        struct bw_err *err);
/* The shape of an input when all its dimensions are fixed or bound; else -EINVAL, naming the one that is not.
 */
int bw_model_input_shape(const struct bw_model *model, uint32_t index, uint32_t *rank, int64_t *dims,
                         struct bw_err *err);

/* Runs on a device, or on the tensor evaluator where device is NULL. inputs: one per model input, data stay
 * the caller's; shapes must agree with the file and with what was bound. outputs: one per model output,
 * written only on success; end them with bw_value_free. Errors name node, op type and opset.
 * A device with memory of its own gets large weights from their files by disks ("disk:PATH"): at most 8 more
 * devices of its context, open until bw_model_forget or bw_model_destroy.
 * Indexes (Gather, Scatter and the like) that are out of range are an error (-ERANGE) where they are
 * constants or an input of the model; those that the model computes are kept within their axis, so that they
 * read a wrong element and nothing else, and write none. */
int bw_model_run(struct bw_model *model, struct bw_device *device, const struct bw_value *inputs,
                 struct bw_value *outputs, struct bw_err *err);

/* The tensor graph that a run with these inputs would execute, without running it: for `compile`. Only models
 * that can be imported in one piece have one; -ENOTSUP names the node that needs values in the midst. Arrays'
 * data are read only where values decide shapes. The caller ends the graph with bw_tensor_graph_destroy
 * before the model; *outputs is freed with free(). */
int bw_model_graph(struct bw_model *model, const struct bw_value *inputs, struct bw_tensor_graph **graph,
                   bw_tensor **outputs, uint32_t *output_count, struct bw_err *err);

/* Whether the values of this input decided what the last bw_model_run or bw_model_graph computes (a shape, a
 * branch, how often a loop goes round), so that with others it may be another computation, or were refused
 * (an index out of range). Also after a failure, whose cause they may be. */
bool bw_model_input_decided(const struct bw_model *model, uint32_t index);

struct bw_model_stats {
    uint64_t runs, imports, plans;      /* since the model was loaded; plans: compiled for a device */
    uint64_t nodes;                     /* ONNX nodes of the last import */
    bool replayed;                      /* the last run imported nothing */
    double import_seconds, run_seconds; /* of the last run */
    struct bw_plan_stats plan;          /* of the last run on a device: sums over its plans */
};
void bw_model_stats(const struct bw_model *model, struct bw_model_stats *stats);

/* From the next plan on: every kernel and copy of a run on a device is stamped with its times. */
void bw_model_profile(struct bw_model *model, bool on);
/* The replays of the last run, one for each piece that was run on the device, in order; of a run with very
 * many, the first 10,000. <bellwire/profile.h> makes a trace or a report of them. They are the model's until
 * its next run. Returns their number. */
struct bw_profile;
uint32_t bw_model_profiles(const struct bw_model *model, const struct bw_profile *const **profiles);

#ifdef __cplusplus
}
#endif
#endif
