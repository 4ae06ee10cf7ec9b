/* Operations to packets. Registers of a dispatch: Linux gc_11_0_0_sh_mask.h; their initial values: LLVM
 * AMDGPUUsage, "Initial Kernel Execution State"; the sequence is what Mesa's radv and ROCr set before
 * DISPATCH_DIRECT. */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/amd/device.h"
#include "drivers/amd/pm4.h"
#include "drivers/amd/regs.h"
#include "drivers/amd/sdma.h"
#include "drivers/amd/state.h"

static const char subsystem[] = "amd";

static struct bw_amd_register_value constant(uint64_t value)
{
    return (struct bw_amd_register_value){bw_operand_constant(value), 0, false};
}

static struct bw_amd_register_value address(struct bw_operand operand, uint8_t shift)
{
    return (struct bw_amd_register_value){operand, shift, true};
}

static void encode_program(struct bw_encoder *encoder, const struct bw_amd_device *device,
                           const struct bw_amd_kernel *kernel, const struct bw_dispatch *dispatch,
                           const struct bw_amd_scratch *scratch)
{
    const struct bw_amd_descriptor *descriptor = &kernel->code->descriptor;
    uint64_t lds_bytes = (uint64_t)descriptor->group_bytes + dispatch->dynamic_lds_bytes;
    uint32_t lds_units = (uint32_t)bw_div_up(lds_bytes, device->arch->lds_granule_bytes);
    uint32_t rsrc2 = descriptor->rsrc2 | bw_amd_bits_pack(BW_AMD_COMPUTE_PGM_RSRC2_LDS_SIZE, lds_units);
    const struct bw_amd_register_value program[] = {address(bw_operand_constant(kernel->entry_va), 8)};
    /* Four registers in a row: base of scratch (256-byte units, like the program), RSRC1, RSRC2. */
    const struct bw_amd_register_value resources[] = {address(bw_operand_constant(scratch->memory.gpu_va), 8),
                                                      constant(descriptor->rsrc1), constant(rsrc2)};
    const struct bw_amd_register_value rsrc3 = constant(descriptor->rsrc3), no_limits = constant(0),
                                       tmpring_size = constant(scratch->tmpring_size);
    _Static_assert(BW_AMD_COMPUTE_DISPATCH_SCRATCH_BASE_LO + 2 == BW_AMD_COMPUTE_PGM_RSRC1, "in a row");
    _Static_assert(BW_AMD_COMPUTE_PGM_RSRC1 + 1 == BW_AMD_COMPUTE_PGM_RSRC2, "in a row");
    bw_amd_state_set(encoder, BW_AMD_COMPUTE_PGM_LO, program, BW_COUNT_OF(program));
    bw_amd_state_set(encoder, BW_AMD_COMPUTE_DISPATCH_SCRATCH_BASE_LO, resources, BW_COUNT_OF(resources));
    bw_amd_state_set(encoder, device->arch->rsrc3_register, &rsrc3, 1);
    bw_amd_state_set(encoder, BW_AMD_COMPUTE_TMPRING_SIZE, &tmpring_size, 1);
    bw_amd_state_set(encoder, BW_AMD_COMPUTE_RESOURCE_LIMITS, &no_limits, 1);
}

/* User SGPRs in the order of the property bits; see enum bw_amd_kernel_property. */
static void encode_user_data(struct bw_encoder *encoder, const struct bw_amd_kernel *kernel,
                             const struct bw_dispatch *dispatch, uint32_t private_bytes)
{
    uint32_t properties = kernel->code->descriptor.properties, count = 0;
    struct bw_amd_register_value values[BW_AMD_USER_SGPRS_MAX];
    struct bw_operand block = dispatch->argument_block, packet = block;
    packet.addend += kernel->packet_offset;
    /* Scratch in user SGPRs: check_scratch_sgprs took only kernels that have none. */
    for (int i = 0; i < 4 && (properties & BW_AMD_KERNEL_PRIVATE_SEGMENT_BUFFER); i++)
        values[count++] = constant(0);
    if (properties & BW_AMD_KERNEL_DISPATCH_PTR)
        values[count++] = address(packet, 0);
    if (properties &
        BW_AMD_KERNEL_QUEUE_PTR) /* no amd_queue_t: a kernel that follows the pointer faults at 0 */
        values[count++] = address(bw_operand_constant(0), 0);
    if (properties & BW_AMD_KERNEL_KERNARG_SEGMENT_PTR)
        values[count++] = address(block, 0);
    if (properties & BW_AMD_KERNEL_DISPATCH_ID)
        values[count++] = address(bw_operand_constant(0), 0);
    if (properties & BW_AMD_KERNEL_FLAT_SCRATCH_INIT)
        values[count++] = address(bw_operand_constant(0), 0);
    if (properties & BW_AMD_KERNEL_PRIVATE_SEGMENT_SIZE)
        values[count++] = constant(private_bytes);
    /* Preloaded arguments would follow; their values are not known here, and the kernel's first 256 bytes
     * load them itself (AMDGPUUsage, "Preloaded Kernel Arguments"), since it is entered at its start. */
    if (count)
        bw_amd_state_set(encoder, BW_AMD_COMPUTE_USER_DATA_0, values, count);
}

