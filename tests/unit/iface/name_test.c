/* Goal: every device name that the documentation shows parses, prints canonically and parses again;
 * everything else is refused with the position of what is wrong. */
#include <bellwire/err.h>

#include <errno.h>

#include "base/bits.h"
#include "base/number.h"
#include "iface/name.h"
#include "tests/check.h"
#include "tests/seed.h"

static void good_names_print_canonically(void)
{
    static const struct {
        const char *text, *canonical;
    } cases[] = {
        {"amd", "amd"},
        {"amd:1", "amd:1"},
        {"kfd+amd", "kfd+amd"},
        {"pci+amd:0000:83:00.0", "pci+amd:0000:83:00.0"},
        {"pci+amd:00A1:Ff:1f.7", "pci+amd:00a1:ff:1f.7"},
        {"vfio+amd", "vfio+amd"},
        {"rm+nv", "rm+nv"},
        {"pci+nv:0", "pci+nv:0"},
        {"kgsl+qcom", "kgsl+qcom"},
        {"msm+qcom", "msm+qcom"},
        {"host", "host"},
        {"host:0", "host:0"},
        {"host:12", "host:12"},
        {"null", "null"},
        {"disk:/data/weights.onnx", "disk:/data/weights.onnx"},
        {"disk:a\\,b\\\\c", "disk:a\\,b\\\\c"},
        {"amd@gfx1100", "amd@gfx1100"},
        {"mockkfd+amd@gfx1100", "mockkfd+amd@gfx1100"},
        {"mockpci+amd@gfx1201", "mockpci+amd@gfx1201"},
        {"mockvfio+amd@gfx1201", "mockvfio+amd@gfx1201"},
        {"mockrm+nv@sm_90", "mockrm+nv@sm_90"},
        {"mockkfd+amd:0@gfx1100", "mockkfd+amd:0@gfx1100"},
        {"mockkfd+amd@gfx942*8", "mockkfd+amd@gfx942*8"},
        {"mockkfd+amd:7@gfx942*8", "mockkfd+amd:7@gfx942*8"},
        {"mockkfd+amd@gfx1100*1", "mockkfd+amd@gfx1100"},
        {"mockkfd+amd@gfx1100,cu=2,vram=1G", "mockkfd+amd@gfx1100,cu=2,vram=1G"},
        {"mockkfd+amd@gfx1100,bar=256m,vram=1073741824,seed=7",
         "mockkfd+amd@gfx1100,vram=1G,bar=256M,seed=7"},
        {"mockkfd+amd@gfx1100,jitter=5,seed=7", "mockkfd+amd@gfx1100,seed=7,jitter=5"},
        {"mockkfd+amd@gfx1100*8,seed=7,nodes=2", "mockkfd+amd@gfx1100*8,nodes=2,seed=7"},
        {"mockkfd+amd@gfx1100*8,xgmi=14,bar=1M", "mockkfd+amd@gfx1100*8,bar=1M,xgmi=14"},
        {"mockkfd+amd@gfx1100,vram=1025K", "mockkfd+amd@gfx1100,vram=1025K"},
        {"mockkfd+amd@gfx1100,vram=4097", "mockkfd+amd@gfx1100,vram=4097"},
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct bw_device_name name, again;
        struct bw_err err;
        char text[BW_NAME_TEXT_MAX];
        if (!BW_OK(bw_device_name_parse(cases[i].text, &name, &err), &err))
            continue;
        BW_EQ(bw_device_name_format(&name, text, sizeof text), strlen(cases[i].canonical));
        BW_STR(text, cases[i].canonical);
        BW_OK(bw_device_name_parse(text, &again, &err), &err);
        BW_EQ(memcmp(&name, &again, sizeof name), 0);
    }
}

