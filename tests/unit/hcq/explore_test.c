/* Goal: what hcq submits to two devices with two queues each is right in every interleaving of queues,
 * engines and host, and nothing of it can be left out: each wait, signal and barrier is taken out once, and
 * the search must find what that breaks. */
#include "tests/unit/hcq/explore_search.h"

enum { KERNEL = true, COPY = false, RANDOM_SCENES = 60, AGREEING_SCENES = 6 };

#define WHOLE 0, 0, EX_BUFFER_BYTES, EX_BUFFER_BYTES

/* A kernel and a copy on each device, each of the next one's bytes, and back to the first. */
static const struct ex_scene there_and_back = {.name = "there and back",
                                               .calls = {{{KERNEL, 0, 0, 2, WHOLE},
                                                          {COPY, 0, 1, 0, WHOLE},
                                                          {KERNEL, 1, 1, 3, WHOLE},
                                                          {COPY, 1, 0, 1, WHOLE}}},
                                               .call_count = {4},
                                               .graph_count = 1,
                                               .replay_count = 3,
                                               .instances = 2};

/* Inputs change from replay to replay. */
static const struct ex_scene through_inputs = {
    .name = "through inputs",
    .calls = {{{KERNEL, 0, 0, 4, WHOLE}, {COPY, 0, 1, 0, WHOLE}, {KERNEL, 1, 5, 1, WHOLE}}},
    .call_count = {3},
    .graph_count = 1,
    .replay_count = 4,
    .input_count = 2,
    .instances = 2};

/* The kernel waits for a copy that only reads, and reads what the last copy of the replay before wrote. */
static const struct ex_scene data_from_before = {
    .name = "data from before",
    .calls = {{{COPY, 0, 0, 1, WHOLE}, {KERNEL, 1, 1, 3, WHOLE}, {COPY, 1, 3, 2, WHOLE}}},
    .call_count = {3},
    .graph_count = 1,
    .replay_count = 3,
    .instances = 2};

/* Two chains that meet. */
static const struct ex_scene chains_meet = {.name = "chains meet",
                                            .calls = {{{KERNEL, 0, 0, 2, WHOLE},
                                                       {KERNEL, 1, 1, 3, WHOLE},
                                                       {COPY, 0, 1, 0, 0, 0, 16, 16},
                                                       {COPY, 1, 0, 1, 32, 32, 16, 16},
                                                       {KERNEL, 0, 2, 0, WHOLE},
                                                       {KERNEL, 1, 3, 1, WHOLE}}},
                                            .call_count = {6},
                                            .graph_count = 1,
                                            .replay_count = 3,
                                            .instances = 3};

/* Two graphs in turn, each writing what the other reads. */
static const struct ex_scene two_graphs = {.name = "two graphs",
                                           .calls = {{{KERNEL, 0, 0, 2, WHOLE}, {COPY, 0, 1, 0, WHOLE}},
                                                     {{KERNEL, 1, 1, 3, WHOLE}, {COPY, 1, 0, 1, WHOLE}}},
                                           .call_count = {2, 2},
                                           .graph_count = 2,
                                           .replays = {0, 1, 0, 1, 0},
                                           .replay_count = 5,
                                           .waited = 1 << 1,
                                           .instances = 2};

static struct ex_scene scene_with(const struct ex_scene *scene, const char *name, uint64_t timeline_start,
                                  uint32_t instances, bool host_waits)
{
    struct ex_scene made = *scene;
    made.name = name;
    made.timeline_start = timeline_start;
    made.instances = instances;
    made.host_waits = host_waits;
    return made;
}

/* ---- one search ---- */

static enum ex_verdict search(struct ex_model *model, const struct ex_mutation *mutation)
{
    return ex_search(model, mutation, true);
}

static bool is_fine(struct ex_model *model, bool reduce)
{
    const struct ex_mutation none = {.kind = EX_UNCHANGED};
    enum ex_verdict verdict = ex_search(model, &none, reduce);
    if (verdict != EX_FINE) {
        printf("\n    %s: %s after %zu states:\n", model->record->scene->name, ex_verdict_names[verdict],
               (size_t)model->states.count);
        ex_path_print(model);
    }
    return BW_EQ(verdict, EX_FINE);
}

