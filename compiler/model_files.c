/* The files that a model's weights are in: where a mapped element lies in its file, and that file as a disk,
 * so that a plan for a device with memory of its own reads weights straight into that. */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "compiler/model_internal.h"

enum {
    DISKS_MAX =
        8, /* each is a device of the context, with a thread; a model of more files has the rest mapped */
    RANGE_BYTES_MIN = 64 << 10, /* what is smaller is copied before a read of it would have begun */
};

int bw_model_mapping_keep(struct bw_model *model, struct bw_onnx_mapping mapping, struct bw_err *err)
{
    struct stat status;
    size_t file = 0;
    int rc = fstat(mapping.fd, &status) ? -errno : 0;
    while (
        !rc && file < model->files.count &&
        (model->files.data[file].device != status.st_dev || model->files.data[file].inode != status.st_ino))
        file++;
    bool is_new = !rc && file == model->files.count && file < DISKS_MAX;
    if (is_new)
        rc = bw_vec_push(&model->files,
                         ((struct bw_model_file){mapping.fd, status.st_dev, status.st_ino, NULL}));
    if (!is_new || rc)
        close(mapping.fd);
    mapping.fd = !rc && file < model->files.count ? (int)file : -1; /* from now on, which of the files */
    if (!rc)
        rc = bw_vec_push(&model->mappings, mapping);
    return rc ? bw_fail(err, rc, "onnx", "mappings") : 0;
}

static const struct bw_onnx_mapping *mapping_of(const struct bw_model *model, const void *data)
{
    for (size_t i = 0; i < model->mappings.count; i++) {
        const struct bw_onnx_mapping *mapping = &model->mappings.data[i];
        if ((uintptr_t)data - (uintptr_t)mapping->address < mapping->size_bytes)
            return mapping;
    }
    return NULL;
}

struct bw_buffer *bw_model_range(struct bw_model *model, const struct bw_device *device, const void *data,
                                 uint64_t size_bytes)
{
    const struct bw_onnx_mapping *mapping =
        device && bw_device_info(device)->vram_bytes && size_bytes >= RANGE_BYTES_MIN
            ? mapping_of(model, data)
            : NULL;
    if (!mapping || mapping->fd < 0)
        return NULL;
    struct bw_model_file *file = &model->files.data[mapping->fd];
    struct bw_buffer *range = NULL;
    char name[64];
    snprintf(name, sizeof name, "disk:/proc/self/fd/%d", file->fd);
    if (!file->disk && bw_device_open(bw_device_ctx(device), name, &file->disk, NULL))
        file->disk = NULL; /* no room for one more device, or no /proc */
    uint64_t offset = mapping->offset + (uint64_t)((uintptr_t)data - (uintptr_t)mapping->address);
    if (file->disk && bw_device_ctx(file->disk) == bw_device_ctx(device) &&
        !bw_buffer_file(file->disk, offset, size_bytes, &range, NULL))
        return range;
    return NULL;
}

void bw_model_disks_close(struct bw_model *model)
{
    for (size_t i = 0; i < model->files.count; i++) {
        bw_device_close(model->files.data[i].disk);
        model->files.data[i].disk = NULL;
    }
}

void bw_model_files_close(struct bw_model *model)
{
    bw_model_disks_close(model);
    for (size_t i = 0; i < model->files.count; i++)
        close(model->files.data[i].fd);
    for (size_t i = 0; i < model->mappings.count; i++)
        munmap(model->mappings.data[i].address, model->mappings.data[i].size_bytes);
    bw_vec_free(&model->files);
    bw_vec_free(&model->mappings);
}
