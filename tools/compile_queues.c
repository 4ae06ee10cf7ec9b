/* Command buffers by packet: see compile.h. */
#include "tools/compile.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/plan.h"
#include "drivers/amd/arch.h"
#include "drivers/amd/pm4.h"
#include "drivers/amd/sdma.h"
#include "drivers/host/packet.h"
#include "hcq/linked.h"

static const char *kernel_name(const uint32_t *fields)
{
    const struct bw_kernel *kernel = (const struct bw_kernel *)(uintptr_t)bw_host_field64(fields);
    return bw_kernel_info(kernel)->name;
}

/* The CPU's own packets (drivers/host/packet.h). */
static void host_print(const uint32_t *words, uint32_t word_count, struct bw_text *text)
{
    static const char *const names[BW_HOST_OP_COUNT] = {
        [BW_HOST_OP_NOP] = "NOP",         [BW_HOST_OP_KERNEL] = "KERNEL",
        [BW_HOST_OP_COPY] = "COPY",       [BW_HOST_OP_WAIT] = "WAIT",
        [BW_HOST_OP_SIGNAL] = "SIGNAL",   [BW_HOST_OP_TIMESTAMP] = "TIMESTAMP",
        [BW_HOST_OP_BARRIER] = "BARRIER",
    };
    for (uint32_t at = 0; at < word_count;) {
        uint32_t opcode = bw_host_header_opcode(words[at]), length = bw_host_header_words(words[at]);
        if (opcode >= BW_HOST_OP_COUNT || !length || length > word_count - at) {
            bw_text_add(text, "%6u  not a packet: %08x\n", at, words[at]);
            return;
        }
        bw_text_add(text, "%6u  %s", at, names[opcode]);
        const uint32_t *fields = words + at + 1;
        if (opcode == BW_HOST_OP_KERNEL)
            bw_text_add(text, " %s arguments 0x%" PRIx64 " groups %u,%u,%u", kernel_name(fields),
                        bw_host_field64(fields + 2), fields[4], fields[5], fields[6]);
        else if (opcode == BW_HOST_OP_COPY)
            bw_text_add(text, " to 0x%" PRIx64 " from 0x%" PRIx64 " bytes %" PRIu64, bw_host_field64(fields),
                        bw_host_field64(fields + 2), bw_host_field64(fields + 4));
        else if (opcode == BW_HOST_OP_WAIT || opcode == BW_HOST_OP_SIGNAL)
            bw_text_add(text, " address 0x%" PRIx64 " value %" PRIu64, bw_host_field64(fields),
                        bw_host_field64(fields + 2));
        else if (opcode == BW_HOST_OP_TIMESTAMP)
            bw_text_add(text, " address 0x%" PRIx64, bw_host_field64(fields));
        bw_text_add(text, "\n");
        at += length;
    }
}

static void command_print(const struct bw_linked_command *command, struct bw_text *text)
{
    const struct bw_device_info *info = bw_device_info(command->device);
    bw_text_add(text, "\n%s, %s: ", info->name, command->queue_label);
    if (command->kind == BW_STEP_HOST_WAIT)
        bw_text_add(text, "the host waits for it\n");
    if (command->kind == BW_STEP_AFTER)
        bw_text_add(text, "what follows waits for %s%s%s\n", command->producer_label,
                    command->producer == command->device ? "" : " of ",
                    command->producer == command->device ? "" : bw_device_info(command->producer)->name);
    if (command->kind != BW_STEP_SUBMIT)
        return;
    bw_text_add(text, "%u words\n", command->word_count);
    const struct bw_amd_arch *arch = bw_amd_arch_find(info->arch);
    if (!arch)
        host_print(command->words, command->word_count, text);
    else if (command->copy)
        bw_amd_sdma_print_generation(arch->packets & (BW_AMD_SDMA_4 | BW_AMD_SDMA_5), command->words,
                                     command->word_count, text);
    else
        bw_amd_pm4_print_generation(arch->packets & (BW_AMD_PM4_COHER | BW_AMD_PM4_GCR), command->words,
                                    command->word_count, text);
}

int bw_compile_queues_print(struct bw_tensor_graph *graph, struct bw_device *device, const bw_tensor *outputs,
                            uint32_t output_count, struct bw_text *text, struct bw_err *err)
{
    struct bw_plan *plan = NULL;
    struct bw_linked_command command;
    const struct bw_plan_options options = {.size = sizeof options, .encode_only = true};
    int rc = bw_plan_create(graph, device, outputs, output_count, &options, &plan, err);
    for (uint32_t i = 0; !rc && bw_linked_graph_command(bw_plan_linked(plan), i, &command); i++)
        command_print(&command, text);
    bw_plan_destroy(plan);
    return rc;
}
