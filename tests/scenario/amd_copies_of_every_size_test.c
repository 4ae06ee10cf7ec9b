/* Goal (S5): copies of zero bytes and odd bytes at unaligned offsets on either side: bytes equal, neighbours
 * untouched, packets = ceil(bytes / maximum). Around the maximum and 2^32: unit.drivers.amd.device. */
#include "base/bits.h"
#include "base/rng.h"
#include "tests/scenario/amd_mock.h"

enum { SMALL_BYTES = 128 << 10, GUARD_BYTES = 64 };

/* One copy as the driver cuts it; the number of packets it took. */
static uint32_t encode_whole_copy(struct amd_mock *mock, struct bw_encoder *e, uint64_t target,
                                  uint64_t source, uint64_t size_bytes)
{
    uint32_t first = e->packets;
    for (uint64_t at = 0, done_bytes; at < size_bytes; at += done_bytes) {
        int rc = mock->ops->encode_copy(mock->copy, e, bw_operand_constant(target + at),
                                        bw_operand_constant(source + at), size_bytes - at, &done_bytes);
        if (!BW_EQ(rc, 0) || !BW_TRUE(done_bytes > 0))
            break;
    }
    return e->packets - first;
}

static bool run_copy(struct amd_mock *mock, uint64_t target, uint64_t source, uint64_t size_bytes,
                     uint64_t number)
{
    struct bw_encoder e = {0};
    BW_EQ(encode_whole_copy(mock, &e, target, source, size_bytes),
          bw_div_up(size_bytes, mock->device->caps.copy_bytes_max));
    mock->ops->encode_signal(mock->copy, &e, amd_mock_signal(mock, 0), bw_operand_constant(number), true);
    return BW_EQ(amd_mock_submit(mock, mock->copy, &e), 0) && amd_mock_wait(mock, 0, number);
}

static void small_copies_at_every_alignment(void)
{
    static const uint32_t sizes[] = {0,  1,  2,  3,  4,   5,    7,    8,    15,
                                     31, 63, 64, 65, 255, 4095, 4096, 4097, 65537};
    struct amd_mock mock;
    struct bw_memory source, target, vram;
    struct bw_rng rng = {5};
    if (amd_mock_open(&mock, 0)) {
        BW_OK(mock.ops->alloc(mock.device, SMALL_BYTES, BW_BUFFER_HOST, &source, &mock.err), &mock.err);
        BW_OK(mock.ops->alloc(mock.device, SMALL_BYTES, BW_BUFFER_HOST, &target, &mock.err), &mock.err);
        BW_OK(mock.ops->alloc(mock.device, SMALL_BYTES, BW_BUFFER_DEVICE, &vram, &mock.err), &mock.err);
        uint8_t *from = (uint8_t *)source.cpu.base, *to = (uint8_t *)target.cpu.base;
        uint64_t number = 0;
        for (uint32_t i = 0; i < SMALL_BYTES; i++)
            from[i] = (uint8_t)bw_rng_next(&rng);
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            for (uint32_t k = 0; k < 8; k++) {
                uint32_t size = sizes[s], in = k, out = (uint32_t)bw_rng_below(&rng, 9) + GUARD_BYTES;
                memset(to, 0xee, size + out + GUARD_BYTES);
                run_copy(&mock, vram.address + k, source.address + in, size, ++number);
                run_copy(&mock, target.address + out, vram.address + k, size, ++number);
                BW_BYTES(to + out, from + in, size);
                for (uint32_t g = 0; g < GUARD_BYTES; g++)
                    if (to[out - 1 - g] != 0xee || to[out + size + g] != 0xee)
                        BW_EQ(to[out - 1 - g] | to[out + size + g] << 8, 0xeeee);
            }
        }
        struct bw_mock_stats stats;
        bw_mock_stats(mock.sys, &stats);
        BW_TRUE(stats.sdma_packets > number);
        mock.ops->free(mock.device, &source);
        mock.ops->free(mock.device, &target);
        mock.ops->free(mock.device, &vram);
    }
    amd_mock_close(&mock);
}

/* Half a GiB into VRAM and back, at odd addresses. Copies past one packet are cut in unit.drivers.amd.device:
 * moving gigabytes here would only measure the host. */
static void copies_at_far_offsets(void)
{
    enum { MARK = 16 };
    struct amd_mock mock;
    struct bw_memory vram, host;
    uint64_t span_bytes = AMD_MOCK_VRAM_BYTES / 2 + 4096;
    if (amd_mock_open(&mock, 0)) {
        BW_OK(mock.ops->alloc(mock.device, span_bytes, BW_BUFFER_DEVICE, &vram, &mock.err), &mock.err);
        BW_OK(mock.ops->alloc(mock.device, 4096, BW_BUFFER_HOST, &host, &mock.err), &mock.err);
        uint8_t *bytes = (uint8_t *)host.cpu.base;
        for (int i = 0; i < MARK; i++)
            bytes[i] = (uint8_t)(0xa0 + i);
        uint64_t number = 0, far = span_bytes - 100;
        run_copy(&mock, vram.address + far, host.address, MARK, ++number);
        run_copy(&mock, vram.address + 3, vram.address + far - 5, MARK + 5, ++number);
        run_copy(&mock, host.address + 100, vram.address + 3, MARK + 5, ++number);
        BW_BYTES(bytes + 105, bytes, MARK);
        mock.ops->free(mock.device, &vram);
        mock.ops->free(mock.device, &host);
    }
    amd_mock_close(&mock);
}

BW_TEST_MAIN("amd copies of every size", {"small_copies_at_every_alignment", small_copies_at_every_alignment},
             {"copies_at_far_offsets", copies_at_far_offsets})
