/* SPDX-License-Identifier: Apache-2.0 */
/* images.c - requests with images: how many tokens they are, and the vision tower that they pass. */
#include <string.h>

#include "cli/codes.h"
#include "cli/serve/options.h"

#define MOST_PIXELS 1e6
#define PATCH 14 /* pixels on a side, of CLIP, SigLIP and Qwen2-VL */

/* "896x896": pixels. */
static bool read_size(struct cli *cli, int64_t out[2], const char *text)
{
    const char *x = strchr(text, 'x'), *first = x ? cli_printf(cli, "%.*s", (int)(x - text), text) : NULL;
    double side[2];
    if (!first || !maq_quantity_read(&side[0], first, MAQ_QUANTITY_NUMBER) ||
        !maq_quantity_read(&side[1], x + 1, MAQ_QUANTITY_NUMBER))
        return false;
    for (int i = 0; i < 2; i++) {
        out[i] = side[i] >= 1 && side[i] <= MOST_PIXELS ? (int64_t)side[i] : 0;
        if (out[i] == 0)
            return false;
    }
    return true;
}

/* Where the tower is: in the model, a model of its own, nowhere. */
enum tower { NO_TOWER, OWN_TOWER, OTHER_MODEL };

static enum tower tower_of(const struct cli *cli, const struct maq_job *job)
{
    const char *model = cli->values[SERVE_ENCODER];
    if (model)
        return strcmp(model, "none") == 0 ? NO_TOWER : OTHER_MODEL;
    return job->model.vision ? OWN_TOWER : NO_TOWER;
}

/* What is said of images or of the tower, and has no effect. */
static enum maq_status check_said(struct cli *cli, const struct serve_given *g, enum tower tower)
{
    static const int of_tower[] = {SERVE_ENCODER_MERGE, SERVE_ENCODER_PATCH, SERVE_ENCODE_REPLICAS,
                                   SERVE_IMAGES,        SERVE_IMAGE_TOKENS,  SERVE_IMAGE_SIZE};
    for (size_t i = 0; tower == NO_TOWER && i < CLI_COUNT(of_tower); i++)
        if (cli->values[of_tower[i]])
            return cli_usage(cli, MAQ_CODE_CLI_VALUE,
                             "--encoder-model, the vision tower as a model of its own, where vision_config says none",
                             "%s: the deployment has no vision tower", cli_serve_table[of_tower[i]].name);
    for (size_t i = 0; tower == OWN_TOWER && i < 2; i++)
        if (cli->values[of_tower[i]])
            return cli_usage(cli, MAQ_CODE_CLI_VALUE, "without it; --encoder-model takes another tower",
                             "%s: the model's own vision tower says it", cli_serve_table[of_tower[i]].name);
    if (cli->values[SERVE_IMAGES] && (cli->values[SERVE_REQUESTS] || g->batch > 0))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "a column `images` of the file; --concurrency in place of --batch",
                         "--images-per-request is of requests that are drawn");
    if (cli->values[SERVE_ENCODE_REPLICAS] && (cli->values[SERVE_TRACE] || g->batch > 0))
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "without --trace and --batch",
                         "--encode-replicas are in front of a router");
    if (cli->values[SERVE_IMAGE_TOKENS] && cli->values[SERVE_IMAGE_SIZE])
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, NULL,
                         "--image-tokens and --image-size: one of them says how large an image is");
    if (cli->values[SERVE_ENCODER_PATCH] && !cli->values[SERVE_IMAGE_SIZE])
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--image-size 896x896",
                         "--encoder-patch has no effect: the size of no image is said");
    if (cli->values[SERVE_IMAGES] && g->options.encoder.image_tokens == 0)
        return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--image-tokens 256, or --image-size 896x896",
                         "--images-per-request: nothing says how many tokens an image is");
    return MAQ_OK;
}

/* An image of the model's own tower: of a size that is said, or the only one that there is. */
static void take_image(struct maq_encoder_options *e, const struct maq_vision *v, const int64_t size[2])
{
    if (size)
        e->image = maq_vision_image(v, size[0], size[1]);
    else if (v->rule == MAQ_IMAGE_FIXED && e->image_tokens == 0)
        e->image = maq_vision_image(v, v->image_size, v->image_size);
    else
        return;
    e->image_tokens = e->image.tokens + e->image.marks;
}

static enum maq_status read_tokens(struct maq_encoder_options *e, struct cli *cli, const struct maq_vision *own)
{
    uint32_t merge, patch, tokens;
    int64_t size[2];
    const char *text = cli->values[SERVE_IMAGE_SIZE];
    enum maq_status worst = cli_count(cli, &merge, SERVE_ENCODER_MERGE, 1, 64, 1);
    worst = cli_first_fault(worst, cli_count(cli, &patch, SERVE_ENCODER_PATCH, 1, 4096, PATCH));
    worst = cli_first_fault(worst, cli_count(cli, &tokens, SERVE_IMAGE_TOKENS, 1, 1u << 20, 0));
    e->merge = (int32_t)merge;
    e->image_tokens = tokens;
    if (text && !read_size(cli, size, text))
        return cli_first_fault(worst, cli_usage(cli, MAQ_CODE_CLI_VALUE, "--image-size 896x896",
                                                "--image-size takes two numbers of pixels, not '%.60s'", text));
    if (own)
        take_image(e, own, text ? size : NULL);
    else if (text)
        e->image_tokens =
            maq_image_side(size[0], (int32_t)patch, e->merge) * maq_image_side(size[1], (int32_t)patch, e->merge);
    return worst;
}

void cli_serve_own_tower(struct serve_given *out, const struct cli *cli, const struct maq_job *job)
{
    out->options.encoder.own = tower_of(cli, job) == OWN_TOWER;
}

enum maq_status cli_serve_images(struct serve_given *out, struct cli *cli, const struct maq_job *job)
{
    struct maq_encoder_options *e = &out->options.encoder;
    enum tower tower = tower_of(cli, job);
    enum maq_status worst = read_tokens(e, cli, tower == OWN_TOWER ? job->model.vision : NULL);
    worst = cli_first_fault(worst, cli_count(cli, &out->spec.images, SERVE_IMAGES, 1, 1u << 16, 0));
    worst = cli_first_fault(worst, cli_count(cli, &out->encode_replicas, SERVE_ENCODE_REPLICAS, 1, 65536, 0));
    e->elsewhere = out->encode_replicas > 0;
    e->own = tower == OWN_TOWER;
    out->spec.image_tokens = out->spec.images > 0 ? e->image_tokens : 0;
    worst = cli_first_fault(worst, check_said(cli, out, tower));
    if (worst == MAQ_OK && e->own && job->model.vision->assumed && cli->values[SERVE_IMAGE_SIZE])
        maq_diag_add(cli->diag, MAQ_NOTE, MAQ_CODE_CLI_VALUE, (struct maq_span){0}, "--image-tokens says it otherwise",
                     "the image processor is taken to be as published: %s", job->model.vision->assumed);
    if (worst != MAQ_OK || tower != OTHER_MODEL)
        return worst;
    worst = cli_serve_other_model(&out->tower, cli, job, SERVE_ENCODER, cli->values[SERVE_ENCODER], "1", cli->diag);
    if (worst == MAQ_OK)
        e->tower = maq_job_get(out->tower);
    return worst;
}
