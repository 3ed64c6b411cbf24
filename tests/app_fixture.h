/* An application without a screen: the scripted backend, folders of its own under /tmp, and a view
 * that records what it is told. */
#ifndef FADER_TESTS_APP_FIXTURE_H
#define FADER_TESTS_APP_FIXTURE_H

#include "test.h"

#include "app/app.h"
#include "app/command.h"

struct fixture {
    struct app *app;
    const char *folder; /* HOME and the XDG folders lie in it */
    struct settings settings;
    struct app_options options;
    unsigned changed;        /* every CHANGE_* since the last look */
    char *page_title, *page; /* shown last */
    char *input;             /* put into the input line last */
    const char *typed;       /* what is being typed; NULL: nothing */
    char *copied;
    char *theme;
    char answer; /* to the next question; '\0': no key */
    char *question;
    char *edited; /* what the editor gives back */
    bool mouse;
    int presets_asked;
    enum action acted; /* the last action that was handed to the view */
    bool refuses;      /* copy and theme fail */
};

/* Starts with a script (the text of a script file; see backend/scripted.c). */
void fixture_start(struct fixture *f, const char *script);
/* The same with options->settings and so on set by the caller between these two. */
void fixture_prepare(struct fixture *f);
void fixture_open(struct fixture *f, const char *script);
bool fixture_try_open(struct fixture *f, const char *script, struct preset *preset,
                      struct error *err);
void fixture_close(struct fixture *f); /* ends the application, keeps the folders */
void fixture_stop(struct fixture *f);  /* removes them too */

/* Runs the loop until `*done(app)`; fails after ten seconds. */
void fixture_wait(struct fixture *f, bool (*done)(const struct app *app));
bool is_idle(const struct app *app);           /* the model is ready and nothing is asked for */
bool is_paused_at_view(const struct app *app); /* paused before a draw, with candidates */

/* Enters a line and waits until its answer is over. */
void fixture_ask(struct fixture *f, const char *line);
/* Text of turn `i` of the path; fails when there is none. */
const char *fixture_text(struct fixture *f, size_t i);
struct turn *fixture_turn(struct fixture *f, size_t i);
char *fixture_write(struct fixture *f, const char *name,
                    const char *text); /* path, owned by the caller */
char *fixture_read(const char *path);

#define expect_message(f, part)                                                                    \
    do {                                                                                           \
        if (strstr((f)->app->message, part) == NULL)                                               \
            fail_msg("message: \"%s\"", (f)->app->message);                                        \
    } while (0)

#endif
