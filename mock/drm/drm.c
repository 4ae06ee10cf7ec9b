/* Numbers and layouts: Mesa's copy of the interface, include/drm-uapi/{drm.h,amdgpu_drm.h}. */
#include "mock/drm/drm.h"

#include <errno.h>
#include <linux/ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "mock/drm/client.h"
#include "mock/drm/rings.h"

enum {
    DRM_VERSION = 0x00,
    DRM_GET_CLIENT = 0x05,
    DRM_GET_CAP = 0x0c,
    DRM_AMDGPU_INFO = 0x40 + 0x05,
};

enum {
    INFO_ACCEL_WORKING = 0x00,
    INFO_HW_IP_INFO = 0x02,
    INFO_HW_IP_COUNT = 0x03,
    INFO_FW_VERSION = 0x0e,
    INFO_VRAM_USAGE = 0x10,
    INFO_GTT_USAGE = 0x11,
    INFO_VRAM_GTT = 0x14,
    INFO_READ_MMR_REG = 0x15,
    INFO_DEV_INFO = 0x16,
    INFO_VIS_VRAM_USAGE = 0x17,
    INFO_MEMORY = 0x19,
    INFO_GPUVM_FAULT = 0x23,
};

enum { GB_ADDR_CONFIG_REGISTER = 0x263e, GB_ADDR_CONFIG = 0x00000545 };

struct mock_drm_version {
    int32_t major, minor, patchlevel;
    uint32_t pad;
    uint64_t name_length, name, date_length, date, description_length, description;
};
static_assert(sizeof(struct mock_drm_version) == 64, "drm_version");

struct mock_drm_info {
    uint64_t return_pointer;
    uint32_t return_size;
    uint32_t query;
    uint32_t parameter[4];
};
static_assert(sizeof(struct mock_drm_info) == 32, "drm_amdgpu_info");

struct mock_drm_heap {
    uint64_t total, usable, used, max_allocation;
};

/* drm_amdgpu_info_device up to the fields that Linux 6.1 has. */
struct mock_drm_device {
    uint32_t device_id, chip_revision, external_revision, pci_revision;
    uint32_t family, shader_engines, arrays_per_engine, gpu_counter_khz;
    uint64_t engine_clock_max_khz, memory_clock_max_khz;
    uint32_t cu_active, cu_ao_mask, cu_bitmap[4][4];
    uint32_t rb_mask, rb_pipes, hw_contexts, pcie_generation;
    uint64_t ids_flags, va_start, va_end;
    uint32_t va_alignment, pte_fragment_size, gart_page_size, ce_ram_size;
    uint32_t vram_type, vram_width, vce_harvest, double_offchip;
    uint64_t prim_address, pos_address, cntl_address, param_address;
    uint32_t prim_size, pos_size, cntl_size, param_size;
    uint32_t wave_size, vgprs, cu_per_array, tcc_blocks, gs_table_depth, gs_prim_depth, gs_vgt_per_es,
        pcie_lanes;
    uint32_t cu_ao_bitmap[4][4];
    uint64_t high_va_start, high_va_end;
    uint32_t pa_sc_tile, tcc_disabled;
    uint64_t min_engine_clock, min_memory_clock;
};
static_assert(offsetof(struct mock_drm_device, va_start) == 144, "drm_amdgpu_info_device");

struct mock_drm_ip {
    uint32_t major, minor;
    uint64_t capabilities;
    uint32_t ib_start_alignment, ib_size_alignment;
    uint32_t available_rings, discovery_version;
};
static_assert(sizeof(struct mock_drm_ip) == 32, "drm_amdgpu_info_hw_ip");

static void give_text(uint64_t pointer, uint64_t *length, const char *text)
{
    uint64_t whole = strlen(text), part = *length < whole ? *length : whole;
    if (pointer && part)
        memcpy((void *)(uintptr_t)pointer, text, part);
    *length = whole;
}

static int version(struct mock_drm_version *args)
{
    args->major = MOCK_DRM_VERSION_MAJOR;
    args->minor = MOCK_DRM_VERSION_MINOR;
    args->patchlevel = 0;
    give_text(args->name, &args->name_length, "amdgpu");
    give_text(args->date, &args->date_length, "20150101");
    give_text(args->description, &args->description_length, "AMD GPU");
    return 0;
}

static int give(const struct mock_drm_info *args, const void *data, size_t size)
{
    memcpy((void *)(uintptr_t)args->return_pointer, data,
           args->return_size < size ? args->return_size : size);
    return 0;
}

