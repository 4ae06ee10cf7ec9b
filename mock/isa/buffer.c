/* Buffer instructions: loads, stores and atomics through a descriptor of four scalar registers ("V#"), lane
 * by lane. RDNA3 Shader ISA document, sections 9.4 "Buffer addressing", 9.5 "Alignment", 9.6 "Buffer
 * resource".
 *
 * Operands of these uops: d destination, a the address registers (index, then offset), b data, c the
 * descriptor, g the immediate offset, e the worker's range entry, f as BW_BUFFER_CODE says. The scalar offset
 * stands where there is room: at b for loads, at d for stores and atomics, whose result goes to the data's
 * registers. */
#include <string.h>

#include "base/bits.h"
#include "mock/isa/atomic.h"
#include "mock/isa/format.h"
#include "mock/isa/memory.h"
#include "mock/isa/uops.h"

enum oob_select { OOB_STRUCTURED_OFFSET, OOB_STRUCTURED, OOB_EMPTY, OOB_RAW };

struct buffer {
    uint64_t base; /* the scalar offset is in it */
    uint32_t stride, records, soffset;
    uint32_t index_stride;  /* indices that lie together, when swizzled */
    uint32_t element_bytes; /* that do so; 0: linear */
    enum oob_select oob;
    bool adds_lane;
    bool is_unbound;  /* loads return 0, stores are ignored */
    bool is_mismatch; /* no buffer at all: the instruction is ignored */
    const struct bw_format *format;
    uint8_t select[BW_FORMAT_COMPONENTS]; /* which component each register gets: DST_SEL */
};

/* False on a fault. */
static bool read_descriptor(struct bw_wave *wave, const struct bw_uop *uop, int32_t soffset,
                            struct buffer *buffer)
{
    const uint32_t *words = BW_AT(const uint32_t, wave, uop->c);
    uint32_t swizzle = bw_field(words[1], 30, 31), format = bw_field(words[3], 12, 17);
    buffer->soffset = *BW_AT(const uint32_t, wave, soffset);
    buffer->base = ((uint64_t)bw_field(words[1], 0, 15) << 32 | words[0]) + buffer->soffset;
    buffer->stride = bw_field(words[1], 16, 29);
    buffer->records = words[2];
    buffer->index_stride = 8u << bw_field(words[3], 21, 22);
    buffer->element_bytes = swizzle == 1 ? 4 : swizzle == 3 ? 16 : 0;
    buffer->adds_lane = bw_field(words[3], 23, 23);
    buffer->oob = (enum oob_select)bw_field(words[3], 28, 29);
    buffer->is_unbound = format == 0 && !buffer->adds_lane;
    buffer->is_mismatch = bw_field(words[3], 30, 31) != 0;
    buffer->format = &bw_formats[format];
    for (unsigned i = 0; i < BW_FORMAT_COMPONENTS; i++)
        buffer->select[i] = (uint8_t)bw_field(words[3], 3 * i, 3 * i + 2);
    if (swizzle != 2)
        return true;
    bw_wave_fault(wave, uop, BW_ISA_UNSUPPORTED, buffer->base, 0, 0);
    bw_wave_explain(wave, "SWIZZLE_ENABLE of the buffer is 2, which is reserved: ");
    return false;
}

struct place {
    uint64_t index, offset;
};

static struct place place_of(const struct bw_wave *wave, const struct bw_uop *uop,
                             const struct buffer *buffer, unsigned lane)
{
    const uint32_t *registers = BW_AT(const uint32_t, wave, uop->a);
    bool has_index = uop->f & BW_BUFFER_INDEX, has_offset = uop->f & BW_BUFFER_OFFSET;
    return (struct place){
        .index =
            (has_index ? registers[lane] : 0) + (uint64_t)(buffer->adds_lane ? bw_wave_lane(uop, lane) : 0),
        .offset =
            (has_offset ? registers[lane + (has_index ? BW_LANES : 0)] : 0) + (uint64_t)(uint32_t)uop->g,
    };
}

