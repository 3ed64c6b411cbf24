/* Samplers that other programs have and fader lacks. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "config/preset_reader.h"

/* Silent at their neutral values, as other programs write them out; NAN: only tunes another one. */
static const struct {
    const char *name;
    double neutral, also;
} strangers[] = {
    {"typical_p", 1, 0},
    {"typical", 1, 0},
    {"typ_p", 1, 0},
    {"tfs", 1, 0},
    {"tfs_z", 1, 0},
    {"top_a", 0, 0},
    {"top_n_sigma", 0, -1},
    {"nsigma", 0, -1},
    {"top_h", 0, 0},
    {"adaptive_target", -1, 0},
    {"adaptive_decay", NAN, NAN},
    {"mirostat", 0, 0},
    {"mirostat_mode", 0, 0},
    {"mirostat_tau", NAN, NAN},
    {"mirostat_eta", NAN, NAN},
    {"dry_multiplier", 0, 0},
    {"dry_base", NAN, NAN},
    {"dry_allowed_length", NAN, NAN},
    {"dry_sequence_breakers", NAN, NAN},
    {"dry_penalty_last_n", NAN, NAN},
    {"xtc_probability", 0, 0},
    {"xtc_threshold", NAN, NAN},
    {"dynamic_temperature", 0, 0},
    {"dynatemp", 0, 0},
    {"dynatemp_low", NAN, NAN},
    {"dynatemp_high", NAN, NAN},
    {"min_temp", NAN, NAN},
    {"max_temp", NAN, NAN},
    {"dynatemp_range", 0, 0},
    {"dynatemp_exponent", NAN, NAN},
    {"smoothing_factor", 0, 0},
    {"smoothing_curve", NAN, NAN},
    {"epsilon_cutoff", 0, 0},
    {"eta_cutoff", 0, 0},
    {"no_repeat_ngram_size", 0, 0},
    {"encoder_repetition_penalty", 1, 0},
    {"encoder_rep_pen", 1, 0},
    {"presence_penalty", 0, 0},
    {"presence_pen", 0, 0},
    {"frequency_penalty", 0, 0},
    {"freq_pen", 0, 0},
    {"rep_pen_slope", 0, 1},
    {"rep_pen_decay", NAN, NAN},
    {"penalty_alpha", 0, 0},
    {"guidance_scale", 1, 0},
    {"num_beams", 1, 0},
    {"num_beam_groups", 1, 0},
    {"diversity_penalty", 0, 0},
    {"length_penalty", 1, 0},
    {"early_stopping", 0, 0},
    {"skew", 0, 0},
    {"min_length", 0, 0},
    {"min_keep", 0, 0},
};

/* True when `n` was a sampler that fader lacks; warned about unless it does nothing there. */
bool preset_pass_stranger(struct preset_reader *r, const struct node *n)
{
    char shown[48];
    double value;
    bool truth;

    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        if (strcmp(n->key, strangers[i].name) != 0)
            continue;
        if (n->kind == NODE_NULL || isnan(strangers[i].neutral))
            return true;
        if (node_truth(n, &truth))
            value = truth;
        else if (!node_number(n, &value))
            value = NAN;
        if (value != strangers[i].neutral && value != strangers[i].also)
            PRESET_WARN(r, n, "%s: %s: fader has no such sampler; ignored", n->key,
                        node_describe(n, shown));
        return true;
    }
    return false;
}
