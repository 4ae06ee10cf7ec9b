/* Calls sorted by queue and time: see tracks.h. */
#include "hcq/tracks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int profile_compare(const void *left, const void *right)
{
    const struct bw_profile *a = *(const struct bw_profile *const *)left,
                            *b = *(const struct bw_profile *const *)right;
    if (a->called_ns != b->called_ns)
        return a->called_ns < b->called_ns ? -1 : 1;
    return (a->ticket > b->ticket) - (a->ticket < b->ticket);
}

static int entry_compare(const void *left, const void *right)
{
    const struct bw_track_entry *a = left, *b = right;
    if (a->track != b->track)
        return a->track < b->track ? -1 : 1;
    if (a->call->begin_ns != b->call->begin_ns)
        return a->call->begin_ns < b->call->begin_ns ? -1 : 1;
    return (a->position > b->position) - (a->position < b->position);
}

static int device_find(struct bw_tracks *tracks, const struct bw_call_profile *call, uint32_t *number)
{
    for (*number = 0; *number < tracks->devices.count; (*number)++) {
        const struct bw_track_device *device = &tracks->devices.data[*number];
        if (device->number == call->device_number && strcmp(device->name, call->device) == 0)
            return 0;
    }
    struct bw_track_device fresh = {call->device, call->device_number};
    return bw_vec_push(&tracks->devices, fresh);
}

static int track_find(struct bw_tracks *tracks, const struct bw_call_profile *call, uint32_t *number)
{
    uint32_t device;
    int rc = device_find(tracks, call, &device);
    for (*number = 0; *number < tracks->tracks.count && !rc; (*number)++) {
        const struct bw_track *track = &tracks->tracks.data[*number];
        if (track->device == device && track->number == call->queue)
            return 0;
    }
    struct bw_track fresh = {call->queue_label, device, call->queue, 0, 0};
    return rc ? rc : bw_vec_push(&tracks->tracks, fresh);
}

static int profile_add(struct bw_tracks *tracks, uint32_t number)
{
    const struct bw_profile *profile = tracks->profiles[number];
    int rc = 0;
    for (uint32_t i = 0; i < profile->call_count && !rc; i++) {
        const struct bw_call_profile *call = &profile->calls[i];
        struct bw_track_entry *entry = &tracks->entries[tracks->entry_count];
        *entry = (struct bw_track_entry){call, number, 0, tracks->entry_count};
        rc = track_find(tracks, call, &entry->track);
        tracks->entry_count += !rc;
        if (call->begin_ns < tracks->begin_ns)
            tracks->begin_ns = call->begin_ns;
        if (call->end_ns > tracks->end_ns)
            tracks->end_ns = call->end_ns;
    }
    return rc;
}

static void entries_sort(struct bw_tracks *tracks)
{
    qsort(tracks->entries, tracks->entry_count, sizeof *tracks->entries, entry_compare);
    for (uint32_t i = tracks->entry_count; i-- > 0;) {
        struct bw_track *track = &tracks->tracks.data[tracks->entries[i].track];
        track->entry_begin = i;
        track->entry_count++;
    }
}

int bw_tracks_make(struct bw_tracks *tracks, const struct bw_profile *const *profiles, uint32_t count)
{
    size_t calls = 0;
    for (uint32_t i = 0; i < count; i++)
        calls += profiles[i]->call_count;
    *tracks = (struct bw_tracks){.profile_count = count, .begin_ns = UINT64_MAX};
    tracks->profiles = malloc((count + 1) * sizeof *tracks->profiles);
    tracks->entries = calls < UINT32_MAX ? calloc(calls + 1, sizeof *tracks->entries) : NULL;
    int rc = tracks->profiles && tracks->entries ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < count && !rc; i++)
        tracks->profiles[i] = profiles[i];
    if (!rc)
        qsort(tracks->profiles, count, sizeof *tracks->profiles, profile_compare);
    for (uint32_t i = 0; i < count && !rc; i++) {
        const struct bw_profile *profile = tracks->profiles[i];
        tracks->begin_ns = profile->called_ns < tracks->begin_ns ? profile->called_ns : tracks->begin_ns;
        tracks->end_ns = profile->submitted_ns > tracks->end_ns ? profile->submitted_ns : tracks->end_ns;
        rc = profile_add(tracks, i);
    }
    if (rc) {
        bw_tracks_free(tracks);
        return rc;
    }
    if (count == 0)
        tracks->begin_ns = 0;
    entries_sort(tracks);
    return 0;
}

void bw_tracks_free(struct bw_tracks *tracks)
{
    free(tracks->profiles);
    free(tracks->entries);
    bw_vec_free(&tracks->devices);
    bw_vec_free(&tracks->tracks);
    *tracks = (struct bw_tracks){0};
}

static uint32_t first_from(const struct bw_profile *profile, uint32_t call)
{
    uint32_t low = 0, high = profile->dependency_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (profile->dependencies[middle].consumer < call)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t bw_tracks_dependencies(const struct bw_profile *profile, uint32_t call, uint32_t *begin)
{
    *begin = first_from(profile, call);
    return first_from(profile, call + 1);
}
