/* Buffers: windows into blocks. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "hcq/hcq.h"

enum { FLAGS_ALL = BW_BUFFER_HOST | BW_BUFFER_UNCACHED | BW_BUFFER_EXECUTABLE };

int bw_buffer_create(struct bw_device *device, uint64_t size_bytes, uint32_t flags, struct bw_buffer **out,
                     struct bw_err *err)
{
    struct bw_hcq_device *hcq = bw_hcq_device_of(device);
    int rc = bw_hcq_device_check(hcq, err);
    if (rc)
        return rc;
    if (size_bytes == 0 || (flags & ~(uint32_t)FLAGS_ALL))
        return bw_fail(err, -EINVAL, "hcq", "buffer of %llu bytes, flags 0x%x",
                       (unsigned long long)size_bytes, flags);
    if ((flags & BW_BUFFER_UNCACHED) && !(flags & BW_BUFFER_HOST)) {
        bw_fail(err, -EINVAL, "hcq", "buffer with BW_BUFFER_UNCACHED in device memory");
        bw_err_hint(err, "only with BW_BUFFER_HOST");
        return -EINVAL;
    }
    struct bw_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return bw_fail(err, -ENOMEM, "hcq", "buffer of %llu bytes", (unsigned long long)size_bytes);
    rc = bw_block_create(hcq, size_bytes, flags, &buffer->block, err);
    if (rc) {
        free(buffer);
        return rc;
    }
    buffer->size_bytes = size_bytes;
    *out = buffer;
    return 0;
}

int bw_buffer_file(struct bw_device *device, uint64_t offset, uint64_t size_bytes, struct bw_buffer **out,
                   struct bw_err *err)
{
    struct bw_hcq_device *hcq = bw_hcq_device_of(device);
    uint64_t file_bytes = device->info.file_bytes;
    int rc = bw_hcq_device_check(hcq, err);
    if (rc)
        return rc;
    if (!device->caps.file_address)
        return bw_fail(err, -ENOTSUP, "hcq", "%s has no file", device->info.name);
    if (size_bytes == 0 || offset > file_bytes || size_bytes > file_bytes - offset) {
        bw_fail(err, -ERANGE, "hcq", "%s: %llu bytes at offset %llu", device->info.name,
                (unsigned long long)size_bytes, (unsigned long long)offset);
        bw_err_observed(err, "a file of %llu bytes", (unsigned long long)file_bytes);
        return -ERANGE;
    }
    struct bw_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return bw_fail(err, -ENOMEM, "hcq", "buffer of %llu bytes", (unsigned long long)size_bytes);
    rc = bw_block_file(hcq, &buffer->block, err);
    if (rc) {
        free(buffer);
        return rc;
    }
    buffer->offset = offset;
    buffer->size_bytes = size_bytes;
    *out = buffer;
    return 0;
}

static int range_check(const struct bw_buffer *buffer, uint64_t offset, uint64_t size_bytes,
                       struct bw_err *err)
{
    if (offset <= buffer->size_bytes && size_bytes <= buffer->size_bytes - offset)
        return 0;
    bw_fail(err, -ERANGE, "hcq", "%llu bytes at offset %llu of a buffer", (unsigned long long)size_bytes,
            (unsigned long long)offset);
    bw_err_expected(err, "at most %llu bytes", (unsigned long long)buffer->size_bytes);
    return -ERANGE;
}

int bw_buffer_view(struct bw_buffer *buffer, uint64_t offset, uint64_t size_bytes, struct bw_buffer **out,
                   struct bw_err *err)
{
    int rc = range_check(buffer, offset, size_bytes, err);
    if (rc)
        return rc;
    struct bw_buffer *view = calloc(1, sizeof *view);
    if (!view)
        return bw_fail(err, -ENOMEM, "hcq", "view of %llu bytes", (unsigned long long)size_bytes);
    *view = (struct bw_buffer){buffer->block, buffer->offset + offset, size_bytes};
    bw_block_hold(view->block);
    *out = view;
    return 0;
}

void bw_buffer_destroy(struct bw_buffer *buffer)
{
    if (!buffer)
        return;
    bw_block_release(buffer->block);
    free(buffer);
}

uint64_t bw_buffer_size(const struct bw_buffer *buffer)
{
    return buffer->size_bytes;
}

uint64_t bw_buffer_address(const struct bw_buffer *buffer)
{
    return buffer->block->memory.address + buffer->offset;
}

void *bw_buffer_map(struct bw_buffer *buffer)
{
    char *base = bw_block_map(buffer->block);
    return base && (buffer->block->memory.flags & BW_BUFFER_HOST) ? base + buffer->offset : NULL;
}

struct bw_device *bw_buffer_device(const struct bw_buffer *buffer)
{
    return buffer->block->owner->device;
}

static int buffer_transfer(struct bw_buffer *buffer, uint64_t offset, void *data, uint64_t size_bytes,
                           bool write, struct bw_err *err)
{
    int rc = bw_hcq_device_check(buffer->block->owner, err);
    if (!rc)
        rc = range_check(buffer, offset, size_bytes, err);
    if (!rc && write && bw_block_is_file(buffer->block))
        rc = bw_fail(err, -EROFS, "hcq", "%s: files are only read", buffer->block->owner->device->info.name);
    if (rc || size_bytes == 0)
        return rc;
    return bw_hcq_transfer(buffer->block, buffer->offset + offset, data, size_bytes, write, err);
}

int bw_buffer_write(struct bw_buffer *buffer, uint64_t offset, const void *data, uint64_t size_bytes,
                    struct bw_err *err)
{
    return buffer_transfer(buffer, offset, (void *)(uintptr_t)data, size_bytes, true, err);
}

int bw_buffer_read(struct bw_buffer *buffer, uint64_t offset, void *data, uint64_t size_bytes,
                   struct bw_err *err)
{
    return buffer_transfer(buffer, offset, data, size_bytes, false, err);
}
