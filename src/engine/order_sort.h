/* Sorting a few entries. */
#ifndef FADER_ENGINE_ORDER_SORT_H
#define FADER_ENGINE_ORDER_SORT_H

#include <stddef.h>

#include "engine/scan.h"

/* By value, the largest first; stable, so that entries that ascend by id stay so among equals.
 * `scratch` [n]. */
void order_sort(struct entry *e, size_t n, struct entry *scratch);

#endif