/* The mutation breaks something. */
static bool is_found(struct ex_model *model, const struct ex_mutation *mutation, const char *what)
{
    enum ex_verdict verdict = search(model, mutation);
    if (verdict == EX_FINE || verdict == EX_TOO_MUCH)
        printf("\n    %s: %s (graph %u, device %u, word %u) makes no difference: %s\n",
               model->record->scene->name, what, mutation->graph, mutation->device, mutation->word,
               ex_verdict_names[verdict]);
    return BW_TRUE(verdict != EX_FINE && verdict != EX_TOO_MUCH);
}

/* ---- each packet in turn ---- */

struct found {
    size_t states;
    uint32_t waits, prologue_waits, signals, barriers, by_verdict[EX_VERDICTS];
};

typedef void (*packet_fn)(struct ex_model *model, const struct ex_packet *packet, struct found *found);

static bool seen_before(const struct ex_model *model, uint32_t replay, uint32_t queue,
                        const struct ex_packet *packet)
{
    for (uint32_t r = 0; r < replay; r++) {
        const struct ex_stream *stream = &model->record->replays[r].streams[queue];
        for (uint32_t i = 0; i < stream->count; i++)
            if (stream->packets[i].graph == packet->graph && stream->packets[i].word == packet->word &&
                stream->packets[i].device == packet->device)
                return true;
    }
    return false;
}

/* Each packet of the graphs' templates once, wherever it is met first. */
static void packets_each(struct ex_model *model, packet_fn fn, struct found *found)
{
    for (uint32_t r = 0; r < model->record->scene->replay_count; r++) {
        for (uint32_t q = 0; q < model->record->queue_count; q++) {
            const struct ex_stream *stream = &model->record->replays[r].streams[q];
            for (uint32_t i = 0; i < stream->count; i++)
                if (!seen_before(model, r, q, &stream->packets[i]))
                    fn(model, &stream->packets[i], found);
        }
    }
}

static struct ex_mutation without(const struct ex_packet *packet)
{
    return (struct ex_mutation){
        .kind = EX_WITHOUT_PACKET, .graph = packet->graph, .device = packet->device, .word = packet->word};
}

static void wait_is_needed(struct ex_model *model, const struct ex_packet *packet, struct found *found)
{
    struct ex_mutation mutation = without(packet);
    if (packet->kind != EX_WAIT || packet->prologue)
        return;
    found->waits++;
    if (is_found(model, &mutation, "without a wait"))
        found->by_verdict[model->verdict]++;
}

/* A prologue's waits are for whatever the queues were given before: needed is what the scene gives them. */
static void prologue_wait_counts(struct ex_model *model, const struct ex_packet *packet, struct found *found)
{
    struct ex_mutation mutation = without(packet);
    if (packet->kind == EX_WAIT && packet->prologue && packet->queue != EX_NONE)
        found->prologue_waits += search(model, &mutation) != EX_FINE;
}

/* Somebody waits for exactly that value. */
static bool is_waited_for(const struct ex_record *record, const struct ex_packet *signal)
{
    for (uint32_t r = 0; r < record->scene->replay_count; r++) {
        const struct ex_replay *replay = &record->replays[r];
        if (replay->ticket.wanted[signal->queue] && replay->ticket.value[signal->queue] == signal->value)
            return true;
        for (uint32_t i = 0; i < EX_PHASES_MAX; i++)
            if (replay->thresholds[i].wanted[signal->queue] &&
                replay->thresholds[i].value[signal->queue] == signal->value)
                return true;
        for (uint32_t q = 0; q < record->queue_count; q++)
            for (uint32_t i = 0; i < replay->streams[q].count; i++) {
                const struct ex_packet *packet = &replay->streams[q].packets[i];
                if (packet->kind == EX_WAIT && packet->queue == signal->queue &&
                    packet->value == signal->value)
                    return true;
            }
    }
    return false;
}

/* No later signal of the queue stands in for it. */
static bool is_last_signal(const struct ex_record *record, const struct ex_packet *signal)
{
    const struct ex_packet *last = NULL;
    for (uint32_t r = 0; r < record->scene->replay_count; r++) {
        const struct ex_stream *stream = &record->replays[r].streams[signal->queue];
        for (uint32_t i = stream->prologue_count; i < stream->count; i++)
            if (stream->packets[i].kind == EX_SIGNAL)
                last = &stream->packets[i];
    }
    return last && last->graph == signal->graph && last->word == signal->word;
}