static bool is_inside(const struct buffer *buffer, struct place place, unsigned bytes)
{
    uint64_t end = place.offset + bytes;
    switch (buffer->oob) {
    case OOB_STRUCTURED:
        return place.index < buffer->records;
    case OOB_EMPTY:
        return buffer->records != 0;
    case OOB_RAW: /* the scalar offset takes from the records, in bytes */
        if (!buffer->element_bytes || !buffer->stride)
            return buffer->soffset <= buffer->records && end <= buffer->records - buffer->soffset;
        return place.index < (buffer->soffset <= buffer->records ? buffer->records - buffer->soffset : 0) &&
               end <= buffer->stride;
    default:
        return place.index < buffer->records && end <= buffer->stride;
    }
}

static uint64_t address_of(const struct buffer *buffer, struct place place)
{
    uint32_t element = buffer->element_bytes, group = buffer->index_stride;
    if (!element)
        return buffer->base + place.index * buffer->stride + place.offset;
    uint64_t whole = place.index / group * buffer->stride + place.offset / element * element;
    return buffer->base + whole * group + place.index % group * element + place.offset % element;
}

/* An access must not be larger than what swizzling keeps together. False on a fault. */
static bool stays_together(struct bw_wave *wave, const struct bw_uop *uop, const struct buffer *buffer,
                           struct place place, unsigned bytes, unsigned lane)
{
    if (!buffer->element_bytes || place.offset % buffer->element_bytes + bytes <= buffer->element_bytes)
        return true;
    bw_wave_fault(wave, uop, BW_ISA_UNSUPPORTED, address_of(buffer, place), 0, bw_wave_lane(uop, lane));
    bw_wave_explain(wave, "more than an element of %u bytes of a swizzled buffer: ", buffer->element_bytes);
    return false;
}

/* One lane's element, each dword of which is checked against the buffer's size alone. False on a fault. */
static bool move(struct bw_wave *wave, const struct bw_uop *uop, const struct buffer *buffer, unsigned lane,
                 enum bw_isa_access access, unsigned bytes, uint8_t *data)
{
    struct place place = place_of(wave, uop, buffer, lane);
    uint64_t va = address_of(buffer, place);
    if (buffer->is_unbound)
        return true;
    if (!stays_together(wave, uop, buffer, place, bytes, lane))
        return false;
    if (is_inside(buffer, place, bytes))
        return bw_move_mapped(wave, uop, va, lane, bytes, access, data);
    for (unsigned done = 0; done < bytes; done += 4, place.offset += 4) {
        unsigned step = bytes < 4 ? bytes : 4;
        if (is_inside(buffer, place, step) &&
            !bw_move_mapped(wave, uop, va + done, lane, step, access, data + done))
            return false;
    }
    return true;
}

static const struct bw_uop *x_BUFFER_LOAD(struct bw_wave *wave, const struct bw_uop *uop)
{
    enum bw_element element = (enum bw_element)(uop->f & 0xff);
    unsigned bytes = bw_element_bytes(element), dwords = bytes < 4 ? 1 : bytes / 4;
    uint32_t loaded[BW_LANES][4], exec = *BW_AT(const uint32_t, wave, uop->x);
    uint32_t *d = BW_AT(uint32_t, wave, uop->d);
    struct buffer buffer;
    if (!read_descriptor(wave, uop, uop->b, &buffer))
        return NULL;
    if (buffer.is_mismatch)
        return uop + 1;
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        memset(loaded[lane], 0, sizeof loaded[lane]);
        if (!move(wave, uop, &buffer, lane, BW_ISA_READ, bytes, (uint8_t *)loaded[lane]))
            return NULL;
    }
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        for (unsigned i = 0; i < dwords; i++)
            d[i * BW_LANES + lane] = bw_extended(element, loaded[lane][i], d[i * BW_LANES + lane]);
    }
    return uop + 1;
}

static const struct bw_uop *x_BUFFER_STORE(struct bw_wave *wave, const struct bw_uop *uop)
{
    enum bw_element element = (enum bw_element)(uop->f & 0xff);
    unsigned bytes = bw_element_bytes(element);
    const uint32_t *data = BW_AT(const uint32_t, wave, uop->b);
    struct buffer buffer;
    if (!read_descriptor(wave, uop, uop->d, &buffer))
        return NULL;
    if (buffer.is_mismatch)
        return uop + 1;
    for (uint32_t rest = *BW_AT(const uint32_t, wave, uop->x); rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint32_t raw[4];
        bw_element_of(element, data, lane, raw);
        if (!move(wave, uop, &buffer, lane, BW_ISA_WRITE, bytes, (uint8_t *)raw))
            return NULL;
    }
    return uop + 1;
}

