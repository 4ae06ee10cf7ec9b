/* What a queue is at: the command buffers that it was given last say what may be running, the signals in
 * memory say what is done. A mock tells the rest; hardware does not. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "drivers/amd/device.h"
#include "drivers/amd/pm4.h"
#include "drivers/amd/regs.h"
#include "drivers/amd/sdma.h"

enum { NAMED_MAX = 3 }; /* kernels named for one queue */

struct walk {
    const struct bw_amd_device *device;
    uint64_t program; /* COMPUTE_PGM as last set, bytes */
    const struct bw_amd_kernel *kernels[NAMED_MAX];
    uint32_t kernel_count, more; /* that may be running */
    uint64_t copy_bytes, copy_target;
    uint32_t copy_count;
    bool waits; /* nothing after this has begun */
};

/* The CPU's view `cpu` of what lies at gpu_va: of `size_bytes` at a device address inside it. */
static bool view_of(uint64_t gpu_va, const struct bw_region *cpu, uint64_t va, uint64_t size_bytes,
                    const struct bw_region **region, uint64_t *offset)
{
    uint64_t inside = va - gpu_va;
    if (va < gpu_va || inside >= cpu->size_bytes || size_bytes > cpu->size_bytes - inside)
        return false;
    *region = cpu;
    *offset = inside;
    return true;
}

/* False when nothing that the device reaches and the CPU sees covers it. device->lock is held. */
static bool cpu_view(const struct bw_amd_device *device, uint64_t va, uint64_t size_bytes,
                     const struct bw_region **region, uint64_t *offset)
{
    for (const struct bw_amd_memory *m = device->memories; m; m = m->next)
        if (view_of(m->iface.gpu_va, &m->iface.cpu, va, size_bytes, region, offset))
            return true;
    for (size_t i = 0; i < device->peer_views.count; i++)
        if (view_of(device->peer_views.data[i].gpu_va, &device->peer_views.data[i].cpu, va, size_bytes,
                    region, offset))
            return true;
    return view_of(device->upload_memory.gpu_va, &device->upload_memory.cpu, va, size_bytes, region, offset);
}

static const struct bw_amd_kernel *kernel_at(const struct bw_amd_device *device, uint64_t entry_va)
{
    for (const struct bw_amd_program *program = device->programs; program; program = program->next)
        for (uint32_t i = 0; i < program->kernel_count; i++)
            if (program->kernels[i].entry_va == entry_va)
                return &program->kernels[i];
    return NULL;
}

/* The kernel whose code a pc is in: the one that begins last before it. */
static const struct bw_amd_kernel *kernel_around(const struct bw_amd_device *device, uint64_t pc)
{
    const struct bw_amd_kernel *found = NULL;
    for (const struct bw_amd_program *program = device->programs; program; program = program->next) {
        if (pc < program->memory.gpu_va || pc - program->memory.gpu_va >= program->memory.size_bytes)
            continue;
        for (uint32_t i = 0; i < program->kernel_count; i++) {
            const struct bw_amd_kernel *kernel = &program->kernels[i];
            if (kernel->entry_va <= pc && (!found || kernel->entry_va > found->entry_va))
                found = kernel;
        }
    }
    return found;
}

static void add_kernel(struct walk *walk)
{
    const struct bw_amd_kernel *kernel = kernel_at(walk->device, walk->program);
    for (uint32_t i = 0; i < walk->kernel_count; i++)
        if (walk->kernels[i] == kernel)
            return;
    if (!kernel)
        return;
    if (walk->kernel_count < NAMED_MAX)
        walk->kernels[walk->kernel_count++] = kernel;
    else
        walk->more++;
}

static void add_copy(struct walk *walk, const uint32_t *words)
{
    if (!walk->copy_count++) {
        walk->copy_bytes = bw_amd_bits_unpack(BW_AMD_SDMA_COPY_LINEAR_COUNT, words[1]) + 1ull;
        walk->copy_target = words[5] | (uint64_t)words[6] << 32;
    }
}

/* Everything before is done. */
static void prove_done(struct walk *walk)
{
    walk->kernel_count = walk->more = walk->copy_count = 0;
}

/* Whether a 64-bit signal has arrived. */
static bool signal_arrived(const struct bw_amd_device *device, const uint32_t *words)
{
    const struct bw_region *region;
    uint64_t offset, va = words[3] | (uint64_t)words[4] << 32, value = words[5] | (uint64_t)words[6] << 32;
    if (bw_amd_bits_unpack(BW_AMD_PM4_RELEASE_MEM_DATA_SEL, words[2]) != BW_AMD_RELEASE_DATA_64 || va % 8 ||
        va == device->mailbox_va || !cpu_view(device, va, 8, &region, &offset))
        return false;
    return (int64_t)(bw_amd_load64(region, offset) - value) >= 0;
}

/* Whether the low half of a copy queue's signal has arrived; the high half comes before it, and looks the
 * same before and after. */