static void bad_names_are_refused_at_their_position(void)
{
    static const struct {
        const char *text;
        int code, position;
        const char *words; /* somewhere in the line */
    } cases[] = {
        {"", -EINVAL, 1, "driver is missing"},
        {"AMD", -EINVAL, 1, "driver is missing"},
        {"amb", -EINVAL, 1, "unknown driver"},
        {"+amd", -EINVAL, 1, "driver is missing"},
        {"kfd+", -EINVAL, 5, "driver is missing"},
        {"kfx+amd", -EINVAL, 1, "unknown interface"},
        {"rm+amd", -EINVAL, 1, "does not serve"},
        {"kfd+kfd+amd", -EINVAL, 1, "unknown driver"},
        {"amd:", -EINVAL, 5, "index"},
        {"amd:x", -EINVAL, 5, "index"},
        {"amd:4294967296", -EINVAL, 5, "index"},
        {"amd:99999999999999999999999", -EINVAL, 5, "index"},
        {"amd:0000:83:00", -EINVAL, 5, "PCI address"},
        {"amd:0000:83:00.8", -EINVAL, 5, "PCI address"},
        {"amd:0000:83:20.0", -EINVAL, 5, "PCI address"},
        {"amd:0000:83:00.0x", -EINVAL, 17, "end here"},
        {"amd:1@", -EINVAL, 7, "architecture is missing"},
        {"amd@gfx1100*2", -EINVAL, 12, "only a mock"},
        {"amd@gfx1100,cu=2", -EINVAL, 13, "only a mock"},
        {"mockkfd+amd", -EINVAL, 12, "@ARCH"},
        {"mockkfd+amd:1@gfx1100", -EINVAL, 22, "index 1"},
        {"mockkfd+amd@gfx1100*0", -EINVAL, 21, "count"},
        {"mockkfd+amd@gfx1100*65", -EINVAL, 21, "count"},
        {"mockkfd+amd@gfx1100*", -EINVAL, 21, "count"},
        {"mockkfd+amd@gfx1100,cu=0", -EINVAL, 24, "cu"},
        {"mockkfd+amd@gfx1100,cu=1,cu=2", -EINVAL, 26, "cu= is given twice"},
        {"mockkfd+amd@gfx1100,vram=1G,cu=1,vram=1G", -EINVAL, 34, "vram= is given twice"},
        {"mockkfd+amd@gfx1100,bar=1M,bar=2M", -EINVAL, 28, "bar= is given twice"},
        {"mockkfd+amd@gfx1100,seed=1,seed=2", -EINVAL, 28, "seed= is given twice"},
        {"mockkfd+amd@gfx1100,xgmi=1,xgmi=2", -EINVAL, 28, "xgmi= is given twice"},
        {"mockkfd+amd@gfx1100,cu=+1", -EINVAL, 24, "cu"},
        {"mockkfd+amd@gfx1100,cu=two", -EINVAL, 24, "cu"},
        {"mockkfd+amd@gfx1100,xgmi=0", -EINVAL, 26, "xgmi"},
        {"mockkfd+amd@gfx1100,xgmi=15", -EINVAL, 26, "1 to 14"},
        {"mockkfd+amd@gfx1100,vram=1X", -EINVAL, 26, "vram"},
        {"mockkfd+amd@gfx1100,vram=", -EINVAL, 26, "vram"},
        {"mockkfd+amd@gfx1100,vram=0", -EINVAL, 26, "vram"},
        {"mockkfd+amd@gfx1100,vram=99999999T", -EINVAL, 26, "vram"},
        {"mockkfd+amd@gfx1100,vrom=1G", -EINVAL, 21, "unknown key"},
        {"mockkfd+amd@gfx1100,vram", -EINVAL, 20, "end here"},
        {"mockkfd+amd@gfx1100,host:1", -EINVAL, 20, "end here"},
        {"mockkfd+amd@gfx1100 ", -EINVAL, 20, "end here"},
        {"mockkfd+amd@gfx110011001100110011001100", -ENAMETOOLONG, 13, "longer"},
        {"averyverylongdrivername", -ENAMETOOLONG, 1, "longer"},
        {"host:0000:83:00.0", -EINVAL, 6, "PCI address"},
        {"host@gfx1100", -EINVAL, 5, "end here"},
        {"kfd+host", -EINVAL, 1, "no interface"},
        {"null:0", -EINVAL, 5, "end here"},
        {"disk", -EINVAL, 5, ":PATH"},
        {"disk:", -EINVAL, 6, "path is missing"},
        {"disk:a,b", -EINVAL, 7, "end here"},
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct bw_device_name name;
        struct bw_err err = {0};
        char line[600], position[32];
        BW_EQ(bw_device_name_parse(cases[i].text, &name, &err), cases[i].code);
        bw_err_format(&err, line, sizeof line);
        snprintf(position, sizeof position, "position %d:", cases[i].position);
        if (!BW_TRUE(strstr(line, position) && strstr(line, cases[i].words)))
            printf("      \"%s\": %s\n", cases[i].text, line);
        BW_EQ(bw_device_name_parse(cases[i].text, &name, NULL), cases[i].code);
    }
}

