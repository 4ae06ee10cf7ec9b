/* Goal (S5): copies of zero bytes and odd bytes at unaligned offsets on either side: bytes equal, neighbours
 * untouched, packets = ceil(bytes / maximum); the same around the maximum, around 2^32 and beyond, in VRAM
 * that is mostly empty, of which the mock copies what was written. */
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

/* Marks at both ends of each packet and the byte before and after the copy, through a page of host memory. */
static void large_copies(void)
{
    enum { ODD = 5, MARKS_MAX = 16 };
    const uint64_t max = 1ull << 30, span = 6 * max;
    const uint64_t sizes[] = {max - 1,     max,     max + 1,     2 * max,
                              4 * max - 1, 4 * max, 4 * max + 1, 4 * max + max / 2 + 3};
    struct amd_mock mock;
    struct bw_memory source, target, host;
    if (amd_mock_open_with(&mock, 0, 2 * span + (64 << 20))) {
        BW_EQ(mock.device->caps.copy_bytes_max, max);
        BW_OK(mock.ops->alloc(mock.device, span, BW_BUFFER_DEVICE, &source, &mock.err), &mock.err);
        BW_OK(mock.ops->alloc(mock.device, span, BW_BUFFER_DEVICE, &target, &mock.err), &mock.err);
        BW_OK(mock.ops->alloc(mock.device, 4096, BW_BUFFER_HOST, &host, &mock.err), &mock.err);
        uint8_t *bytes = (uint8_t *)host.cpu.base;
        uint64_t number = 0;
        for (size_t s = 0; s < BW_COUNT_OF(sizes); s++) {
            uint64_t marks[MARKS_MAX], count = 0;
            for (uint64_t at = 0; at < sizes[s]; at += max) {
                marks[count++] = at;
                marks[count++] = (sizes[s] - at < max ? sizes[s] : at + max) - 1;
            }
            bytes[0] = 0xee;
            run_copy(&mock, target.address + ODD - 1, host.address, 1, ++number);
            run_copy(&mock, target.address + ODD + sizes[s], host.address, 1, ++number);
            for (uint64_t i = 0; i < count; i++) {
                bytes[0] = (uint8_t)(16 * s + i + 1);
                run_copy(&mock, source.address + marks[i], host.address, 1, ++number);
            }
            run_copy(&mock, target.address + ODD, source.address, sizes[s], ++number);
            for (uint64_t i = 0; i < count; i++) {
                run_copy(&mock, host.address + 1, target.address + ODD + marks[i], 1, ++number);
                run_copy(&mock, host.address + 2, source.address + marks[i], 1, ++number);
                BW_EQ(bytes[1], bytes[2]);
            }
            run_copy(&mock, host.address + 3, target.address + ODD - 1, 1, ++number);
            run_copy(&mock, host.address + 4, target.address + ODD + sizes[s], 1, ++number);
            BW_EQ(bytes[3] | bytes[4] << 8, 0xeeee);
        }
        mock.ops->free(mock.device, &source);
        mock.ops->free(mock.device, &target);
        mock.ops->free(mock.device, &host);
    }
    amd_mock_close(&mock);
}

BW_TEST_MAIN("amd copies of every size", {"small_copies_at_every_alignment", small_copies_at_every_alignment},
             {"large_copies", large_copies})