static void encode_launch(struct bw_encoder *encoder, const struct bw_dispatch *dispatch, uint32_t wave_size)
{
    /* START_X..Z, then NUM_THREAD_X..Z: six registers in a row. Groups are all whole, so the partial sizes
     * stay 0. */
    const struct bw_amd_register_value geometry[] = {constant(0),
                                                     constant(0),
                                                     constant(0),
                                                     constant(dispatch->group_size[0]),
                                                     constant(dispatch->group_size[1]),
                                                     constant(dispatch->group_size[2])};
    _Static_assert(BW_AMD_COMPUTE_START_X + 3 == BW_AMD_COMPUTE_NUM_THREAD_X, "in a row");
    bw_amd_state_set(encoder, BW_AMD_COMPUTE_START_X, geometry, BW_COUNT_OF(geometry));
    bw_amd_state_emit(encoder);
    uint32_t initiator = bw_amd_bits_pack(BW_AMD_COMPUTE_DISPATCH_INITIATOR_COMPUTE_SHADER_EN, 1) |
                         bw_amd_bits_pack(BW_AMD_COMPUTE_DISPATCH_INITIATOR_FORCE_START_AT_000, 1) |
                         bw_amd_bits_pack(BW_AMD_COMPUTE_DISPATCH_INITIATOR_ORDER_MODE, 1) |
                         bw_amd_bits_pack(BW_AMD_COMPUTE_DISPATCH_INITIATOR_CS_W32_EN, wave_size == 32);
    bw_amd_pm4_dispatch_direct(encoder, dispatch->group_count, initiator);
}

/* The command processor writes it when it comes by, not when the kernels before are done; but it is never
 * many of them ahead, and where each waits for the one before, none. */
static void encode_progress(const struct bw_amd_queue *queue, struct bw_encoder *encoder)
{
    uint32_t dispatches = bw_amd_state_dispatch(encoder);
    if (!dispatches || dispatches % BW_AMD_PROGRESS_KERNELS)
        return;
    bw_amd_pm4_write_data(
        encoder, bw_operand_constant(queue->pointer_memory.gpu_va + BW_AMD_POINTER_PROGRESS), &dispatches, 1);
}

static bool is_empty(const struct bw_dispatch *dispatch)
{
    for (int i = 0; i < 3; i++)
        if (dispatch->group_count[i].symbol == BW_SYMBOL_NONE && dispatch->group_count[i].addend == 0)
            return true;
    return false;
}

/* gfx90a hands scratch to kernels in user SGPRs, as a buffer resource and an offset, which this driver does
 * not make. A kernel that has none does not look at them. */
static int check_scratch_sgprs(const struct bw_amd_kernel *kernel, struct bw_err *err)
{
    uint32_t properties = kernel->code->descriptor.properties;
    if (!kernel->base.info.private_bytes ||
        !(properties & (BW_AMD_KERNEL_PRIVATE_SEGMENT_BUFFER | BW_AMD_KERNEL_FLAT_SCRATCH_INIT)))
        return 0;
    return bw_fail(err, -ENOTSUP, subsystem, "kernel %s: scratch of %llu bytes per work-item in user SGPRs",
                   kernel->base.info.name, (unsigned long long)kernel->base.info.private_bytes);
}