static void lists_tell_devices_from_options(void)
{
    static const struct {
        const char *text;
        int count; /* or -errno */
        const char *joined;
    } cases[] = {
        {"amd", 1, "amd "},
        {"amd:0,amd:1", 2, "amd:0 amd:1 "},
        {"mockkfd+amd@gfx1100,cu=2,vram=1G,host:1", 2, "mockkfd+amd@gfx1100,cu=2,vram=1G host:1 "},
        {"mockkfd+amd@gfx1100,host,mockkfd+amd@gfx942,cu=4", 3,
         "mockkfd+amd@gfx1100 host mockkfd+amd@gfx942,cu=4 "},
        {"disk:/a\\,b,null", 2, "disk:/a\\,b null "},
        {"disk:/a=b,host", 2, "disk:/a=b host "},
        {"host:0,host:1,host:2,host:3", 4, "host:0 host:1 host:2 host:3 "},
        {"host:0,host:1,host:2,host:3,host:4", -E2BIG, ""},
        {"mockkfd+amd@gfx1100*2,vram=1G,host", 3,
         "mockkfd+amd:0@gfx1100*2,vram=1G mockkfd+amd:1@gfx1100*2,vram=1G host "},
        {"mockkfd+amd:3@gfx942*8,host", 2, "mockkfd+amd:3@gfx942*8 host "},
        {"host,mockkfd+amd@gfx942*4", -E2BIG, ""},
        {"amd,", -EINVAL, ""},
        {",amd", -EINVAL, ""},
        {"amd,,amd", -EINVAL, ""},
        {"host,cu=2", -EINVAL, ""},
        {"", -EINVAL, ""},
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct bw_device_name names[4];
        char joined[2048] = "";
        uint32_t count = 0;
        struct bw_err err;
        int rc = bw_device_name_parse_list(cases[i].text, names, 4, &count, &err);
        if (!BW_EQ(rc ? rc : (int)count, cases[i].count) || rc)
            continue;
        for (uint32_t k = 0; k < count; k++) {
            bw_device_name_format(&names[k], joined + strlen(joined), BW_NAME_TEXT_MAX);
            strcat(joined, " ");
        }
        BW_STR(joined, cases[i].joined);
    }
}

static void gpu_specifications_of_the_mock_command(void)
{
    struct bw_device_name name;
    struct bw_err err;
    char text[BW_NAME_TEXT_MAX];
    BW_OK(bw_device_name_parse_gpu("gfx942*8,cu=4,vram=2G,bar=256M", &name, &err), &err);
    bw_device_name_format(&name, text, sizeof text);
    BW_STR(text, "mockkfd+amd@gfx942*8,cu=4,vram=2G,bar=256M");
    BW_EQ(bw_device_name_parse_gpu("sm_90", &name, &err), -EINVAL);
    BW_EQ(bw_device_name_parse_gpu("gfx1100,host", &name, &err), -EINVAL);
    BW_EQ(bw_device_name_parse_gpu("", &name, &err), -EINVAL);
}

static void sizes(void)
{
    static const struct {
        const char *text;
        int code;
        uint64_t bytes;
    } cases[] = {
        {"0", 0, 0},
        {"1", 0, 1},
        {"4096", 0, 4096},
        {"64K", 0, 65536},
        {"64k", 0, 65536},
        {"512M", 0, 512ull << 20},
        {"1G", 0, 1 << 30},
        {"2T", 0, 2ull << 40},
        {"18446744073709551615", 0, UINT64_MAX},
        {"16777215T", 0, 16777215ull << 40},
        {"16777216T", -ERANGE, 0},
        {"18446744073709551616", -ERANGE, 0},
        {"", -EINVAL, 0},
        {"G", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {"1GB", -EINVAL, 0},
        {"1 G", -EINVAL, 0},
        {"1.5G", -EINVAL, 0},
        {" 1", -EINVAL, 0},
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        uint64_t bytes = 0;
        if (!BW_EQ(bw_size_parse(cases[i].text, &bytes), cases[i].code))
            printf("      \"%s\"\n", cases[i].text);
        BW_EQ(bytes, cases[i].bytes);
    }
}

/* Damaged good names: never a crash, and what parses prints to something that parses to the same. */
static void mutations_never_break_the_parser(void)
{
    static const char *const seeds[] = {"mockkfd+amd:3@gfx942*8,cu=2,vram=1G,bar=256M,seed=9",
                                        "pci+amd:0000:83:00.0", "disk:/a\\,b", "host:7"};
    static const char alphabet[] = "amdkf+:@*,=0129.\\ GXz";
    struct bw_rng rng = bw_test_rng("name");
    int parsed = 0;
    for (int round = 0; round < 200000; round++) {
        char text[80] = {0}, canonical[BW_NAME_TEXT_MAX];
        strcpy(text, seeds[bw_rng_below(&rng, BW_COUNT_OF(seeds))]);
        for (uint64_t edits = 1 + bw_rng_below(&rng, 3); edits; edits--)
            text[bw_rng_below(&rng, strlen(text) + 1)] = alphabet[bw_rng_below(&rng, sizeof alphabet)];
        struct bw_device_name name, again;
        struct bw_err err = {0};
        int rc = bw_device_name_parse(text, &name, &err);
        if (rc) {
            if (err.code != rc)
                BW_EQ(err.code, rc);
            continue;
        }
        parsed++;
        bw_device_name_format(&name, canonical, sizeof canonical);
        if (bw_device_name_parse(canonical, &again, &err) || memcmp(&name, &again, sizeof name))
            BW_STR(canonical, text);
    }
    BW_TRUE(parsed > 1000);
}

BW_TEST_MAIN("iface.name", {"good names print canonically", good_names_print_canonically},
             {"bad names are refused at their position", bad_names_are_refused_at_their_position},
             {"lists tell devices from options", lists_tell_devices_from_options},
             {"gpu specifications of the mock command", gpu_specifications_of_the_mock_command},
             {"sizes", sizes}, {"mutations never break the parser", mutations_never_break_the_parser})
