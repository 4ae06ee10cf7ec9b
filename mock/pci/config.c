#include "mock/pci/config.h"

#include <string.h>

#define FIRST_BAR_ADDRESS 0x80000000ull /* where firmware puts 32-bit BARs */

enum {
    VENDOR = 0x00,
    DEVICE = 0x02,
    COMMAND = 0x04,
    REVISION = 0x08,
    CLASS = 0x09,
    CACHE_LINE = 0x0c,
    BAR_0 = 0x10,
    SUBSYSTEM_VENDOR = 0x2c,
    SUBSYSTEM = 0x2e,
    INTERRUPT_LINE = 0x3c,
    INTERRUPT_PIN = 0x3d,
    COMMAND_MEMORY = 0x02,
    COMMAND_MASTER = 0x04,
    COMMAND_WRITABLE = 0x0546, /* memory, master, parity, SERR, INTx disable */
};

/* Little endian, as the bus is. */
static void put(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

void bw_mock_config_init(struct bw_mock_config_space *config, const struct bw_mock_device_ops *ops,
                         uint32_t index)
{
    memset(config, 0, sizeof *config);
    put(config->bytes + VENDOR, ops->vendor_id, 2);
    put(config->bytes + DEVICE, ops->device_id, 2);
    put(config->bytes + REVISION, ops->revision, 1);
    put(config->bytes + CLASS, ops->class_code, 3);
    put(config->bytes + SUBSYSTEM_VENDOR, ops->subsystem_vendor_id, 2);
    put(config->bytes + SUBSYSTEM, ops->subsystem_id, 2);
    put(config->bytes + INTERRUPT_PIN, 1, 1);
    put(config->writable + COMMAND, COMMAND_WRITABLE, 2);
    put(config->writable + CACHE_LINE, 0xff, 1);
    put(config->writable + INTERRUPT_LINE, 0xff, 1);
    for (uint32_t bar = 0; bar < BW_MOCK_BARS; bar++) {
        if (!ops->bar_bytes[bar])
            continue;
        uint64_t place = (uint64_t)index * BW_MOCK_BARS + bar;
        put(config->bytes + BAR_0 + 4 * bar, FIRST_BAR_ADDRESS + place * BW_MOCK_BAR_BYTES_MAX, 4);
        /* all ones read back as the size */
        put(config->writable + BAR_0 + 4 * bar, 0xffffffffu & ~(ops->bar_bytes[bar] - 1), 4);
    }
}

int64_t bw_mock_config_read(const struct bw_mock_config_space *config, void *data, uint64_t size_bytes,
                            uint64_t offset)
{
    if (offset >= BW_MOCK_CONFIG_BYTES)
        return 0;
    uint64_t bytes = size_bytes < BW_MOCK_CONFIG_BYTES - offset ? size_bytes : BW_MOCK_CONFIG_BYTES - offset;
    memcpy(data, config->bytes + offset, bytes);
    return (int64_t)bytes;
}

int64_t bw_mock_config_write(struct bw_mock_config_space *config, const void *data, uint64_t size_bytes,
                             uint64_t offset)
{
    const uint8_t *from = data;
    if (offset >= BW_MOCK_CONFIG_BYTES)
        return 0;
    uint64_t bytes = size_bytes < BW_MOCK_CONFIG_BYTES - offset ? size_bytes : BW_MOCK_CONFIG_BYTES - offset;
    for (uint64_t i = 0; i < bytes; i++) {
        uint8_t mask = config->writable[offset + i];
        config->bytes[offset + i] = (uint8_t)((config->bytes[offset + i] & ~mask) | (from[i] & mask));
    }
    return (int64_t)bytes;
}

bool bw_mock_config_memory(const struct bw_mock_config_space *config)
{
    return config->bytes[COMMAND] & COMMAND_MEMORY;
}

bool bw_mock_config_bus_master(const struct bw_mock_config_space *config)
{
    return config->bytes[COMMAND] & COMMAND_MASTER;
}

uint64_t bw_mock_config_bar(const struct bw_mock_config_space *config, uint32_t bar)
{
    return get(config->bytes + BAR_0 + 4 * bar, 4) & ~(uint64_t)0xf;
}