static bool fence_arrived(const struct bw_amd_device *device, const uint32_t *words)
{
    const struct bw_region *region;
    uint64_t offset, va = words[1] | (uint64_t)words[2] << 32;
    if (va % 8 || va == device->mailbox_va || !cpu_view(device, va, 8, &region, &offset))
        return false;
    return (int32_t)((uint32_t)bw_amd_load64(region, offset) - words[3]) >= 0;
}

/* Whether a wait for a word of at least that value is over. What cannot be seen is not known to be. */
static bool wait_is_over(const struct bw_amd_device *device, uint64_t va, uint32_t value)
{
    const struct bw_region *region;
    uint64_t offset;
    if (!cpu_view(device, bw_align_down(va, 8), 8, &region, &offset))
        return false;
    return (uint32_t)(bw_amd_load64(region, offset) >> va % 8 * 8) >= value;
}

/* The program's address among registers that were written, in 256-byte units; it may change by half. */
static void walk_registers(struct walk *walk, const uint32_t *words, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t reg = words[1] + BW_AMD_PM4_SH_REG_FIRST + i, units = walk->program >> 8;
        if (reg == BW_AMD_COMPUTE_PGM_LO)
            units = (units & ~(uint64_t)UINT32_MAX) | words[2 + i];
        else if (reg == BW_AMD_COMPUTE_PGM_LO + 1)
            units = (units & UINT32_MAX) | (uint64_t)words[2 + i] << 32;
        walk->program = units << 8;
    }
}

static void walk_compute(struct walk *walk, const struct bw_amd_decoded *decoded, const uint32_t *words)
{
    switch (decoded->packet->opcode) {
    case BW_AMD_PM4_OP_SET_SH_REG:
        walk_registers(walk, words, decoded->tail_count);
        break;
    case BW_AMD_PM4_OP_DISPATCH_DIRECT:
        add_kernel(walk);
        break;
    case BW_AMD_PM4_OP_WAIT_REG_MEM:
        walk->waits = !wait_is_over(walk->device, words[2] | (uint64_t)words[3] << 32, words[4]);
        break;
    case BW_AMD_PM4_OP_RELEASE_MEM:
        if (signal_arrived(walk->device, words))
            prove_done(walk);
        break;
    default:
        break;
    }
}

static void walk_copy(struct walk *walk, const struct bw_amd_decoded *decoded, const uint32_t *words)
{
    switch (decoded->packet->opcode | decoded->packet->sub_opcode << 8) {
    case BW_AMD_SDMA_OP_COPY_LINEAR:
        add_copy(walk, words);
        break;
    case BW_AMD_SDMA_OP_POLL_REGMEM:
        walk->waits = !wait_is_over(walk->device, words[1] | (uint64_t)words[2] << 32, words[3]);
        break;
    case BW_AMD_SDMA_OP_FENCE:
        if (fence_arrived(walk->device, words))
            prove_done(walk);
        break;
    default:
        break;
    }
}

static void walk_commands(struct walk *walk, enum bw_queue_kind kind, uint64_t va, uint32_t word_count)
{
    const struct bw_amd_device *device = walk->device;
    const struct bw_region *region;
    uint64_t offset, length;
    if (!cpu_view(device, va, (uint64_t)word_count * 4, &region, &offset))
        return;
    for (uint64_t at = 0; at < word_count && !walk->waits; at += length) {
        uint32_t words[BW_AMD_EMIT_WORDS_MAX];
        uint64_t left = word_count - at, count = left < BW_AMD_EMIT_WORDS_MAX ? left : BW_AMD_EMIT_WORDS_MAX;
        for (uint64_t i = 0; i < count; i++)
            words[i] = bw_rd32(region, offset + (at + i) * 4);
        struct bw_amd_decoded decoded;
        if (kind == BW_QUEUE_COMPUTE)
            bw_amd_pm4_decode(device->pm4, words, count, &decoded);
        else
            bw_amd_sdma_decode(device->sdma, words, count, &decoded);
        length = decoded.word_count;
        if (!decoded.packet || length > count)
            continue;
        if (kind == BW_QUEUE_COMPUTE)
            walk_compute(walk, &decoded, words);
        else
            walk_copy(walk, &decoded, words);
    }
}

/* Whether a later submission used the same memory, which then holds that one's commands. */
static bool is_overwritten(const struct bw_amd_queue *queue, uint64_t index, uint64_t count)
{
    uint64_t address = atomic_load(&queue->recent[index % BW_AMD_RECENT_SUBMITS].address);
    for (uint64_t i = index + 1; i < count; i++)
        if (atomic_load(&queue->recent[i % BW_AMD_RECENT_SUBMITS].address) == address)
            return true;
    return false;
}

