/* The render node: what libdrm-level code asks before it uses the KFD. */
#include "tests/unit/mock/client.h"

#define DRM(number, bytes) _IOC(_IOC_READ | _IOC_WRITE, 'd', number, bytes)

static int drm(struct client *c, unsigned number, void *args, size_t bytes)
{
    return c->sys->ops->ioctl(c->sys, c->render, DRM(number, bytes), args);
}

struct info_args {
    uint64_t pointer;
    uint32_t size, query, parameter[4];
};

static int info(struct client *c, uint32_t query, uint32_t parameter, void *data, uint32_t size)
{
    struct info_args args = {(uintptr_t)data, size, query, {parameter, query == 0x15}};
    return drm(c, 0x45, &args, sizeof args);
}

static void the_version_has_all_its_texts(void)
{
    struct client c;
    char name[16] = "", date[16] = "", description[16] = "";
    struct {
        int32_t major, minor, patch, pad;
        uint64_t name_length, name, date_length, date, description_length, description;
    } version = {0, 0, 0, 0, 15, (uintptr_t)name, 15, (uintptr_t)date, 3, (uintptr_t)description};
    if (!client_open(&c))
        return;
    BW_EQ(drm(&c, 0, &version, sizeof version), 0);
    BW_EQ(version.major, 3);
    BW_STR(name, "amdgpu");
    BW_EQ(version.name_length, 6);
    BW_TRUE(version.date_length > 0 && date[0]);
    BW_STR(description, "AMD"); /* no more than there is room for */
    BW_EQ(version.description_length, 7);
    client_close(&c);
}

static void queries_tell_of_the_gpu(void)
{
    struct client c;
    uint32_t device[128] = {0}, word = 0, ip[8] = {0};
    uint64_t memory[12] = {0}, used = 1;
    struct memory m;
    if (!client_open(&c))
        return;
    BW_EQ(info(&c, 0x00, 0, &word, 4), 0); /* ACCEL_WORKING */
    BW_EQ(word, 1);
    BW_EQ(info(&c, 0x16, 0, device, sizeof device), 0); /* DEV_INFO */
    BW_EQ(device[0], 0x744c);
    BW_EQ(device[4], 145);
    BW_EQ(device[12], 96);
    BW_EQ(info(&c, 0x16, 0, device, 4), 0);     /* a caller of an older release takes less */
    BW_EQ(info(&c, 0x02, 2, ip, sizeof ip), 0); /* HW_IP_INFO of DMA */
    BW_EQ(ip[0], 6);
    BW_EQ(ip[4], 256); /* start and size of command buffers */
    BW_EQ(ip[6], 3);
    BW_EQ(info(&c, 0x02, 1, ip, sizeof ip), 0); /* of compute */
    BW_EQ(ip[6], 0xf);
    BW_EQ(ip[7], 0x0b0000);
    BW_EQ(info(&c, 0x02, 7, ip, sizeof ip), 0);
    BW_EQ(ip[6], 0);
    BW_EQ(info(&c, 0x10, 0, &used, sizeof used), 0); /* VRAM_USAGE */
    BW_EQ(used, 0);
    BW_EQ(memory_create(&c, 3 * PAGE, VRAM, &m), 0);
    BW_EQ(info(&c, 0x10, 0, &used, sizeof used), 0);
    BW_EQ(used, 3 * PAGE);
    BW_EQ(info(&c, 0x19, 0, memory, sizeof memory), 0); /* MEMORY */
    BW_EQ(memory[0], 25753026560ull);
    BW_EQ(memory[2], 3 * PAGE);
    BW_EQ(info(&c, 0x15, 0x263e, &word, 4), 0); /* READ_MMR_REG of GB_ADDR_CONFIG, and of another */
    BW_EQ(info(&c, 0x15, 0x1234, &word, 4), -EFAULT);
    BW_EQ(info(&c, 0x7f, 0, &word, 4), -EINVAL);
    BW_EQ(info(&c, 0x00, 0, NULL, 4), -EINVAL);
    BW_EQ(drm(&c, 0x6f, device, 64), -EINVAL);
    BW_EQ(c.sys->ops->ioctl(c.sys, c.render, _IOC(_IOC_READ, 'x', 0, 8), device), -ENOTTY);
    client_close(&c);
}

BW_TEST_MAIN("mock.drm", {"the version has all its texts", the_version_has_all_its_texts},
             {"queries tell of the GPU", queries_tell_of_the_gpu})