/* Without a signal somebody stands still, or is let go by a later one of the same queue, which is late. */
static void signal_is_needed(struct ex_model *model, const struct ex_packet *packet, struct found *found)
{
    struct ex_mutation mutation = without(packet);
    if (packet->kind != EX_SIGNAL)
        return;
    found->signals++;
    BW_TRUE(is_waited_for(model->record, packet));
    enum ex_verdict verdict = search(model, &mutation);
    BW_TRUE(verdict == EX_DEADLOCK || (verdict == EX_FINE && !is_last_signal(model->record, packet)));
    found->by_verdict[verdict]++;
}

/* In the middle of a queue's work: not the one that it begins with. */
static void barrier_is_needed(struct ex_model *model, const struct ex_packet *packet, struct found *found)
{
    static const uint32_t flags[] = {BW_BARRIER_EXECUTION, BW_BARRIER_ACQUIRE};
    if (packet->kind != EX_BARRIER || packet->prologue)
        return;
    if ((packet->flags & (BW_BARRIER_EXECUTION | BW_BARRIER_ACQUIRE)) ==
        (BW_BARRIER_EXECUTION | BW_BARRIER_ACQUIRE))
        return;
    for (uint32_t i = 0; i < 2; i++) {
        struct ex_mutation mutation = without(packet);
        mutation.kind = EX_WITHOUT_FLAGS;
        mutation.flags = flags[i];
        if (!(packet->flags & flags[i]))
            continue;
        found->barriers++;
        if (is_found(model, &mutation, i ? "without an acquire" : "without an execution barrier"))
            found->by_verdict[model->verdict]++;
    }
}

static bool verdict_of(struct ex_model *model, const struct ex_mutation *mutation, bool reduce)
{
    return ex_search(model, mutation, reduce) == EX_FINE;
}

static void verdicts_agree(struct ex_model *model, const struct ex_packet *packet, struct found *found)
{
    struct ex_mutation mutation = without(packet);
    BW_EQ(verdict_of(model, &mutation, false), verdict_of(model, &mutation, true));
}

/* ---- whole scenes ---- */

static void found_print(const struct found *found)
{
    printf(" %zu states, waits %u, of prologues %u, signals %u, barriers %u;", found->states, found->waits,
           found->prologue_waits, found->signals, found->barriers);
    for (uint32_t i = 0; i < EX_VERDICTS; i++)
        if (found->by_verdict[i])
            printf(" %s %u", ex_verdict_names[i], found->by_verdict[i]);
}

static void scene_print(const struct ex_scene *scene)
{
    printf("    %u instances, timelines from %#" PRIx64 ", waited %#x%s\n", scene->instances,
           scene->timeline_start, scene->waited, scene->host_waits ? ", device 1 cannot wait" : "");
    for (uint32_t g = 0; g < scene->graph_count; g++)
        for (uint32_t i = 0; i < scene->call_count[g]; i++) {
            const struct ex_call *call = &scene->calls[g][i];
            printf("    graph %u call %u: %s of device %u, %u+%u:%u from %u+%u:%u\n", g, i,
                   call->kernel ? "kernel" : "copy", call->device, call->target, call->target_offset,
                   call->target_bytes, call->source, call->source_offset, call->source_bytes);
        }
}

/* Right in every interleaving, and nothing of it is there for nothing. */
static bool scene_explore(const struct ex_scene *scene, struct found *found)
{
    struct ex_record *record = calloc(1, sizeof *record);
    if (!BW_TRUE(record != NULL) || !ex_record_make(scene, record)) {
        bool fits = record && !record->ok;
        free(record);
        return !BW_TRUE(!fits);
    }
    struct ex_model *model = ex_model_make(record);
    bool ok = model && is_fine(model, true);
    found->states += ok ? (size_t)model->states.count : 0;
    if (ok) {
        packets_each(model, wait_is_needed, found);
        packets_each(model, signal_is_needed, found);
        packets_each(model, barrier_is_needed, found);
        packets_each(model, prologue_wait_counts, found);
    }
    ex_model_free(model);
    free(record);
    return true;
}

static void what_is_submitted_is_right_and_needed(void)
{
    struct found found = {0};
    scene_explore(&there_and_back, &found);
    scene_explore(&through_inputs, &found);
    scene_explore(&data_from_before, &found);
    scene_explore(&chains_meet, &found);
    scene_explore(&two_graphs, &found);
    found_print(&found);
}

