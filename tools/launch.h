/* Arguments of `bellwire launch`: text to values and buffers. */
#ifndef BW_TOOLS_LAUNCH_H
#define BW_TOOLS_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/graph.h>
#include <bellwire/model.h>

enum { BW_LAUNCH_ARGUMENTS_MAX = 128 }; /* of one kernel, typed by hand */

enum bw_launch_kind { BW_LAUNCH_VALUE, BW_LAUNCH_BUFFER, BW_LAUNCH_LDS };

struct bw_launch_argument {
    const char *text; /* as typed */
    enum bw_launch_kind kind;
    uint32_t value_bytes;
    uint64_t bits;         /* a value, little endian; LDS: its bytes */
    struct bw_value value; /* a buffer's elements: before the run, then after it */
    struct bw_buffer *buffer;
};

struct bw_launch_arguments {
    struct bw_launch_argument at[BW_LAUNCH_ARGUMENTS_MAX];
    uint32_t count;
    struct bw_argument_info
        described[BW_LAUNCH_ARGUMENTS_MAX]; /* of a kernel that does not say; while it lives */
};

/* "i32:7", "f32:0.5", "buf:FILE.npy", "buf:64K", "buf:f32[16]", "buf:i32:1,2,3", "lds:4K". Prints what is
 * wrong; 0 or a bw_tool_exit code. */
int bw_launch_argument_parse(struct bw_launch_arguments *arguments, const char *text);
/* Where the code object does not describe its arguments: packs these in order, each at a multiple of its
 * size, if that takes all the bytes that the kernel has for them; else leaves the kernel as it is, for the
 * check to name. */
int bw_launch_arguments_describe(struct bw_launch_arguments *arguments, struct bw_kernel *kernel,
                                 struct bw_err *err);
/* Whether they are what the kernel takes: number, kinds, sizes. -EINVAL: the hint lists what it takes. */
int bw_launch_arguments_check(const struct bw_launch_arguments *arguments,
                              const struct bw_kernel_info *kernel, struct bw_err *err);
/* Makes and fills the buffers; `launch` gets one entry per argument in `calls`, and the LDS that they need.
 */
int bw_launch_arguments_upload(struct bw_launch_arguments *arguments, struct bw_device *device,
                               const struct bw_kernel_info *kernel, struct bw_launch *launch,
                               struct bw_argument *calls, struct bw_err *err);
int bw_launch_arguments_download(struct bw_launch_arguments *arguments, struct bw_err *err);
void bw_launch_arguments_free(struct bw_launch_arguments *arguments);

#endif
