#include "rig.h"

#include <poll.h>
#include <unistd.h>

#include "base/mem.h"
#include "sync/wake.h"

void rig_init(struct rig *r)
{
    *r = (struct rig){.control = {.knobs = knobs_default()}, .next_id = 1, .text = STR_INIT};
}

void rig_open_script(struct rig *r, const char *script)
{
    char path[] = "/tmp/fader-script-XXXXXX";
    struct error err = {""};
    int fd = mkstemp(path);

    rig_init(r);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, script, strlen(script)), (ssize_t)strlen(script));
    close(fd);
    r->b = scripted_backend_new(path, &r->control, &err);
    unlink(path);
    if (r->b == NULL)
        fail_msg("%s", err.text);
}

void rig_close(struct rig *r)
{
    backend_close(r->b);
    str_done(&r->text);
}

void rig_publish(struct rig *r)
{
    r->control.version++;
    backend_publish(r->b, &r->control);
}

void rig_step(struct rig *r)
{
    r->control.steps++;
    rig_publish(r);
}

struct request rig_request(struct rig *r, const char *prompt)
{
    struct request q = {.id = r->next_id++, .kind = REQUEST_CHAT, .seed = 7, .max_tokens = -1};

    rig_add_message(&q, ROLE_USER, prompt);
    str_clear(&r->text);
    r->tokens = 0;
    return q;
}

void rig_add_message(struct request *q, enum role role, const char *text)
{
    message_list_add(&q->messages, role, text, NULL, 0);
}

void rig_add_move(struct request *q, int32_t n, enum knob knob, double value)
{
    q->moves = mem_realloc_array(q->moves, q->n_moves + 1, sizeof *q->moves);
    q->moves[q->n_moves++] = (struct move){n, knob, value};
}

void rig_submit(struct rig *r, struct request *q)
{
    struct error err = {""};

    if (!backend_submit(r->b, q, &err))
        fail_msg("%s", err.text);
}

void rig_ask(struct rig *r, const char *prompt)
{
    struct request q = rig_request(r, prompt);

    rig_submit(r, &q);
}

/* Sleeps until there may be an event: a byte that was late for the last wait may end this one too
 * early. False after a minute. */
static bool sleep_for_event(struct rig *r)
{
    struct pollfd p = {r->b->wake_fd, POLLIN, 0};
    bool roused = poll(&p, 1, 60000) == 1;

    wake_disarm(r->b->wake);
    return roused;
}

bool rig_next(struct rig *r)
{
    while (!backend_next_event(r->b, &r->last)) {
        wake_arm(r->b->wake);
        if (backend_next_event(r->b, &r->last)) {
            wake_disarm(r->b->wake);
            break;
        }
        if (!sleep_for_event(r))
            return false;
    }
    if (r->last.type == EVENT_TOKEN) {
        str_add(&r->text, r->last.text, r->last.len);
        assert_int_equal(r->last.u.token.n, r->tokens);
        r->tokens++;
    }
    return true;
}

struct event *rig_await(struct rig *r, enum event_type type)
{
    do {
        if (!rig_next(r))
            fail_msg("waited 60 s for event %d", (int)type);
        if (r->last.type == EVENT_ERROR && type != EVENT_ERROR)
            fail_msg("%s", r->last.text);
        if (r->last.type == EVENT_END && type != EVENT_END)
            fail_msg("it ended (%s) before event %d", end_reason_name(r->last.u.end.reason),
                     (int)type);
    } while (r->last.type != type);
    return &r->last;
}

void rig_expect_end(struct rig *r, enum end_reason reason)
{
    struct event *e = rig_await(r, EVENT_END);

    assert_string_equal(end_reason_name(e->u.end.reason), end_reason_name(reason));
}
