/* Profiles laid out for people: the calls of all of them queue by queue, in time. */
#ifndef BW_HCQ_TRACKS_H
#define BW_HCQ_TRACKS_H

#include <bellwire/profile.h>

#include "base/vec.h"

struct bw_track_entry {
    const struct bw_call_profile *call;
    uint32_t profile; /* in struct bw_tracks.profiles */
    uint32_t track;
    uint32_t position; /* among all calls of all profiles */
};

struct bw_track_device {
    const char *name;
    uint32_t number; /* in its context */
};

/* A queue. */
struct bw_track {
    const char *label;
    uint32_t device, number;
    uint32_t entry_begin, entry_count;
};

struct bw_tracks {
    const struct bw_profile **profiles; /* by when they were called for */
    uint32_t profile_count;
    BW_VEC(struct bw_track_device) devices; /* in order of first use */
    BW_VEC(struct bw_track) tracks;
    struct bw_track_entry *entries; /* by track, then by begin */
    uint32_t entry_count;
    uint64_t begin_ns, end_ns; /* of everything, the host's calls included */
};

/* 0 or -ENOMEM. */
int bw_tracks_make(struct bw_tracks *tracks, const struct bw_profile *const *profiles, uint32_t count);
void bw_tracks_free(struct bw_tracks *tracks);
/* What counts as bandwidth: all that a kernel reads and writes, what a copy moves. */
static inline uint64_t bw_tracks_bytes(const struct bw_call_profile *call)
{
    return call->copy ? call->bytes_written : call->bytes_read + call->bytes_written;
}
/* The dependencies of a profile's call: [*begin, return value). */
uint32_t bw_tracks_dependencies(const struct bw_profile *profile, uint32_t call, uint32_t *begin);

#endif