/* ---- the host's own waits ---- */

static struct ex_model *model_open(const struct ex_scene *scene, struct ex_record **record)
{
    *record = calloc(1, sizeof **record);
    if (!BW_TRUE(*record != NULL) || !BW_TRUE(ex_record_make(scene, *record)))
        return NULL;
    return ex_model_make(*record);
}

static void model_close(struct ex_model *model, struct ex_record *record)
{
    ex_model_free(model);
    free(record);
}

static void expect(struct ex_model *model, enum ex_mutation_kind kind, uint32_t queue,
                   enum ex_verdict verdict)
{
    struct ex_mutation mutation = {.kind = kind, .queue = queue};
    BW_STR(ex_verdict_names[search(model, &mutation)], ex_verdict_names[verdict]);
}

static void the_hosts_waits_are_needed(void)
{
    struct ex_record *record;
    struct ex_model *model = model_open(&through_inputs, &record);
    if (model && is_fine(model, true)) {
        expect(model, EX_WITHOUT_INSTANCE_WAIT, 0, EX_EARLY_REUSE);
        expect(model, EX_WITHOUT_PROLOGUES, 0, EX_ORDER);
        uint32_t early = 0;
        for (uint32_t q = 0; q < record->queue_count; q++) {
            struct ex_mutation mutation = {.kind = EX_WITHOUT_TICKET_WAIT, .queue = q};
            early += search(model, &mutation) == EX_EARLY_RETURN;
        }
        BW_TRUE(early > 0);
    }
    model_close(model, record);
}

/* A device that cannot wait for signals: the host does, between two submissions. */
static void the_host_waits_for_a_device_that_cannot(void)
{
    struct ex_scene scene = scene_with(&there_and_back, "host waits", 0, 1, true);
    struct ex_record *record;
    struct ex_model *model = model_open(&scene, &record);
    if (model && is_fine(model, true)) {
        bool waits = false;
        for (uint32_t i = EX_PHASE_FIRST; i < EX_PHASES_MAX; i++)
            for (uint32_t q = 0; q < record->queue_count; q++)
                waits |= record->replays[1].thresholds[i].wanted[q];
        BW_TRUE(waits);
        expect(model, EX_WITHOUT_HOST_WAITS, 0, EX_ORDER);
        expect(model, EX_WITHOUT_INSTANCE_WAIT, 0, EX_EARLY_REUSE);
    }
    model_close(model, record);
}

/* ---- timelines that reach 2^32 ---- */

static void the_low_half_wraps(void)
{
    static const uint64_t starts[] = {UINT32_MAX,     UINT32_MAX - 1, UINT32_MAX - 2,
                                      UINT32_MAX - 3, UINT32_MAX - 5, UINT64_MAX - 3};
    const struct ex_scene *const scenes[] = {&there_and_back, &through_inputs, &two_graphs};
    uint32_t rolls = 0, wraps = 0;
    for (uint32_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        for (uint32_t k = 0; k < sizeof scenes / sizeof *scenes; k++) {
            struct ex_scene scene =
                scene_with(scenes[k], "near 2^32", starts[i], scenes[k]->instances, false);
            struct ex_mutation one_slot = {.kind = EX_WITH_ONE_SLOT};
            struct ex_record *record;
            struct ex_model *model = model_open(&scene, &record);
            if (model && is_fine(model, true)) {
                for (uint32_t r = 0; r < scene.replay_count; r++)
                    rolls += record->replays[r].rolls;
                wraps += search(model, &one_slot) == EX_WRAP;
            }
            model_close(model, record);
        }
    }
    printf(" %u rolls, %u wraps", rolls, wraps);
    BW_TRUE(rolls > 0);
    BW_TRUE(wraps > 0);
}

/* ---- random scenes ---- */

static struct ex_call call_random(struct bw_rng *rng, uint32_t spaces)
{
    struct ex_call call = {.kernel = bw_rng_below(rng, 2)};
    do {
        call.target = (uint8_t)bw_rng_below(rng, spaces);
        call.source = (uint8_t)bw_rng_below(rng, spaces);
    } while (call.target == call.source ||
             (call.kernel && call.target % EX_DEVICES != call.source % EX_DEVICES) ||
             (!call.kernel && call.target >= EX_BUFFERS && call.source >= EX_BUFFERS));
    call.device = call.target % EX_DEVICES;
    call.target_offset = (uint8_t)(16 * bw_rng_below(rng, 3));
    call.source_offset = (uint8_t)(16 * bw_rng_below(rng, 3));
    call.target_bytes = call.source_bytes = (uint8_t)(16 + 16 * bw_rng_below(rng, 2));
    return call;
}

