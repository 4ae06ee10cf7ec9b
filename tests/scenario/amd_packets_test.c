/* Goal: every packet that the driver can build does on the mock, which reads packets from other sources, what
 * its name says. */
#include "drivers/amd/pm4.h"
#include "drivers/amd/sdma.h"
#include "tests/scenario/amd_mock.h"

enum { DATA_BYTES = 4096 };

/* Runs what is encoded and waits for it; false when it does not end. */
static bool run(struct amd_mock *mock, struct bw_queue *queue, struct bw_encoder *e)
{
    static const uint32_t index = 30;
    uint64_t value = amd_mock_signal_read(mock, index) + 1;
    mock->ops->encode_signal(queue, e, amd_mock_signal(mock, index), bw_operand_constant(value), true);
    return BW_EQ(amd_mock_submit(mock, queue, e), 0) && amd_mock_wait(mock, index, value);
}

static bool data_open(struct amd_mock *mock, struct bw_memory *data)
{
    if (!amd_mock_open(mock, 0) ||
        !BW_OK(
            mock->ops->alloc(mock->device, DATA_BYTES, BW_BUFFER_HOST | BW_BUFFER_UNCACHED, data, &mock->err),
            &mock->err))
        return false;
    for (uint32_t i = 0; i < DATA_BYTES; i += 4)
        bw_wr32(&data->cpu, i, 0x01010101 * (i / 4 % 255));
    return true;
}

static void data_close(struct amd_mock *mock, struct bw_memory *data)
{
    mock->ops->free(mock->device, data);
    amd_mock_close(mock);
}

static struct bw_operand at(const struct bw_memory *data, uint64_t offset)
{
    return bw_operand_constant(data->address + offset);
}

static void compute_packets_write_and_copy(void)
{
    static const uint32_t words[] = {0x11111111, 0x22222222, 0x33333333};
    struct amd_mock mock;
    struct bw_memory data;
    struct bw_encoder e = {0};
    if (!data_open(&mock, &data))
        return;
    bw_amd_pm4_write_data(&e, at(&data, 1024), words, 3);
    bw_amd_pm4_copy_data(&e, at(&data, 2048), at(&data, 1028), 4);
    bw_amd_pm4_copy_data(&e, at(&data, 2056), at(&data, 1024), 8);
    bw_amd_pm4_dma_data(&e, at(&data, 3001), at(&data, 1025), 10);
    bw_amd_pm4_nop(&e, 17);
    if (run(&mock, mock.compute, &e)) {
        BW_EQ(bw_rd32(&data.cpu, 1016), 254 * 0x01010101u);
        BW_EQ(bw_rd32(&data.cpu, 1024), 0x11111111);
        BW_EQ(bw_rd32(&data.cpu, 1032), 0x33333333);
        BW_EQ(bw_rd32(&data.cpu, 2048), 0x22222222);
        BW_EQ(bw_rd64(&data.cpu, 2056), 0x2222222211111111);
        BW_BYTES((const char *)data.cpu.base + 3001, (const char *)data.cpu.base + 1025, 10);
    }
    data_close(&mock, &data);
}

static void compute_packets_decide(void)
{
    static const uint32_t one = 1;
    struct amd_mock mock;
    struct bw_memory data;
    struct bw_encoder e = {0};
    if (!data_open(&mock, &data))
        return;
    for (uint32_t i = 0; i < 64; i += 4)
        bw_wr32(&data.cpu, i, 0);
    bw_wr32(&data.cpu, 4, 7);
    /* Each skips or runs one WRITE_DATA of 5 words. */
    bw_amd_pm4_cond_exec(&e, at(&data, 0), 5);
    bw_amd_pm4_write_data(&e, at(&data, 16), &one, 1);
    bw_amd_pm4_cond_exec(&e, at(&data, 4), 5);
    bw_amd_pm4_write_data(&e, at(&data, 20), &one, 1);
    bw_amd_pm4_pred_exec(&e, 1, 5);
    bw_amd_pm4_write_data(&e, at(&data, 24), &one, 1);
    bw_amd_pm4_pred_exec(&e, 2, 5);
    bw_amd_pm4_write_data(&e, at(&data, 28), &one, 1);
    if (run(&mock, mock.compute, &e)) {
        BW_EQ(bw_rd32(&data.cpu, 16), 0);
        BW_EQ(bw_rd32(&data.cpu, 20), 1);
        BW_EQ(bw_rd32(&data.cpu, 24), 1);
        BW_EQ(bw_rd32(&data.cpu, 28), 0);
    }
    data_close(&mock, &data);
}