static int give_device(struct bw_mock_gpu *gpu, const struct mock_drm_info *args)
{
    const struct bw_mock_chip *chip = gpu->chip;
    struct mock_drm_device device = {
        .device_id = chip->device_id,
        .external_revision = chip->drm_external_revision,
        .pci_revision = chip->revision,
        .family = chip->drm_family,
        .shader_engines = chip->shader_engines,
        .arrays_per_engine = chip->arrays_per_engine,
        .gpu_counter_khz = BW_MOCK_GPU_CLOCK_HZ / 1000,
        .engine_clock_max_khz = chip->engine_clock_mhz * 1000ull,
        .memory_clock_max_khz = chip->memory_clock_mhz * 1000ull,
        .cu_active = gpu->cu_count,
        .hw_contexts = 8,
        .pcie_generation = 4,
        .va_start = BW_MOCK_DRM_VA_START,
        .va_end = BW_MOCK_DRM_VA_END,
        .va_alignment = BW_MOCK_PAGE,
        .pte_fragment_size = 2 << 20,
        .gart_page_size = BW_MOCK_PAGE,
        .vram_width = chip->memory_width_bits,
        .wave_size = chip->wave_size,
        .vgprs = chip->target_version >= 100100 ? 1536 : 512,
        .cu_per_array = chip->cu_per_array,
        .pcie_lanes = 16,
    };
    for (uint32_t i = 0; i < 16 && i < chip->shader_engines * chip->arrays_per_engine; i++)
        device.cu_bitmap[i / chip->arrays_per_engine % 4][i % chip->arrays_per_engine] |=
            (1u << chip->cu_per_array) - 1;
    return give(args, &device, sizeof device);
}

static int give_ip(struct bw_mock_gpu *gpu, const struct mock_drm_info *args)
{
    const struct bw_mock_chip *chip = gpu->chip;
    uint32_t type = args->parameter[0];
    bool dma = type == MOCK_DRM_IP_DMA;
    struct bw_mock_ip_version block = dma ? chip->sdma : chip->gc;
    struct mock_drm_ip ip = {.ib_start_alignment = dma ? 256 : 32, .ib_size_alignment = dma ? 4 : 32};
    if (type >= MOCK_DRM_IP_NUM || args->parameter[1])
        return -EINVAL;
    if (type > MOCK_DRM_IP_DMA)
        return give(args, &ip, sizeof ip); /* no such ring */
    ip.major = block.major;
    ip.minor = block.minor;
    ip.discovery_version = (uint32_t)block.major << 16 | (uint32_t)block.minor << 8 | block.revision;
    uint32_t rings = type == MOCK_DRM_IP_COMPUTE ? BW_MOCK_DRM_COMPUTE_RINGS
                     : dma                       ? bw_mock_drm_dma_rings(gpu)
                                                 : chip->target_version >= 100100;
    ip.available_rings = (1u << rings) - 1;
    return give(args, &ip, sizeof ip);
}

static int give_memory(struct bw_mock *machine, struct bw_mock_gpu *gpu, const struct mock_drm_info *args)
{
    struct mock_drm_heap vram = {gpu->vram.limit, gpu->vram.limit, gpu->vram.used, gpu->vram.limit / 4 * 3};
    uint64_t seen = gpu->visible_bytes, used = gpu->vram.used < seen ? gpu->vram.used : seen;
    struct mock_drm_heap heaps[3] = {
        vram,
        {seen, seen, used, seen / 4 * 3},
        {machine->system.limit, machine->system.limit, machine->system.used, machine->system.limit / 4 * 3}};
    return give(args, heaps, sizeof heaps);
}

static int give_registers(const struct mock_drm_info *args)
{
    uint32_t value = GB_ADDR_CONFIG;
    if (args->parameter[0] != GB_ADDR_CONFIG_REGISTER || args->parameter[1] != 1)
        return -EFAULT; /* as the kernel does for a register that it does not show */
    return give(args, &value, sizeof value);
}

/* The last memory fault of this file's address space; nothing clears it. */
static int give_fault(struct bw_mock *machine, const struct bw_mock_file *file,
                      const struct mock_drm_info *args)
{
    struct mock_drm_fault fault = {0};
    pthread_mutex_lock(&machine->drm->lock);
    if (file->process)
        fault = file->process->drm->fault;
    pthread_mutex_unlock(&machine->drm->lock);
    return give(args, &fault, sizeof fault);
}

