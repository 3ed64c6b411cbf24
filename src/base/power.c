#include "config.h"

#include "base/power.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

enum { ATTRIBUTE_MAX = 4096 }; /* sysfs gives a page at most */

/* Whether the attribute of a supply is this word. */
static bool has(const char *supply, const char *attribute, const char *word)
{
    char *path = file_join(supply, attribute);
    struct str text = STR_INIT;
    struct error ignored;
    size_t len = strlen(word);
    bool found = file_read(path, ATTRIBUTE_MAX, &text, &ignored) && text.len >= len &&
                 memcmp(text.data, word, len) == 0 && (text.len == len || text.data[len] == '\n');

    str_done(&text);
    free(path);
    return found;
}

/* The battery of a mouse or a pen says nothing about the computer. */
static bool is_emptied(const char *supply)
{
    return has(supply, "type", "Battery") && !has(supply, "scope", "Device") &&
           has(supply, "status", "Discharging");
}

bool power_on_battery(const char *folder)
{
    bool mains = false, emptied = false;
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        char *supply = file_join(folder, entry->d_name);
        mains = mains || (has(supply, "type", "Mains") && has(supply, "online", "1"));
        emptied = emptied || is_emptied(supply);
        free(supply);
    }
    if (dir != NULL)
        closedir(dir);
    return emptied && !mains;
}