int bw_amd_encode_kernel(struct bw_queue *base, struct bw_encoder *encoder, struct bw_kernel *base_kernel,
                         const struct bw_dispatch *dispatch, struct bw_err *err)
{
    struct bw_amd_queue *queue = bw_amd_queue(base);
    const struct bw_amd_device *device = bw_amd_device(base->device);
    const struct bw_amd_kernel *kernel = (const struct bw_amd_kernel *)base_kernel;
    if (base->kind != BW_QUEUE_COMPUTE)
        return bw_fail(err, -EINVAL, subsystem, "kernel %s on a copy queue", base_kernel->info.name);
    int rc = bw_amd_dispatch_check(kernel, dispatch, err);
    rc = rc ? rc : check_scratch_sgprs(kernel, err);
    if (rc || is_empty(dispatch))
        return rc;
    struct bw_amd_scratch scratch = {0};
    if (base_kernel->info.private_bytes)
        rc = bw_amd_scratch_get(queue, base_kernel->info.name, base_kernel->info.private_bytes,
                                base_kernel->info.wave_size, &scratch, err);
    if (rc)
        return rc;
    encode_program(encoder, device, kernel, dispatch, &scratch);
    encode_user_data(encoder, kernel, dispatch, base_kernel->info.private_bytes);
    encode_launch(encoder, dispatch, base_kernel->info.wave_size);
    encode_progress(queue, encoder);
    return encoder->failed;
}

void bw_amd_encode_begin(struct bw_queue *queue, struct bw_encoder *encoder)
{
    bw_amd_state_begin(encoder);
}

/* The command processor's own engine, for devices whose copy engines are taken. It waits for its bytes. */
static int copy_compute(struct bw_encoder *encoder, struct bw_operand target, struct bw_operand source,
                        uint64_t size_bytes, uint64_t *done_bytes)
{
    uint64_t take_bytes = size_bytes < BW_AMD_PM4_DMA_BYTES_MAX ? size_bytes : BW_AMD_PM4_DMA_BYTES_MAX;
    bw_amd_pm4_dma_data(encoder, target, source, (uint32_t)take_bytes);
    *done_bytes = take_bytes;
    return encoder->failed;
}

int bw_amd_encode_copy(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand target,
                       struct bw_operand source, uint64_t size_bytes, uint64_t *done_bytes)
{
    const struct bw_amd_device *device = bw_amd_device(queue->device);
    uint64_t max_bytes = queue->device->caps.copy_bytes_max;
    *done_bytes = 0;
    if (size_bytes == 0)
        return 0;
    if (queue->kind != BW_QUEUE_COPY)
        return copy_compute(encoder, target, source, size_bytes, done_bytes);
    uint64_t take_bytes = size_bytes < max_bytes ? size_bytes : max_bytes;
    bw_amd_sdma_copy_linear(encoder, device->sdma, target, source, take_bytes);
    if (encoder->failed)
        return encoder->failed;
    *done_bytes = take_bytes;
    return 0;
}

/* Both engines compare the low 32 bits, unsigned: the caller keeps a signal within one window
 * (caps.device_wait_64 is false). */
int bw_amd_encode_wait(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand target,
                       struct bw_operand value)
{
    if (queue->kind == BW_QUEUE_COMPUTE)
        bw_amd_pm4_wait_mem(encoder, BW_AMD_WAIT_GREATER_OR_EQUAL, target, value, UINT32_MAX);
    else
        bw_amd_sdma_poll_memory(encoder, target, value, UINT32_MAX);
    return encoder->failed;
}

/* A command buffer ends with its last signal: whoever sees the signal may free the buffer at once, so the
 * padding stands before the signal's last packet, whose length fills the alignment. What the interrupt needs
 * comes before it as well. */
static void signal_compute(const struct bw_amd_device *device, struct bw_encoder *encoder,
                           struct bw_operand target, struct bw_operand value, bool interrupt)
{
    _Static_assert(BW_AMD_PM4_WORDS_RELEASE_MEM % BW_AMD_PM4_IB_ALIGNMENT_WORDS == 0, "nothing follows");
    struct bw_amd_release signal = {.cache = BW_AMD_CACHE_WRITE_BACK,
                                    .data_select = BW_AMD_RELEASE_DATA_64,
                                    .address = target,
                                    .data = value};
    if (interrupt) {
        /* The event's number into its mailbox, then the interrupt: the kernel driver finds the event by
         * either. */
        bw_amd_pm4_release_mem(encoder, device->pm4,
                               &(struct bw_amd_release){.data_select = BW_AMD_RELEASE_DATA_64,
                                                        .address = bw_operand_constant(device->mailbox_va),
                                                        .data = bw_operand_constant(device->event_id)});
        signal.interrupt_select = BW_AMD_RELEASE_INTERRUPT_AFTER_WRITE;
        signal.interrupt_context = device->event_id;
    }
    bw_amd_pm4_pad(encoder, BW_AMD_PM4_IB_ALIGNMENT_WORDS);
    bw_amd_pm4_release_mem(encoder, device->pm4, &signal);
}

