/* What broke, in words: the interface says where, the queues say who it may have been. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "drivers/amd/device.h"

static const char subsystem[] = "amd";

/* What is to blame: the queue that is known to have failed; else those that have something under way and wait
 * for nobody. */
struct blame {
    char text[200]; /* "compute queue 0, kernel add: ", or "" */
    struct bw_queue_view view;
    bool known;
};

static void blame_add(struct blame *blame, const struct bw_amd_look *look)
{
    char before[sizeof blame->text];
    memcpy(before, blame->text, sizeof before);
    bw_text_fit(blame->text, sizeof blame->text, "%s%s%s%s%s", before, before[0] ? ", or " : "", look->name,
                look->work[0] ? ", " : "", look->work);
}

static void blame_queue(struct blame *blame, struct bw_amd_queue *queue)
{
    struct bw_amd_look look;
    if (blame->known)
        return;
    bw_amd_queue_look_locked(queue, &look);
    if (look.told && look.view.failed) {
        *blame = (struct blame){.view = look.view, .known = true};
        blame_add(blame, &look);
    } else if (!look.told && look.open && !look.view.waits) {
        blame_add(blame, &look);
    }
}

/* Compute queues first: most of what breaks is in kernels. device->lock is held. */
static void blame_find(struct bw_amd_device *device, struct blame *blame)
{
    memset(blame, 0, sizeof *blame);
    for (int kind = BW_QUEUE_COMPUTE; kind <= BW_QUEUE_COPY; kind++)
        for (struct bw_amd_queue *queue = device->queues; queue; queue = queue->next)
            if ((int)queue->base.kind == kind)
                blame_queue(blame, queue);
    if (device->upload_queue)
        blame_queue(blame, device->upload_queue);
}

/* Flat addresses of LDS and scratch, whose upper half names one of them: offsets into what a workgroup or a
 * work-item has of it, and a little before. */
static bool describe_aperture(const struct bw_amd_device *device, uint64_t va, char *text, size_t size)
{
    const uint64_t aperture_bytes = 1ull << 32, before_bytes = 1ull << 31;
    const struct bw_iface_properties *properties = &device->iface->properties;
    const struct {
        const char *name;
        uint64_t base;
    } apertures[] = {{"LDS", properties->lds_aperture}, {"scratch", properties->scratch_aperture}};
    for (size_t i = 0; i < BW_COUNT_OF(apertures); i++) {
        uint64_t after = va - apertures[i].base, before = apertures[i].base - va;
        if (!apertures[i].base || (after >= aperture_bytes && before > before_bytes))
            continue;
        bool inside = after < aperture_bytes;
        snprintf(text, size, "%" PRIu64 " bytes %s %s", inside ? after : before, inside ? "into" : "before",
                 apertures[i].name);
        return true;
    }
    return false;
}

/* Code is no buffer that anybody knows of: into it, or past its end in the page that is fetched ahead of it.
 */
static bool describe_code(struct bw_amd_device *device, uint64_t va, char *text, size_t size)
{
    bool found = false;
    pthread_mutex_lock(&device->lock);
    for (const struct bw_amd_program *program = device->programs; program && !found;
         program = program->next) {
        uint64_t offset = va - program->memory.gpu_va, code_bytes = program->memory.size_bytes;
        found = offset < code_bytes + BW_AMD_PAGE_BYTES;
        bool inside = offset < code_bytes;
        if (found)
            snprintf(text, size, "%" PRIu64 " bytes %s the code of %s%s",
                     inside ? offset : offset - code_bytes, inside ? "into" : "past the end of",
                     program->kernel_count ? program->kernels[0].base.info.name : "a program",
                     program->kernel_count > 1 ? " and others" : "");
    }
    pthread_mutex_unlock(&device->lock);
    return found;
}

/* device->lock is not held. */
static void describe_address(struct bw_amd_device *device, uint64_t va, char *text, size_t size)
{
    text[0] = 0;
    if (describe_aperture(device, va, text, size) || describe_code(device, va, text, size))
        return;
    if (device->base.describer.describe)
        device->base.describer.describe(device->base.describer.user, va, text, (uint32_t)size);
}

static void describe_memory(struct bw_amd_device *device, const struct bw_fault *fault,
                            const struct blame *blame, struct bw_err *err)
{
    char nearest[96];
    /* The kernel tells the page, a mock the byte. */
    bool exact = blame->view.has_va && blame->view.va / BW_AMD_PAGE_BYTES == fault->va / BW_AMD_PAGE_BYTES;
    uint64_t va = exact ? blame->view.va : fault->va;
    bw_fail(err, -EIO, subsystem, "%s%smemory fault at 0x%" PRIx64 " (%s%s)", blame->text,
            blame->text[0] ? ": " : "", va,
            fault->not_present ? "not mapped"
            : fault->read_only ? "read only"
            : fault->no_execute
                ? "not executable"
                : "not permitted", /* KFD tells neither reads nor fetches (kfd_int_process_v11.c) */
            fault->imprecise ? ", imprecise" : "");
    describe_address(device, va, nearest, sizeof nearest);
    bw_err_observed(err, "%s", nearest);
}

