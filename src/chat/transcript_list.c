/* Which transcripts there are. */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "chat/records.h"
#include "chat/transcript.h"

enum {
    BEGINNING = 16 << 10,
    FIRST_MAX = 200
}; /* bytes of a file, and of its first message, that are shown */

struct found {
    char *path;
    struct timespec written;
};

struct found_list {
    struct found *items;
    size_t n, cap;
};

static bool is_transcript_name(const char *name)
{
    size_t len = strlen(name);

    return name[0] != '.' && len > 6 && strcmp(name + len - 6, ".jsonl") == 0;
}

static int by_time(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    if (x->written.tv_sec != y->written.tv_sec)
        return x->written.tv_sec > y->written.tv_sec ? -1 : 1;
    if (x->written.tv_nsec != y->written.tv_nsec)
        return x->written.tv_nsec > y->written.tv_nsec ? -1 : 1;
    return strcmp(y->path, x->path); /* names begin with the time, too */
}

static struct found_list find_all(const char *folder)
{
    struct found_list list = {NULL, 0, 0};
    DIR *dir = opendir(folder);
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        struct stat st;
        if (!is_transcript_name(entry->d_name))
            continue;
        char *path = file_join(folder, entry->d_name);
        /* an empty one is what a full disk left */
        if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0) {
            free(path);
            continue;
        }
        mem_grow(&list.items, &list.cap, list.n + 1, sizeof *list.items);
        list.items[list.n++] = (struct found){path, st.st_mtim};
    }
    if (dir != NULL)
        closedir(dir);
    if (list.n > 1)
        qsort(list.items, list.n, sizeof *list.items, by_time);
    return list;
}

/* One line of whole characters: a short text for a list. */
static char *in_one_line(const char *text)
{
    size_t len = strlen(text);

    if (len > FIRST_MAX)
        len = FIRST_MAX;
    char *copy = mem_strndup(text, len);
    copy[len - utf8_unfinished(copy, len)] = '\0';
    for (unsigned char *p = (unsigned char *)copy; *p != '\0'; p++) {
        if (*p < ' ' || *p == 127)
            *p = ' ';
    }
    return copy;
}

/* What the user said first. Only the beginning of the file is looked at. */
static char *read_first(const char *path)
{
    char *buf = mem_alloc(BEGINNING);
    struct conversation *c = conversation_new();
    struct error ignored;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, buf, BEGINNING) : -1;
    bool first = true;

    for (char *line = buf; len > 0 && c->n_turns == 0;) {
        char *end = memchr(line, '\n', (size_t)(buf + len - line));
        if (end == NULL || !record_read(c, line, (size_t)(end - line), first, &ignored))
            break;
        first = false;
        line = end + 1;
    }
    char *text = in_one_line(c->n_turns > 0 ? str_text(&c->turns[0]->text) : "");
    if (fd >= 0)
        close(fd);
    conversation_free(c);
    free(buf);
    return text;
}

void transcript_list_find(const char *folder, size_t max, struct transcript_list *out)
{
    struct found_list found = find_all(folder);

    *out = (struct transcript_list){NULL, 0, 0};
    for (size_t i = 0; i < found.n; i++) {
        if (i >= max) {
            free(found.items[i].path);
            continue;
        }
        mem_grow(&out->items, &out->cap, out->n + 1, sizeof *out->items);
        out->items[out->n++] =
            (struct transcript_entry){found.items[i].path, read_first(found.items[i].path)};
    }
    free(found.items);
}

void transcript_list_done(struct transcript_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->items[i].path);
        free(list->items[i].first);
    }
    free(list->items);
}

char *transcript_newest(const char *folder)
{
    struct transcript_list list;
    char *path = NULL;

    transcript_list_find(folder, 1, &list);
    if (list.n > 0)
        path = mem_strdup(list.items[0].path);
    transcript_list_done(&list);
    return path;
}