static void scene_random(struct bw_rng *rng, struct ex_scene *scene)
{
    *scene = (struct ex_scene){.name = "random",
                               .graph_count = 1 + (uint32_t)bw_rng_below(rng, 2),
                               .instances = 1 + (uint32_t)bw_rng_below(rng, 3),
                               .replay_count = 3,
                               .waited = (uint32_t)bw_rng_below(rng, 8),
                               .host_waits = bw_rng_below(rng, 4) == 0};
    if (bw_rng_below(rng, 4) == 0)
        scene->timeline_start = UINT32_MAX - bw_rng_below(rng, 12);
    for (uint32_t g = 0; g < scene->graph_count; g++) {
        scene->call_count[g] = 2 + (uint32_t)bw_rng_below(rng, 5 - 2 * (scene->graph_count - 1));
        for (uint32_t i = 0; i < scene->call_count[g]; i++)
            scene->calls[g][i] = call_random(rng, EX_BUFFERS);
    }
    for (uint32_t i = 0; i < scene->replay_count; i++)
        scene->replays[i] = scene->graph_count == 1 ? 0 : (uint32_t)bw_rng_below(rng, 2);
}

static void random_scenes(void)
{
    struct bw_rng rng = bw_test_rng("scenes");
    struct found found = {0};
    const char *text = getenv("BW_SCENES"); /* soak.sh has more */
    uint32_t explored = 0, scenes = text ? (uint32_t)strtoul(text, NULL, 0) : RANDOM_SCENES;
    while (explored < scenes) {
        struct ex_scene scene;
        scene_random(&rng, &scene);
        unsigned failures = CU_get_number_of_failures();
        explored += scene_explore(&scene, &found);
        if (CU_get_number_of_failures() != failures) {
            scene_print(&scene);
            break;
        }
    }
    found_print(&found);
    BW_EQ(explored, scenes);
    BW_TRUE(found.waits >= scenes / 2 && found.barriers > 0);
}

/* ---- the search itself ---- */

static void scene_compare(const struct ex_scene *scene, size_t *reduced, size_t *whole)
{
    struct found found = {0};
    struct ex_record *record;
    struct ex_model *model = model_open(scene, &record);
    if (model && is_fine(model, true)) {
        *reduced += (size_t)model->states.count;
        is_fine(model, false);
        *whole += (size_t)model->states.count;
        packets_each(model, verdicts_agree, &found);
    }
    model_close(model, record);
}

static void every_verdict_is_the_same_without_reduction(void)
{
    struct bw_rng rng = bw_test_rng("scenes compared");
    struct ex_scene scene = through_inputs;
    size_t reduced = 0, whole = 0;
    scene.replay_count = 3;
    scene_compare(&scene, &reduced, &whole);
    for (uint32_t i = 0; i < AGREEING_SCENES;) {
        struct ex_record *record = calloc(1, sizeof *record);
        scene_random(&rng, &scene);
        scene.replay_count = 2;
        scene.call_count[0] = scene.call_count[0] < 4 ? scene.call_count[0] : 4;
        bool fits = BW_TRUE(record != NULL) && ex_record_make(&scene, record);
        free(record);
        if (fits) {
            scene_compare(&scene, &reduced, &whole);
            i++;
        }
    }
    printf(" %zu states, %zu without reduction", reduced, whole);
    BW_TRUE(whole > reduced);
}

BW_TEST_MAIN("hcq explore", {"what_is_submitted_is_right_and_needed", what_is_submitted_is_right_and_needed},
             {"the_hosts_waits_are_needed", the_hosts_waits_are_needed},
             {"the_host_waits_for_a_device_that_cannot", the_host_waits_for_a_device_that_cannot},
             {"the_low_half_wraps", the_low_half_wraps}, {"random_scenes", random_scenes},
             {"every_verdict_is_the_same_without_reduction", every_verdict_is_the_same_without_reduction})
