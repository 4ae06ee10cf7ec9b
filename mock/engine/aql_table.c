/* Sources: ROCR-Runtime inc/hsa.h (headers, dispatch and barrier packets), inc/hsa_ext_amd.h (vendor header,
 * barrier-value packet), core/runtime/amd_aql_queue.cpp (struct amd_aql_pm4_ib). Whatever they name reserved
 * "must be 0", with one exception: reserved2 of a kernel dispatch, bytes 48 to 55, in which ROCm's OpenCL and
 * HIP runtime hands correlation ids to profilers (rocprofiler, core/hsa/queues/queue.cpp, reads them there).
 * Packet processors run such packets, so this one does. */
#include "base/bits.h"
#include "mock/engine/aql.h"

#define ALL 0xffffffffu

enum {
    HEADER_RESERVED = 0xe000, /* bits 13 to 15 */
    VENDOR_RESERVED = (int)0xff000000,
};

static const struct bw_mock_aql_kind kinds[] = {
    {"KERNEL_DISPATCH",
     BW_MOCK_AQL_DISPATCH,
     0,
     {0xfffc0000 | HEADER_RESERVED, 0, 0xffff0000}}, /* setup but its dimensions; reserved0 */
    {"BARRIER_AND",
     BW_MOCK_AQL_BARRIER_AND,
     0,
     {0xffff0000 | HEADER_RESERVED, ALL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ALL, ALL}},
    {"BARRIER_OR",
     BW_MOCK_AQL_BARRIER_OR,
     0,
     {0xffff0000 | HEADER_RESERVED, ALL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ALL, ALL}},
    {"PM4_IB",
     BW_MOCK_AQL_VENDOR,
     BW_MOCK_AQL_FORMAT_PM4_IB,
     {VENDOR_RESERVED | HEADER_RESERVED, 0, 0, 0, 0, 0, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL}},
    {"BARRIER_VALUE",
     BW_MOCK_AQL_VENDOR,
     BW_MOCK_AQL_FORMAT_BARRIER_VALUE,
     {VENDOR_RESERVED | HEADER_RESERVED, ALL, 0, 0, 0, 0, 0, 0, 0, ALL, ALL, ALL, ALL, ALL}},
};

const struct bw_mock_aql_kind *bw_mock_aql_find(uint32_t type, uint32_t format)
{
    for (size_t i = 0; i < BW_COUNT_OF(kinds); i++)
        if (kinds[i].type == type && (type != BW_MOCK_AQL_VENDOR || kinds[i].format == format))
            return &kinds[i];
    return NULL;
}

const struct bw_mock_aql_kind *bw_mock_aql_at(size_t index)
{
    return index < BW_COUNT_OF(kinds) ? &kinds[index] : NULL;
}