static void walk_queue(struct walk *walk, const struct bw_amd_queue *queue)
{
    uint64_t count = atomic_load(&queue->submit_count);
    uint64_t first = count > BW_AMD_RECENT_SUBMITS ? count - BW_AMD_RECENT_SUBMITS : 0;
    for (uint64_t i = first; i < count && !walk->waits; i++) {
        const struct bw_amd_submit *submit = &queue->recent[i % BW_AMD_RECENT_SUBMITS];
        if (!is_overwritten(queue, i, count))
            walk_commands(walk, queue->base.kind, atomic_load(&submit->address),
                          atomic_load(&submit->word_count));
    }
}

static void print_work(const struct walk *walk, char *text, size_t size)
{
    struct bw_text line = {0};
    for (uint32_t i = 0; i < walk->kernel_count; i++)
        bw_text_add(&line, "%s%s", i ? " or " : "kernel ", walk->kernels[i]->base.info.name);
    if (walk->copy_count)
        bw_text_add(&line, "copy of %" PRIu64 " bytes to 0x%" PRIx64, walk->copy_bytes, walk->copy_target);
    uint32_t more = walk->more + (walk->copy_count ? walk->copy_count - 1 : 0);
    if (more)
        bw_text_add(&line, " or %u more", more);
    bw_text_fit(text, size, "%s", bw_text_string(&line));
    bw_text_free(&line);
}

/* "kernel 0x7f00.." and "pc 0x7f00.." of what a mock says, in names: "kernel add", "pc 0x1c of add". */
static void name_addresses(const struct bw_amd_device *device, char *text, size_t size)
{
    static const char entry_word[] = "kernel 0x", pc_word[] = "pc 0x";
    struct bw_text named = {0};
    for (const char *at = text; *at;) {
        bool entry = !strncmp(at, entry_word, strlen(entry_word));
        bool pc = !strncmp(at, pc_word, strlen(pc_word));
        const char *digits = at + (entry ? strlen(entry_word) : strlen(pc_word));
        char *end = NULL;
        uint64_t va = entry || pc ? strtoull(digits, &end, 16) : 0;
        const struct bw_amd_kernel *kernel = va ? kernel_around(device, va) : NULL;
        if (!kernel || (entry && kernel->entry_va != va)) {
            bw_text_add(&named, "%c", *at++);
            continue;
        }
        if (entry)
            bw_text_add(&named, "kernel %s", kernel->base.info.name);
        else
            bw_text_add(&named, "pc 0x%" PRIx64 " of %s", va - kernel->entry_va, kernel->base.info.name);
        at = end;
    }
    if (!named.failed)
        bw_text_fit(text, size, "%s", bw_text_string(&named));
    bw_text_free(&named);
}

void bw_amd_queue_look_locked(struct bw_amd_queue *queue, struct bw_amd_look *look)
{
    struct bw_amd_device *device = bw_amd_device(queue->base.device);
    const struct bw_iface_ops *ops = device->iface->ops;
    struct walk walk = {.device = device};
    memset(look, 0, sizeof *look);
    if (bw_amd_queue_depends(queue))
        walk.waits = true;
    else
        walk_queue(&walk, queue);
    look->told =
        ops->queue_look && queue->live && !ops->queue_look(device->iface, &queue->hardware, &look->view);
    if (!look->told)
        look->view.waits = walk.waits && !walk.kernel_count && !walk.copy_count;
    else
        name_addresses(device, look->view.text, sizeof look->view.text);
    look->open = walk.kernel_count || walk.copy_count;
    const struct bw_amd_kernel *around = look->view.pc ? kernel_around(device, look->view.pc) : NULL;
    const struct bw_amd_kernel *kernel =
        look->view.entry_va ? kernel_at(device, look->view.entry_va) : around;
    if (kernel) {
        bw_text_fit(look->work, sizeof look->work, "kernel %s", kernel->base.info.name);
        look->pc_offset = kernel == around ? look->view.pc - kernel->entry_va : 0;
    } else {
        print_work(&walk, look->work, sizeof look->work);
    }
    const char *kind = queue->base.kind == BW_QUEUE_COMPUTE ? "compute" : "copy";
    if (queue == device->upload_queue)
        snprintf(look->name, sizeof look->name, "upload queue");
    else
        snprintf(look->name, sizeof look->name, "%s queue %u", kind, queue->base.index);
}

int bw_amd_queue_look(struct bw_queue *base, struct bw_queue_view *view)
{
    struct bw_amd_device *device = bw_amd_device(base->device);
    struct bw_amd_look look;
    pthread_mutex_lock(&device->lock);
    bw_amd_queue_look_locked(bw_amd_queue(base), &look);
    pthread_mutex_unlock(&device->lock);
    struct bw_text text = {0};
    bw_text_add(&text, "%s", look.work);
    if (look.pc_offset)
        bw_text_add(&text, " + 0x%" PRIx64, look.pc_offset);
    bw_text_add(&text, "%s%s", text.length && look.view.text[0] ? ", " : "", look.view.text);
    *view = look.view;
    bw_text_fit(view->text, sizeof view->text, "%s", bw_text_string(&text));
    bw_text_free(&text);
    return 0;
}
