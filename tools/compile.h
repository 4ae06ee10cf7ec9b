/* `bellwire compile`: what its parts share. */
#ifndef BW_TOOLS_COMPILE_H
#define BW_TOOLS_COMPILE_H

#include <bellwire/tensor.h>

#include "base/text.h"

/* compile_queues.c: links the graph on `device` and prints what a replay gives to its queues. */
int bw_compile_queues_print(struct bw_tensor_graph *graph, struct bw_device *device, const bw_tensor *outputs,
                            uint32_t output_count, struct bw_text *text, struct bw_err *err);

#endif