static int info(struct bw_mock *machine, const struct bw_mock_file *file, const struct mock_drm_info *args)
{
    struct bw_mock_gpu *gpu = file->gpu;
    const uint32_t one = 1, firmware[2] = {0x1f7, 0};
    const uint64_t vram_gtt[3] = {gpu->vram.limit, gpu->visible_bytes, machine->system.limit};
    if (!args->return_pointer || !args->return_size)
        return bw_mock_refuse(machine, -EINVAL, "INFO: no room for the answer");
    switch (args->query) {
    case INFO_ACCEL_WORKING:
    case INFO_HW_IP_COUNT:
        return give(args, &one, sizeof one);
    case INFO_HW_IP_INFO:
        return give_ip(gpu, args);
    case INFO_FW_VERSION:
        return give(args, firmware, sizeof firmware);
    case INFO_VRAM_USAGE:
    case INFO_VIS_VRAM_USAGE:
        return give(args, &gpu->vram.used, sizeof gpu->vram.used);
    case INFO_GTT_USAGE:
        return give(args, &machine->system.used, sizeof machine->system.used);
    case INFO_VRAM_GTT:
        return give(args, vram_gtt, sizeof vram_gtt);
    case INFO_READ_MMR_REG:
        return give_registers(args);
    case INFO_DEV_INFO:
        return give_device(gpu, args);
    case INFO_MEMORY:
        return give_memory(machine, gpu, args);
    case INFO_GPUVM_FAULT:
        return give_fault(machine, file, args);
    default:
        return -EINVAL;
    }
}

/* Calls that need what the kernel keeps for an open file. Those that sleep take machine.lock themselves. */
static const struct {
    uint8_t number;
    bool sleeps;
    int (*call)(struct bw_mock_drm_client *client, void *data);
} calls[] = {
    {0x09, false, bw_mock_drm_gem_close},      {0x2d, false, bw_mock_drm_prime_export},
    {0x2e, false, bw_mock_drm_prime_import},   {0x40, false, bw_mock_drm_gem_create},
    {0x41, false, bw_mock_drm_gem_mmap},       {0x42, true, bw_mock_drm_ctx},
    {0x43, false, bw_mock_drm_bo_list},        {0x44, true, bw_mock_drm_cs},
    {0x48, false, bw_mock_drm_gem_va},         {0x49, true, bw_mock_drm_wait_cs},
    {0x51, false, bw_mock_drm_userptr},        {0x52, true, bw_mock_drm_wait_fences},
    {0xbf, false, bw_mock_drm_syncobj_create}, {0xc0, false, bw_mock_drm_syncobj_destroy},
    {0xc1, false, bw_mock_drm_syncobj_export}, {0xc2, false, bw_mock_drm_syncobj_import},
};

/* Without the driver's name in front. */
static const char *short_name(unsigned number)
{
    static const char prefix[] = "AMDGPU_";
    const char *name = bw_mock_drm_name(number);
    return strncmp(name, prefix, sizeof prefix - 1) ? name : name + sizeof prefix - 1;
}

const char *bw_mock_drm_ioctl_name(uint32_t index)
{
    static const uint8_t questions[] = {DRM_VERSION, DRM_AMDGPU_INFO};
    if (index < BW_COUNT_OF(questions))
        return short_name(questions[index]);
    index -= BW_COUNT_OF(questions);
    return index < BW_COUNT_OF(calls)    ? short_name(calls[index].number)
           : index == BW_COUNT_OF(calls) ? "DRM"
                                         : NULL;
}

/* The site of fault injection that a call belongs to. */
static const char *site_of(unsigned number)
{
    bool known = number == DRM_VERSION || number == DRM_AMDGPU_INFO;
    for (size_t i = 0; i < BW_COUNT_OF(calls); i++)
        known |= calls[i].number == number;
    return known ? short_name(number) : "DRM";
}

static int inject(struct bw_mock *machine, struct bw_mock_gpu *gpu, const char *name)
{
    char site[48];
    struct bw_mock_fault fault;
    snprintf(site, sizeof site, "ioctl.%s", name);
    switch (bw_mock_faults_check(&machine->faults, site, gpu->index, &fault)) {
    case BW_MOCK_FAULT_FAIL:
        return bw_mock_refuse(machine, -fault.error, "%s: injected failure", name);
    case BW_MOCK_FAULT_DELAY:
        bw_mock_sleep_ns(machine, fault.delay_ns);
        return 0;
    default:
        return 0;
    }
}

