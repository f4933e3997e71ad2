/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standalone.c - runs a fuzz target once on every file of a corpus folder, as an ordinary test (TAP on stdout).
 *
 * usage: fuzz_NAME FOLDER|FILE...
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count;

static void run_file(const char *path)
{
    uint8_t *data = NULL;
    size_t len = 0, size = 0;
    FILE *f = fopen(path, "rb");
    if (f != NULL) {
        for (;;) {
            if (len == size) {
                size = size ? size * 2 : 4096;
                uint8_t *grown = realloc(data, size);
                if (grown == NULL)
                    exit(70);
                data = grown;
            }
            size_t got = fread(data + len, 1, size - len, f);
            if (got == 0)
                break;
            len += got;
        }
        fclose(f);
        /* An exact-size copy, so that ASan sees a read past the end. */
        uint8_t *exact = malloc(len ? len : 1);
        if (exact == NULL)
            exit(70);
        if (len > 0)
            memcpy(exact, data, len);
        LLVMFuzzerTestOneInput(exact, len);
        free(exact);
    }
    free(data);
    const char *base = strrchr(path, '/');
    printf("%s %d - %s\n", f != NULL ? "ok" : "not ok", ++count, base ? base + 1 : path);
    fflush(stdout);
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode)) {
            struct dirent **names = NULL;
            int n = scandir(argv[i], &names, visible, alphasort);
            for (int k = 0; k < n; k++) {
                char path[4096];
                snprintf(path, sizeof path, "%s/%s", argv[i], names[k]->d_name);
                run_file(path);
                free(names[k]);
            }
            free(names);
        } else if (stat(argv[i], &st) == 0) {
            run_file(argv[i]);
        }
    }
    printf(count > 0 ? "1..%d\n" : "1..%d # SKIP empty corpus\n", count);
    return 0;
}