/* A 64-bit wait holds across the low word's wrap, where the 32-bit one would let everything through. */
static void compute_packets_wait_for_64_bits(void)
{
    struct amd_mock mock;
    struct bw_memory data;
    struct bw_encoder waiting = {0};
    if (!data_open(&mock, &data))
        return;
    amd_mock_signal_write(&mock, 5, 0xffffffff);
    bw_amd_pm4_wait_mem64(&waiting, BW_AMD_WAIT_GREATER_OR_EQUAL, amd_mock_signal(&mock, 5),
                          bw_operand_constant(1ull << 32), UINT64_MAX);
    mock.ops->encode_signal(mock.compute, &waiting, amd_mock_signal(&mock, 6), bw_operand_constant(1), true);
    BW_EQ(amd_mock_submit(&mock, mock.compute, &waiting), 0);
    /* The copy queue raises it in two steps; the first is not enough. */
    for (uint64_t step = 0; step < 2; step++) {
        struct bw_encoder e = {0};
        BW_EQ(amd_mock_signal_read(&mock, 6), 0);
        mock.ops->encode_signal(mock.copy, &e, amd_mock_signal(&mock, 5),
                                bw_operand_constant(step ? 1ull << 32 : 0xfffffffe), false);
        run(&mock, mock.copy, &e);
    }
    amd_mock_wait(&mock, 6, 1);
    data_close(&mock, &data);
}

static void copy_packets_fill_write_and_stamp(void)
{
    static const uint32_t words[] = {0xaaaaaaaa, 0xbbbbbbbb};
    struct amd_mock mock;
    struct bw_memory data;
    struct bw_encoder e = {0};
    if (!data_open(&mock, &data))
        return;
    bw_amd_sdma_const_fill(&e, BW_AMD_SDMA_5, at(&data, 512), 0xcafef00d, 256);
    bw_amd_sdma_write_linear(&e, at(&data, 1024), words, 2);
    mock.ops->encode_timestamp(mock.copy, &e, at(&data, 2048));
    bw_amd_sdma_nop(&e, 5);
    mock.ops->encode_timestamp(mock.copy, &e, at(&data, 2056));
    if (run(&mock, mock.copy, &e)) {
        BW_EQ(bw_rd32(&data.cpu, 508), 127 * 0x01010101u);
        for (uint32_t i = 512; i < 768; i += 4)
            BW_EQ(bw_rd32(&data.cpu, i), 0xcafef00d);
        BW_EQ(bw_rd32(&data.cpu, 768), 192 * 0x01010101u);
        BW_EQ(bw_rd64(&data.cpu, 1024), 0xbbbbbbbbaaaaaaaa);
        BW_TRUE(bw_rd64(&data.cpu, 2048) > 0);
        BW_TRUE(bw_rd64(&data.cpu, 2056) >= bw_rd64(&data.cpu, 2048));
    }
    /* One clock for both kinds of queue. */
    uint64_t before = bw_rd64(&data.cpu, 2056);
    mock.ops->encode_timestamp(mock.compute, &e, at(&data, 2064));
    if (run(&mock, mock.compute, &e))
        BW_TRUE(bw_rd64(&data.cpu, 2064) >= before &&
                bw_rd64(&data.cpu, 2064) - before < mock.device->caps.timestamp_hz * 60);
    data_close(&mock, &data);
}

static void barriers_are_accepted(void)
{
    struct amd_mock mock;
    struct bw_memory data;
    struct bw_encoder e = {0};
    if (!data_open(&mock, &data))
        return;
    for (uint32_t flags = 0; flags < 16; flags++)
        BW_EQ(mock.ops->encode_barrier(mock.compute, &e, flags), 0);
    BW_EQ(e.cache_operations, 15);
    run(&mock, mock.compute, &e);
    data_close(&mock, &data);
}

BW_TEST_MAIN("amd packets", {"compute_packets_write_and_copy", compute_packets_write_and_copy},
             {"compute_packets_decide", compute_packets_decide},
             {"compute_packets_wait_for_64_bits", compute_packets_wait_for_64_bits},
             {"copy_packets_fill_write_and_stamp", copy_packets_fill_write_and_stamp},
             {"barriers_are_accepted", barriers_are_accepted})
