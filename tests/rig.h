/* A rig for backends: it stands in for the UI thread. Waits are for events; half a minute without
 * one is a failure. */
#ifndef FADER_TESTS_RIG_H
#define FADER_TESTS_RIG_H

#include "test.h"

#include "backend/backend.h"
#include "base/str.h"

struct rig {
    struct backend *b;
    struct control control; /* change it, then rig_publish */
    uint32_t next_id;
    struct str text;   /* of the tokens since the last submit */
    int32_t tokens;    /* that number; the next token must have it */
    struct event last; /* the event taken last */
};

void rig_init(struct rig *r);
void rig_open_script(struct rig *r, const char *script); /* the script's text */
void rig_close(struct rig *r);

void rig_publish(struct rig *r); /* with a version of its own */
void rig_step(struct rig *r);

/* A chat request of one message; `seed` 7, no limit. Submitting takes what it owns. */
struct request rig_request(struct rig *r, const char *prompt);
void rig_add_message(struct request *q, enum role role, const char *text);
void rig_add_move(struct request *q, int32_t n, enum knob knob, double value);
void rig_submit(struct rig *r, struct request *q);
void rig_ask(struct rig *r, const char *prompt);

bool rig_next(struct rig *r); /* into r->last; false after 30 s */

/* Takes events until one of this type has come. */
struct event *rig_await(struct rig *r, enum event_type type);
void rig_expect_end(struct rig *r, enum end_reason reason);

#endif