/* What a wave failed on, behind where it was: "..., group (0, 0, 0) wave 0: illegal instruction: ...". All of
 * it where no wave is named. */
static const char *cause_of(const char *text)
{
    const char *group = strstr(text, "group ("), *colon = group ? strstr(group, ": ") : NULL;
    return colon ? colon + 2 : text;
}

/* A mock says what failed; the reset that the kernel driver reports is only what came of it. */
static void describe_told(const struct bw_fault *fault, const struct blame *blame, struct bw_err *err)
{
    const char *text = blame->view.text, *cause = cause_of(text);
    int place_length = cause == text ? 0 : (int)(cause - text - 2);
    bw_fail(err, -EIO, subsystem, "%s%s%s", blame->text, blame->text[0] ? ": " : "", cause);
    bw_err_hint(err, "%.*s%s%s", place_length, text, place_length && fault->text[0] ? "; " : "", fault->text);
}

static void describe_exception(struct bw_amd_device *device, const struct bw_fault *fault,
                               const struct blame *blame, struct bw_err *err)
{
    char nearest[96];
    bool told = blame->known && blame->view.text[0];
    const char *what = fault->kind == BW_FAULT_LOST ? "the device is gone" : "hardware exception";
    if (told)
        describe_told(fault, blame, err);
    else
        bw_fail(err, -EIO, subsystem, "%s%s%s", blame->text, blame->text[0] ? ": " : "",
                fault->text[0] ? fault->text : what);
    describe_address(device, blame->view.va, nearest, sizeof nearest);
    if (blame->view.has_va)
        bw_err_observed(err, "%s", nearest);
    else if (!told)
        bw_err_observed(err, "reset type %u, cause %u", fault->reset_type, fault->reset_cause);
}

static void describe_fault(struct bw_amd_device *device, const struct bw_fault *fault, struct bw_err *err)
{
    struct blame blame;
    pthread_mutex_lock(&device->lock);
    blame_find(device, &blame);
    pthread_mutex_unlock(&device->lock);
    if (fault->kind == BW_FAULT_MEMORY)
        describe_memory(device, fault, &blame, err);
    else
        describe_exception(device, fault, &blame, err);
    if (blame.known && !err->hint[0])
        bw_err_hint(err, "%s", blame.view.text);
    else if (fault->kind == BW_FAULT_MEMORY && fault->text[0])
        bw_err_hint(err, "%s", fault->text);
    bw_err_device(err, device->base.info.name);
}

bool bw_amd_fault_keep(struct bw_amd_device *device, struct bw_err *failure)
{
    pthread_mutex_lock(&device->lock);
    if (!device->fault.code)
        device->fault = *failure;
    *failure = device->fault;
    pthread_mutex_unlock(&device->lock);
    return failure->code;
}

/* Asks the interface; device->fault_lock is held. */
static void fault_ask(struct bw_amd_device *device, struct bw_err *failure)
{
    struct bw_fault fault = {0};
    int rc = device->iface->ops->query_fault(device->iface, &fault, failure);
    if (!rc && fault.kind != BW_FAULT_NONE)
        describe_fault(device, &fault, failure);
}

int bw_amd_query_fault(struct bw_device *base, struct bw_err *err)
{
    struct bw_amd_device *device = bw_amd_device(base);
    struct bw_err failure = {0};
    pthread_mutex_lock(&device->fault_lock);
    bool broken = bw_amd_fault_keep(device, &failure);
    if (!broken) {
        fault_ask(device, &failure);
        broken = bw_amd_fault_keep(device, &failure);
    }
    pthread_mutex_unlock(&device->fault_lock);
    if (broken && err)
        *err = failure;
    return broken ? -EIO : 0;
}

int bw_amd_reset(struct bw_device *base, struct bw_err *err)
{
    struct bw_amd_device *device = bw_amd_device(base);
    pthread_mutex_lock(&device->fault_lock);
    pthread_mutex_lock(&device->lock);
    int rc = 0;
    for (struct bw_amd_queue *queue = device->queues; queue && !rc; queue = queue->next)
        rc = bw_amd_queue_rebuild(queue, err);
    if (!rc && device->upload_queue)
        rc = bw_amd_queue_rebuild(device->upload_queue, err);
    struct bw_fault fault;
    if (!rc) {
        /* What was reported belongs to the queues that are gone. */
        device->iface->ops->query_fault(device->iface, &fault, NULL);
        memset(&device->fault, 0, sizeof device->fault);
    }
    pthread_mutex_unlock(&device->lock);
    pthread_mutex_unlock(&device->fault_lock);
    return rc;
}