/* Checked all or nothing; what is outside returns 0. */
static const struct bw_uop *x_BUFFER_ATOMIC(struct bw_wave *wave, const struct bw_uop *uop)
{
    unsigned bytes = uop->f & BW_ATOMIC_WIDE ? 8 : 4;
    uint32_t exec = *BW_AT(const uint32_t, wave, uop->x);
    uint64_t old[BW_LANES] = {0};
    struct buffer buffer;
    if (!read_descriptor(wave, uop, uop->d, &buffer))
        return NULL;
    if (buffer.is_mismatch)
        return uop + 1;
    for (uint32_t rest = exec; rest && !buffer.is_unbound; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        struct place place = place_of(wave, uop, &buffer, lane);
        if (!is_inside(&buffer, place, bytes))
            continue;
        uint64_t va = address_of(&buffer, place);
        if (!stays_together(wave, uop, &buffer, place, bytes, lane))
            return NULL;
        if (va % bytes)
            return bw_wave_fault(wave, uop, BW_ISA_MISALIGNED, va, BW_ISA_ATOMIC, bw_wave_lane(uop, lane));
        uint8_t *memory = bw_mapped_memory(wave, uop, va, lane, bytes, BW_ISA_ATOMIC);
        if (!memory)
            return NULL;
        old[lane] = bw_atomic_perform(wave, uop, lane, memory);
    }
    if (uop->f & BW_ATOMIC_RETURN)
        bw_atomic_return(wave, uop->b, exec, old, bytes == 8);
    return uop + 1;
}

enum { SELECT_0, SELECT_1, SELECT_X = 4 };

/* MTBUF names the format itself, and takes its components as they are. */
static bool read_typed_descriptor(struct bw_wave *wave, const struct bw_uop *uop, int32_t soffset,
                                  struct buffer *buffer)
{
    unsigned format = (unsigned)uop->f >> 8 & (BW_FORMATS - 1);
    if (!read_descriptor(wave, uop, soffset, buffer))
        return false;
    if (!format) {
        buffer->is_unbound = buffer->is_unbound || !buffer->format->bits[0];
        return true;
    }
    buffer->is_unbound = false;
    buffer->format = &bw_formats[format];
    for (unsigned i = 0; i < BW_FORMAT_COMPONENTS; i++)
        buffer->select[i] = (uint8_t)(SELECT_X + i);
    return true;
}

/* Where the lane's element lies, checked whole; *inside says whether it lies in the buffer. False on a fault.
 */
static bool typed_place(struct bw_wave *wave, const struct bw_uop *uop, const struct buffer *buffer,
                        unsigned lane, enum bw_isa_access access, uint64_t *va, bool *inside)
{
    struct place place = place_of(wave, uop, buffer, lane);
    unsigned bytes = bw_format_bytes(buffer->format), alignment = bytes < 4 ? bytes : 4;
    *inside = !buffer->is_unbound && is_inside(buffer, place, bytes);
    *va = address_of(buffer, place);
    if (!*inside)
        return true;
    if (*va % alignment) {
        bw_wave_fault(wave, uop, BW_ISA_MISALIGNED, *va, access, bw_wave_lane(uop, lane));
        return false;
    }
    return stays_together(wave, uop, buffer, place, bytes, lane);
}

static uint32_t selected(const struct buffer *buffer, unsigned i, const uint32_t components[4], bool inside)
{
    uint32_t one = bw_format_is_float(buffer->format) ? 0x3f800000 : 1;
    if (buffer->is_unbound)
        return 0;
    if (buffer->select[i] == SELECT_1)
        return one;
    return inside && buffer->select[i] >= SELECT_X ? components[buffer->select[i] - SELECT_X] : 0;
}

/* Component i of the lane's registers: two to a register in D16, of which the high half may be the only one.
 */
static void write_component(struct bw_wave *wave, const struct bw_uop *uop, const struct buffer *buffer,
                            unsigned lane, unsigned i, uint32_t value)
{
    uint32_t *d = BW_AT(uint32_t, wave, uop->d) + lane;
    if (!(uop->f & (BW_BUFFER_D16 | BW_BUFFER_D16_HI))) {
        d[i * BW_LANES] = value;
        return;
    }
    unsigned shift = uop->f & BW_BUFFER_D16_HI || i % 2 ? 16 : 0;
    uint32_t *half = &d[i / 2 * BW_LANES];
    *half = (*half & ~(0xffffu << shift)) | (uint32_t)bw_format_narrow(buffer->format, value) << shift;
}

