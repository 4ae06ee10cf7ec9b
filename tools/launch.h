/* Arguments of `bellwire launch`: text to values and buffers. */
#ifndef BW_TOOLS_LAUNCH_H
#define BW_TOOLS_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/graph.h>
#include <bellwire/model.h>

enum { BW_LAUNCH_ARGUMENTS_MAX = 128 }; /* of one kernel, typed by hand */

struct bw_launch_argument {
    bool is_buffer;
    uint64_t bits;         /* a value, little endian */
    struct bw_value value; /* a buffer's elements: before the run, then after it */
    struct bw_buffer *buffer;
};

struct bw_launch_arguments {
    struct bw_launch_argument at[BW_LAUNCH_ARGUMENTS_MAX];
    uint32_t count;
};

/* "i32:7", "f32:0.5", "buf:FILE.npy", "buf:64K". Prints what is wrong; 0 or a bw_tool_exit code. */
int bw_launch_argument_parse(struct bw_launch_arguments *arguments, const char *text);
/* Makes and fills the buffers; `calls` gets one entry per argument. */
int bw_launch_arguments_upload(struct bw_launch_arguments *arguments, struct bw_device *device,
                               struct bw_argument *calls, struct bw_err *err);
int bw_launch_arguments_download(struct bw_launch_arguments *arguments, struct bw_err *err);
void bw_launch_arguments_free(struct bw_launch_arguments *arguments);

#endif
