/* SPDX-License-Identifier: Apache-2.0 */
/*
 * framework_file.c - a job as a framework's configuration file: written by its form, read back as any such file, and compared. See
 * maquette/framework_words.h and framework_file.h.
 */
#include "plan/words/framework_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "maquette/framework_words.h"
#include "plan/codes.h"
#include "plan/job_build.h"
#include "plan/words/words.h"

#define LONGEST ((size_t)1 << 20)
#define SECTIONS 3

static const struct form {
    const char *name, *title;
    void (*write)(struct maq_file_writer *w, const struct maq_job *job);
} forms[] = {{"deepspeed", "DeepSpeed's configuration", maq_file_write_deepspeed},
             {"training-arguments", "Hugging Face's TrainingArguments", maq_file_write_training_arguments}};

/* ---- JSON ---- */

static void begin(struct maq_file_writer *w, const char *key)
{
    if (w->depth > 0)
        maq_buf_adds(w->out, w->first ? "\n" : ",\n");
    for (int i = 0; i < w->depth; i++)
        maq_buf_adds(w->out, "  ");
    if (key)
        maq_buf_addf(w->out, "\"%s\": ", key);
    w->first = false;
}

void maq_file_open(struct maq_file_writer *w, const char *key)
{
    begin(w, key);
    maq_buf_addc(w->out, '{');
    w->depth++;
    w->first = true;
}

void maq_file_close(struct maq_file_writer *w)
{
    w->depth--;
    maq_buf_addc(w->out, '\n');
    for (int i = 0; i < w->depth; i++)
        maq_buf_adds(w->out, "  ");
    maq_buf_adds(w->out, w->depth == 0 ? "}\n" : "}");
    w->first = false;
}

void maq_file_put_text(struct maq_file_writer *w, const char *key, const char *value)
{
    begin(w, key);
    maq_buf_addf(w->out, "\"%s\"", value);
}

void maq_file_put_number(struct maq_file_writer *w, const char *key, double value)
{
    begin(w, key);
    maq_buf_addf(w->out, "%.15g", value);
}

void maq_file_put_switch(struct maq_file_writer *w, const char *key, bool on)
{
    begin(w, key);
    maq_buf_adds(w->out, on ? "true" : "false");
}

/* ---- read back ---- */

/* What the file cannot say and goes beside it: sections of the job as values of options. */
static size_t sections_of(struct maq_override out[SECTIONS], char *text)
{
    static const char *const keys[SECTIONS] = {"model", "cluster", "workload"};
    size_t n = 0;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        for (size_t i = 0; i < SECTIONS; i++) {
            const size_t length = strlen(keys[i]);
            if (strncmp(line, keys[i], length) == 0 && line[length] == ':' && n < SECTIONS)
                out[n++] = (struct maq_override){keys[i], keys[i], line + length + 2};
        }
    }
    return n;
}

static enum maq_status unsaid(const struct maq_loaded_job *box, const struct form *form,
                              const struct maq_loaded_job *back, struct maq_diag *diag)
{
    const struct maq_job *own = maq_job_get(box), *other = maq_job_get(back);
    const struct maq_job_places at = maq_job_sections(box);
    const struct maq_unsaid *list;
    struct maq_arena arena;
    uint32_t n = 0;
    maq_arena_init(&arena, 0);
    bool good = maq_plan_differences(&list, &n, own, other, &arena), same = true;
    for (uint32_t i = 0; i < n && good; i++)
        maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_FILE_UNSAID, maq_place_of_plan(&at, list[i].key),
                     "give it the other value, or keep the job file", "%s has no words for %s: %s (it would be %s)",
                     form->title, list[i].key, list[i].value, list[i].instead);
    if (strcmp(own->framework.name, other->framework.name) != 0) {
        same = false;
        maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_FILE_UNSAID, maq_place_of_plan(&at, "framework"),
                     "name that framework, or write another file",
                     "%s has no words for the framework %s: its jobs run under %s", form->title, own->framework.name,
                     other->framework.name);
    }
    if (own->workload.gbs != other->workload.gbs) {
        same = false;
        maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_FILE_UNSAID, maq_place_of_plan(&at, "global_batch_size"),
                     "give it the other value, or keep the job file",
                     "%s has no words for global_batch_size: %d (it would be %d)", form->title, own->workload.gbs,
                     other->workload.gbs);
    }
    maq_arena_fini(&arena);
    return !good ? maq_no_memory(diag, "a framework's file") : n == 0 && same ? MAQ_OK : MAQ_BAD_INPUT;
}

static enum maq_status check(const char *text, const struct maq_loaded_job *box, const struct form *form,
                             struct maq_diag *diag)
{
    struct maq_override beside[SECTIONS];
    struct maq_loaded_job *back = NULL;
    char *around = maq_job_write_around(box);
    if (!around)
        return maq_no_memory(diag, "a framework's file");
    const size_t n = sections_of(beside, around);
    enum maq_status status = maq_job_parse(&back, form->title, maq_str_of(text), beside, n, diag);
    if (status == MAQ_OK)
        status = unsaid(box, form, back, diag);
    maq_job_free(back);
    free(around);
    return status;
}

enum maq_status maq_framework_file(char **out, const struct maq_loaded_job *box, const char *form,
                                   struct maq_diag *diag)
{
    const struct form *f = NULL;
    struct maq_buf text;
    for (size_t i = 0; i < MAQ_COUNT(forms); i++)
        f = strcmp(forms[i].name, form) == 0 ? &forms[i] : f;
    if (!f)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FILE_UNSAID, (struct maq_span){0},
                             "deepspeed and training-arguments are", "'%s' is no file that can be written", form);
    maq_buf_init(&text, LONGEST);
    struct maq_file_writer w = {.out = &text};
    maq_file_open(&w, NULL);
    f->write(&w, maq_job_get(box));
    maq_file_close(&w);
    char *written = maq_buf_take(&text);
    if (!written)
        return maq_no_memory(diag, "a framework's file");
    enum maq_status status = check(written, box, f, diag);
    if (status == MAQ_OK)
        *out = written;
    else
        free(written);
    return status;
}
