/* The inside of preset_read: what a reader of one preset carries, and the ways to take a value. */
#ifndef FADER_CONFIG_PRESET_READER_H
#define FADER_CONFIG_PRESET_READER_H

#include <stdbool.h>

#include "base/str.h"
#include "config/preset_read.h"

struct preset_reader {
    struct preset *p;
    enum dialect dialect;
    const char *file;
    struct preset_warnings *warnings;
    struct error *err;
    const struct node *set_by[KNOB_COUNT]; /* the key that set it, for contradictions */
    const struct node *ordered_by;
    bool temperature_last;
    bool left_out[STAGE_COUNT]; /* by an order in which that means off (llama.cpp) */
    bool greedy;                /* do_sample: false */
    struct str ignored;         /* another program's keys that fader has no use for */
};

/* A warning is an error that does not stop anything: the same text, kept. */
#define PRESET_WARN(r, where, ...)                                                                 \
    do {                                                                                           \
        struct error warn_text_;                                                                   \
        node_key_error(&warn_text_, (r)->file, where, __VA_ARGS__);                                \
        preset_warnings_add((r)->warnings, warn_text_.text);                                       \
    } while (0)

/* Each takes the value of one key into the preset; false with an error that names key, value and
 * range. `arg` is the enum knob where a knob is set. */
typedef bool preset_take(struct preset_reader *r, const struct node *n, int arg);

preset_take preset_take_knob;
preset_take preset_take_range; /* the penalty's window, where 0 is everything */
preset_take preset_take_name;
preset_take preset_take_description;
preset_take preset_take_system;
preset_take preset_take_seed;
preset_take preset_take_max_tokens;
preset_take preset_take_exempt;
preset_take preset_take_tries;
preset_take preset_take_do_sample;
preset_take preset_take_order; /* names: a list, or one text */
preset_take preset_take_kobold_order;
preset_take preset_take_temperature_last;

/* After the last key: moves the temperature behind all other stages. */
void preset_put_temperature_last(struct preset *p);

/* True when `n` was a sampler that fader lacks; warned about unless it does nothing there. */
bool preset_pass_stranger(struct preset_reader *r, const struct node *n);

#endif
