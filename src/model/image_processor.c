/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_processor.c - how many patches and tokens an image is, by the rules of the image processors of `transformers` 5.24.
 *
 *   area      both sides to the nearest multiple of a token (a half to the even one); where the area is too large or too small, sides scaled by the root of the
 *             ratio and rounded down or up (image_processing_qwen2_vl.py)
 *   longest   scaled down to the longest side, rounded down; sides up to whole tokens; a mark ends each row (image_processing_pixtral.py)
 *   canvas    of all grids of up to n tiles the one that scales the image up least, else down least; of equal ones the smallest. A mark between tiles of a row, one behind
 *             each row, three around (image_processing_llama4.py, processing_llama4.py)
 *   aspect    of all grids of up to n tiles, fewest first, the one whose ratio of sides is nearest; of equal ones a later one if the image has more than half of its
 *             pixels; two marks around (image_processing_got_ocr2.py)
 */
#include <math.h>

#include "maquette/vision.h"

static int64_t max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What is known of tiles: all of them are whole. */
static struct maq_image tiles_of(const struct maq_vision *v, int64_t tiles, int64_t marks)
{
    return (struct maq_image){
        .tokens = tiles * v->tile_tokens, .marks = marks, .patches = tiles * v->tile_patches, .tiles = tiles};
}

/* One grid of tokens. */
static struct maq_image whole(const struct maq_vision *v, double columns, double rows, bool marked)
{
    int64_t tokens = (int64_t)columns * (int64_t)rows;
    return (struct maq_image){
        .tokens = tokens, .marks = marked ? (int64_t)rows : 0, .patches = tokens * v->merge * v->merge, .tiles = 1};
}

static struct maq_image by_area(const struct maq_vision *v, double width, double height)
{
    double token = (double)v->patch * v->merge, columns = nearbyint(width / token), rows = nearbyint(height / token);
    double area = columns * rows * token * token;
    if (area > (double)v->max_pixels) {
        double beta = sqrt(width * height / (double)v->max_pixels);
        columns = fmax(1, floor(width / beta / token));
        rows = fmax(1, floor(height / beta / token));
    } else if (area < (double)v->min_pixels) {
        double beta = sqrt((double)v->min_pixels / (width * height));
        columns = ceil(width * beta / token);
        rows = ceil(height * beta / token);
    }
    return whole(v, columns, rows, false);
}

static struct maq_image by_longest(const struct maq_vision *v, double width, double height)
{
    double token = (double)v->patch * v->merge, ratio = fmax(width, height) / (double)v->image_size;
    if (ratio > 1) {
        width = fmax(1, floor(width / ratio));
        height = fmax(1, floor(height / ratio));
    }
    return whole(v, ceil(width / token), ceil(height / token), true);
}

static struct maq_image by_canvas(const struct maq_vision *v, double width, double height)
{
    double best = 0, side = (double)v->image_size;
    int64_t columns = 1, rows = 1;
    for (int64_t r = 1; r <= v->most_tiles; r++)
        for (int64_t c = 1; c * r <= v->most_tiles; c++) {
            /* in 32 bits, as there: grids are equal where these are */
            float across = (float)(side * (double)c) / (float)width, down = (float)(side * (double)r) / (float)height;
            double scale = (double)(down > across ? across : down);
            bool up = scale >= 1, first = best <= 0, equal = scale >= best && scale <= best;
            bool better = up ? best < 1 || scale < best : best < 1 && scale > best;
            if (first || better || (equal && c * r < columns * rows)) {
                best = scale;
                columns = c;
                rows = r;
            }
        }
    int64_t tiles = columns * rows;
    return tiles > 1 ? tiles_of(v, tiles + 1, 3 + rows * columns) : tiles_of(v, 1, 3);
}

static struct maq_image by_aspect(const struct maq_vision *v, double width, double height)
{
    double least = (double)INFINITY, side = (double)v->image_size;
    int64_t best = 1;
    for (int64_t n = 1; n <= v->most_tiles; n++)
        for (int64_t c = 1; c <= n; c++) {
            const int64_t rows = n / c;
            const double off = fabs(width / height - (double)c / (double)rows);
            if (rows * c != n)
                continue;
            if (off < least || (off <= least && width * height > 0.5 * side * side * (double)n))
                best = n;
            least = fmin(least, off);
        }
    return tiles_of(v, best > 1 ? best + 1 : 1, 2);
}

struct maq_image maq_vision_image(const struct maq_vision *v, int64_t width, int64_t height)
{
    double w = (double)max_of(width, 1), h = (double)max_of(height, 1);
    switch (v->rule) {
    case MAQ_IMAGE_AREA:
        return by_area(v, w, h);
    case MAQ_IMAGE_LONGEST:
        return by_longest(v, w, h);
    case MAQ_IMAGE_CANVAS:
        return by_canvas(v, w, h);
    case MAQ_IMAGE_ASPECT:
        return by_aspect(v, w, h);
    case MAQ_IMAGE_FIXED:
        break;
    }
    return tiles_of(v, 1, 0);
}

struct maq_image maq_vision_image_of_tokens(const struct maq_vision *v, int64_t tokens)
{
    if (v->tile_tokens > 0)
        return tiles_of(v, max_of((tokens + v->tile_tokens / 2) / v->tile_tokens, 1), 0);
    return (struct maq_image){.tokens = tokens, .patches = tokens * v->merge * v->merge, .tiles = 1};
}
