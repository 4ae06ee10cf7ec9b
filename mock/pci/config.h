/* PCI configuration space of a mock device: a type 0 header with memory BARs. Source: PCI Local Bus
 * Specification 3.0, chapter 6. Not thread safe. */
#ifndef BW_MOCK_PCI_CONFIG_H
#define BW_MOCK_PCI_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/mock_device.h>

enum { BW_MOCK_CONFIG_BYTES = 256 };

struct bw_mock_config_space {
    uint8_t bytes[BW_MOCK_CONFIG_BYTES];
    uint8_t writable[BW_MOCK_CONFIG_BYTES]; /* mask of the bits that software can change */
};

/* Power-on: BARs at addresses of their own, as firmware leaves them; memory decoding and bus mastering off.
 */
void bw_mock_config_init(struct bw_mock_config_space *config, const struct bw_mock_device_ops *ops,
                         uint32_t index);
/* Any size and alignment; how many bytes lie inside, 0 past the end. */
int64_t bw_mock_config_read(const struct bw_mock_config_space *config, void *data, uint64_t size_bytes,
                            uint64_t offset);
int64_t bw_mock_config_write(struct bw_mock_config_space *config, const void *data, uint64_t size_bytes,
                             uint64_t offset);
bool bw_mock_config_memory(const struct bw_mock_config_space *config);
bool bw_mock_config_bus_master(const struct bw_mock_config_space *config);
uint64_t bw_mock_config_bar(const struct bw_mock_config_space *config, uint32_t bar);

#endif