static void signal_copy(const struct bw_amd_device *device, struct bw_encoder *encoder,
                        struct bw_operand target, struct bw_operand value, bool interrupt)
{
    _Static_assert(2 * BW_AMD_SDMA_WORDS_FENCE % BW_AMD_SDMA_IB_ALIGNMENT_WORDS == 0, "nothing follows");
    if (interrupt) {
        /* It may come before the signal is seen: waiters look again at times. */
        bw_amd_sdma_fence(encoder, device->sdma, bw_operand_constant(device->mailbox_va),
                          bw_operand_constant(device->event_id), 0);
        bw_amd_sdma_trap(encoder, device->event_id);
    }
    /* A fence writes 32 bits. All values of one signal word share their high half (caps.device_wait_64 is
     * false), so it may come first; the low half ends the command buffer. */
    struct bw_operand high = target;
    high.addend += sizeof(uint32_t);
    bw_amd_sdma_pad(encoder, BW_AMD_SDMA_IB_ALIGNMENT_WORDS);
    bw_amd_sdma_fence(encoder, device->sdma, high, value, 32);
    bw_amd_sdma_fence(encoder, device->sdma, target, value, 0);
}

int bw_amd_encode_signal(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand target,
                         struct bw_operand value, bool interrupt)
{
    const struct bw_amd_device *device = bw_amd_device(queue->device);
    interrupt = interrupt && device->mailbox_va;
    if (queue->kind == BW_QUEUE_COMPUTE)
        signal_compute(device, encoder, target, value, interrupt);
    else
        signal_copy(device, encoder, target, value, interrupt);
    return encoder->failed;
}

int bw_amd_encode_timestamp(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand target)
{
    if (queue->kind == BW_QUEUE_COMPUTE)
        bw_amd_pm4_release_mem(encoder, bw_amd_device(queue->device)->pm4,
                               &(struct bw_amd_release){.data_select = BW_AMD_RELEASE_DATA_CLOCK,
                                                        .address = target,
                                                        .data = bw_operand_constant(0)});
    else
        bw_amd_sdma_timestamp(encoder, target);
    return encoder->failed;
}

int bw_amd_encode_barrier(struct bw_queue *queue, struct bw_encoder *encoder, uint32_t flags)
{
    if (queue->kind != BW_QUEUE_COMPUTE)
        return 0; /* SDMA works in order, and its accesses are not cached by the compute units */
    uint32_t cache = 0;
    /* What earlier kernels wrote is theirs until they are done, so a release waits for them too. */
    if (flags & (BW_BARRIER_EXECUTION | BW_BARRIER_RELEASE))
        bw_amd_pm4_event_write(encoder, BW_AMD_EVENT_CS_PARTIAL_FLUSH, BW_AMD_EVENT_INDEX_PARTIAL_FLUSH);
    if (flags & BW_BARRIER_EXECUTION)
        cache |= BW_AMD_CACHE_LOCAL;
    if (flags & BW_BARRIER_ACQUIRE)
        cache |= BW_AMD_CACHE_INVALIDATE;
    if (flags & BW_BARRIER_RELEASE)
        cache |= BW_AMD_CACHE_WRITE_BACK;
    if (flags & BW_BARRIER_CODE)
        cache |= BW_AMD_CACHE_CODE;
    if (cache)
        bw_amd_pm4_acquire_mem(encoder, bw_amd_device(queue->device)->pm4, cache);
    return encoder->failed;
}

int bw_amd_encode_end(struct bw_queue *queue, struct bw_encoder *encoder)
{
    if (queue->kind == BW_QUEUE_COMPUTE)
        bw_amd_pm4_pad(encoder, BW_AMD_PM4_IB_ALIGNMENT_WORDS);
    else
        bw_amd_sdma_pad(encoder, BW_AMD_SDMA_IB_ALIGNMENT_WORDS);
    return encoder->failed;
}