static const struct bw_uop *x_BUFFER_LOAD_FORMAT(struct bw_wave *wave, const struct bw_uop *uop)
{
    uint32_t exec = *BW_AT(const uint32_t, wave, uop->x), loaded[BW_LANES][BW_FORMAT_COMPONENTS];
    unsigned count = (unsigned)uop->f & 7;
    struct buffer buffer;
    if (!read_typed_descriptor(wave, uop, uop->b, &buffer))
        return NULL;
    if (buffer.is_mismatch)
        return uop + 1;
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint32_t components[BW_FORMAT_COMPONENTS] = {0};
        uint8_t element[16];
        bool inside;
        uint64_t va;
        if (!typed_place(wave, uop, &buffer, lane, BW_ISA_READ, &va, &inside))
            return NULL;
        if (inside) {
            if (!bw_move_mapped(wave, uop, va, lane, bw_format_bytes(buffer.format), BW_ISA_READ, element))
                return NULL;
            bw_format_load(buffer.format, element, components);
        }
        for (unsigned i = 0; i < count; i++)
            loaded[lane][i] = selected(&buffer, i, components, inside);
    }
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        for (unsigned i = 0; i < count; i++)
            write_component(wave, uop, &buffer, lane, i, loaded[lane][i]);
    }
    return uop + 1;
}

/* The components of an element in memory, of which the instruction may give fewer: the first stands for
 * those. */
static void given_components(const struct bw_wave *wave, const struct bw_uop *uop,
                             const struct buffer *buffer, unsigned lane, uint32_t components[4])
{
    const uint32_t *data = BW_AT(const uint32_t, wave, uop->b) + lane;
    unsigned count = (unsigned)uop->f & 7;
    memset(components, 0, BW_FORMAT_COMPONENTS * sizeof components[0]);
    for (unsigned i = BW_FORMAT_COMPONENTS; i-- > 0;) {
        unsigned from = i < count ? i : 0, shift = uop->f & BW_BUFFER_D16_HI || from % 2 ? 16 : 0;
        bool is_half = uop->f & (BW_BUFFER_D16 | BW_BUFFER_D16_HI);
        uint32_t value = is_half
                             ? bw_format_widen(buffer->format, (uint16_t)(data[from / 2 * BW_LANES] >> shift))
                             : data[from * BW_LANES];
        if (buffer->select[i] >= SELECT_X)
            components[buffer->select[i] - SELECT_X] = value;
    }
}

static const struct bw_uop *x_BUFFER_STORE_FORMAT(struct bw_wave *wave, const struct bw_uop *uop)
{
    struct buffer buffer;
    if (!read_typed_descriptor(wave, uop, uop->d, &buffer))
        return NULL;
    if (buffer.is_mismatch)
        return uop + 1;
    for (uint32_t rest = *BW_AT(const uint32_t, wave, uop->x); rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint32_t components[BW_FORMAT_COMPONENTS];
        uint8_t element[16];
        bool inside;
        uint64_t va;
        if (!typed_place(wave, uop, &buffer, lane, BW_ISA_WRITE, &va, &inside))
            return NULL;
        given_components(wave, uop, &buffer, lane, components);
        bw_format_store(buffer.format, components, element);
        if (inside &&
            !bw_move_mapped(wave, uop, va, lane, bw_format_bytes(buffer.format), BW_ISA_WRITE, element))
            return NULL;
    }
    return uop + 1;
}

static const struct bw_uop_row rows[] = {
    {BW_UOP_BUFFER_LOAD, x_BUFFER_LOAD},
    {BW_UOP_BUFFER_STORE, x_BUFFER_STORE},
    {BW_UOP_BUFFER_ATOMIC, x_BUFFER_ATOMIC},
    {BW_UOP_BUFFER_LOAD_FORMAT, x_BUFFER_LOAD_FORMAT},
    {BW_UOP_BUFFER_STORE_FORMAT, x_BUFFER_STORE_FORMAT},
};
const struct bw_uop_table bw_plain_buffer = {rows, sizeof rows / sizeof rows[0]};
