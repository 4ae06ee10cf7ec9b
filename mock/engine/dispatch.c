#include "mock/engine/pm4.h"

enum bw_mock_queue_progress bw_mock_pm4_dispatch_direct(struct bw_mock_packet *packet)
{
    return bw_mock_packet_fail(packet, "no emulator for %s", packet->queue->context->gpu->chip->arch);
}

enum bw_mock_queue_progress bw_mock_pm4_dispatch_indirect(struct bw_mock_packet *packet)
{
    return bw_mock_packet_fail(packet, "no emulator for %s", packet->queue->context->gpu->chip->arch);
}