/* The client behind a descriptor. machine.lock is held. */
struct bw_mock_drm_client *bw_mock_drm_client_get(struct bw_mock *machine, int fd)
{
    struct bw_mock_file *file = NULL;
    for (size_t i = 0; i < machine->files.count && !file; i++)
        file = machine->files.data[i].fd == fd ? &machine->files.data[i] : NULL;
    if (!file || file->process)
        return file ? file->process->drm : NULL;
    struct bw_mock_drm_client *client = calloc(1, sizeof *client);
    struct bw_mock_process *process = client ? bw_mock_process_create(machine, true) : NULL;
    if (!process) {
        free(client);
        return NULL;
    }
    client->process = file->process = process;
    client->gpu = &process->contexts[file->gpu->index];
    process->drm = client;
    return client;
}

void bw_mock_drm_client_end(struct bw_mock_drm_client *client)
{
    struct bw_mock *machine = client->process->machine;
    for (size_t i = 0; i < client->contexts.count; i++) {
        pthread_mutex_lock(&machine->drm->lock);
        struct bw_mock_drm_context *context = client->contexts.data[i];
        client->contexts.data[i] = NULL;
        pthread_mutex_unlock(&machine->drm->lock);
        if (context)
            bw_mock_drm_context_free(client, context);
    }
    pthread_mutex_lock(&machine->drm->lock);
    bw_mock_drm_syncobjs_end(client);
    pthread_mutex_unlock(&machine->drm->lock);
    pthread_mutex_lock(&machine->lock);
    bw_mock_drm_reap(client);
    client->process->drm = NULL;
    pthread_mutex_unlock(&machine->lock);
    bw_vec_free(&client->contexts);
    bw_vec_free(&client->lists);
    bw_vec_free(&client->doomed);
    free(client);
}

static int call_client(struct bw_mock *machine, int fd, unsigned number, void *data)
{
    for (size_t i = 0; i < BW_COUNT_OF(calls); i++) {
        if (calls[i].number != number)
            continue;
        pthread_mutex_lock(&machine->lock);
        struct bw_mock_drm_client *client = bw_mock_drm_client_get(machine, fd);
        int rc = !client ? -ENOMEM : calls[i].sleeps ? 0 : calls[i].call(client, data);
        pthread_mutex_unlock(&machine->lock);
        return client && calls[i].sleeps ? calls[i].call(client, data) : rc;
    }
    return bw_mock_refuse(machine, -EINVAL, "DRM ioctl number 0x%x: not supported on this mock", number);
}

static int ask(struct bw_mock *machine, const struct bw_mock_file *file, unsigned number, void *data)
{
    int rc = 0;
    pthread_mutex_lock(&machine->lock);
    if (number == DRM_VERSION)
        rc = version(data);
    else if (number == DRM_GET_CLIENT)
        ((int32_t *)data)[1] = 1; /* auth */
    else if (number == DRM_GET_CAP)
        ((uint64_t *)data)[1] =
            *(uint64_t *)data == MOCK_DRM_CAP_SYNCOBJ || *(uint64_t *)data == MOCK_DRM_CAP_SYNCOBJ_TIMELINE;
    else
        rc = info(machine, file, data);
    pthread_mutex_unlock(&machine->lock);
    return rc;
}

int bw_mock_drm_ioctl(struct bw_mock *machine, const struct bw_mock_file *file, unsigned long request,
                      void *argument)
{
    unsigned number = _IOC_NR(request);
    _Alignas(8) uint8_t data[64] = {0};
    size_t bytes = _IOC_SIZE(request) < sizeof data ? _IOC_SIZE(request) : sizeof data;
    if (_IOC_TYPE(request) != 'd')
        return bw_mock_refuse(machine, -ENOTTY, "DRM ioctl 0x%lx: unknown", request);
    if (!argument)
        return -EFAULT;
    int rc = inject(machine, file->gpu, site_of(number));
    if (rc)
        return rc;
    memcpy(data, argument, bytes);
    bool question = number == DRM_VERSION || number == DRM_GET_CLIENT || number == DRM_GET_CAP ||
                    number == DRM_AMDGPU_INFO;
    rc = question ? ask(machine, file, number, data) : call_client(machine, file->fd, number, data);
    memcpy(argument, data, bytes);
    return rc;
}
