#include "config.h"

#include "base/room.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/file.h"
#include "base/str.h"

enum { FILE_MAX = 1 << 20 };

/* Appends the file at root + path; nothing where it cannot be read. */
static const char *read_text(struct str *text, const char *root, const char *path)
{
    struct str full = STR_INIT;
    struct error ignored;

    str_clear(text);
    str_add_format(&full, "%s%s", root, path);
    file_read(str_text(&full), FILE_MAX, text, &ignored);
    str_done(&full);
    return str_text(text);
}

/* The number after `name` at the beginning of a line, or `otherwise`. "max" is no number. */
static uint64_t number_after(const char *text, const char *name, uint64_t otherwise)
{
    const size_t len = strlen(name);
    char *end;

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, len) != 0)
            continue;
        unsigned long long value = strtoull(line + len, &end, 10);
        if (end != line + len)
            return value;
    }
    return otherwise;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t difference(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* ---- control groups -------------------------------------------------------------------------- */

/* The two versions keep the same books under different names. What a group's files take of its
 * memory is given back on demand, and counts as free. */
static const struct group_files {
    const char *mount; /* of the hierarchy */
    const char *limit, *soft_limit, *used;
    const char *active, *inactive; /* file pages in memory.stat */
} versions[] = {
    {"/sys/fs/cgroup", "memory.max", "memory.high", "memory.current", "active_file ",
     "inactive_file "},
    {"/sys/fs/cgroup/unified", "memory.max", "memory.high", "memory.current", "active_file ",
     "inactive_file "},
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", NULL, "memory.usage_in_bytes",
     "total_active_file ", "total_inactive_file "},
};

static uint64_t read_number(const char *root, const char *folder, const char *name,
                            uint64_t otherwise)
{
    struct str path = STR_INIT, text = STR_INIT;

    str_add_format(&path, "%s/%s", folder, name);
    uint64_t value = number_after(read_text(&text, root, str_text(&path)), "", otherwise);
    str_done(&path);
    str_done(&text);
    return value;
}

/* What one group leaves. */
static uint64_t group_room(const char *root, const struct group_files *v, const char *folder)
{
    struct str path = STR_INIT, stat = STR_INIT;
    uint64_t limit = read_number(root, folder, v->limit, ROOM_UNLIMITED);

    if (v->soft_limit != NULL)
        limit = least(limit, read_number(root, folder, v->soft_limit, ROOM_UNLIMITED));
    if (limit == ROOM_UNLIMITED)
        return limit;
    str_add_format(&path, "%s/memory.stat", folder);
    const char *text = read_text(&stat, root, str_text(&path));
    uint64_t files = number_after(text, v->active, 0) + number_after(text, v->inactive, 0);
    uint64_t used = difference(read_number(root, folder, v->used, 0), files);
    str_done(&path);
    str_done(&stat);
    return difference(limit, used);
}

/* The least of a group and those above it. A path that leads out of what is mounted here (that of
 * another container's view) has no files, and its parents are asked all the same. */
static uint64_t groups_room(const char *root, const struct group_files *v, const char *group,
                            size_t len)
{
    struct str folder = STR_INIT;
    uint64_t room = ROOM_UNLIMITED;

    str_add_format(&folder, "%s%.*s", v->mount, (int)len, group);
    while (folder.len >= strlen(v->mount)) {
        room = least(room, group_room(root, v, str_text(&folder)));
        str_truncate(&folder, (size_t)(strrchr(folder.data, '/') - folder.data));
    }
    str_done(&folder);
    return room;
}

/* What one line of /proc/self/cgroup ("4:memory:/some/group", "0::/some/group") leaves. */
static uint64_t line_room(const char *root, const char *line, size_t len)
{
    const char *names = memchr(line, ':', len);
    const char *group =
        names != NULL ? memchr(names + 1, ':', len - (size_t)(names + 1 - line)) : NULL;
    struct str list = STR_INIT;
    uint64_t room = ROOM_UNLIMITED;

    if (group == NULL)
        return room;
    group++;
    str_add_format(&list, ",%.*s,", (int)(group - 1 - (names + 1)), names + 1);
    const char *text = str_text(&list);
    bool counts = strcmp(text, ",,") == 0 || strstr(text, ",memory,") != NULL;
    for (size_t i = 0; counts && i < sizeof versions / sizeof *versions; i++)
        room = least(room, groups_room(root, &versions[i], group, len - (size_t)(group - line)));
    str_done(&list);
    return room;
}

uint64_t room_memory(const char *root)
{
    struct str text = STR_INIT;
    uint64_t kb = number_after(read_text(&text, root, "/proc/meminfo"), "MemAvailable:", 0);
    uint64_t room = kb > 0 ? kb * 1024 : ROOM_UNLIMITED;
    size_t len;

    for (const char *line = read_text(&text, root, "/proc/self/cgroup"); *line != '\0';
         line += len + (line[len] == '\n')) {
        len = strcspn(line, "\n");
        room = least(room, line_room(root, line, len));
    }
    str_done(&text);
    return room;
}

/* ---- the process's own limits ---------------------------------------------------------------- */

static uint64_t left_under(struct rlimit limit, uint64_t used)
{
    return limit.rlim_cur == RLIM_INFINITY ? ROOM_UNLIMITED : difference(limit.rlim_cur, used);
}

uint64_t room_addresses(const char *root)
{
    struct str text = STR_INIT;
    const char *status = read_text(&text, root, "/proc/self/status");
    uint64_t mapped = number_after(status, "VmSize:", 0), data = number_after(status, "VmData:", 0);
    struct rlimit of_mapped = {.rlim_cur = RLIM_INFINITY}, of_data = of_mapped;

    str_done(&text);
    getrlimit(RLIMIT_AS, &of_mapped);
    getrlimit(RLIMIT_DATA, &of_data);
    return least(left_under(of_mapped, mapped * 1024), left_under(of_data, data * 1024));
}
