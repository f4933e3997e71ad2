/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.c - predicted against measured, both logarithmic, as a picture.
 *
 * A square plot whose two axes have one range: on the diagonal a prediction is right. Bands around it are 10 and 20 %
 * wide. Every series has a colour and a mark of its own (ten colours, then the next mark), and a line in the legend
 * with its number of points and median error. Series with many points are drawn first, so that they do not cover the
 * others.
 */
#include "validate/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "validate/stat.h"

#define MAX_BYTES ((size_t)256 << 20)
#define LEFT 84.0
#define TOP 64.0
#define SIDE 640.0
#define LEGEND (LEFT + SIDE + 28)
#define WIDTH 1060
#define LEGEND_ROW 19.0
#define MAX_LEGEND 60u

/* Ten hues that differ in lightness too, after the Tableau 10 palette. */
static const char *const colours[] = {"#4e79a7", "#f28e2b", "#e15759", "#2f9c95", "#59a14f",
                                      "#b58900", "#a05195", "#d45087", "#7a5c45", "#5c6066"};

struct series {
    const char *name;
    uint32_t n;
    double median; /* of |error| */
};

struct plot {
    struct maq_buf *b;
    const struct maq_plot *of;
    double from, decades;            /* log10 of the lower end of both axes, and how many there are */
    struct series order[MAX_LEGEND]; /* the one with most points first */
    uint32_t n_series;
};

static double x_of(const struct plot *p, double value)
{
    return LEFT + (log10(value) - p->from) / p->decades * SIDE;
}

static double y_of(const struct plot *p, double value)
{
    return TOP + SIDE - (log10(value) - p->from) / p->decades * SIDE;
}

static void add_escaped(struct maq_buf *b, const char *s)
{
    struct maq_str rest = maq_str_of(s);
    while (rest.len > 0) {
        uint32_t cp;
        size_t n = maq_utf8_next(&cp, rest.ptr, rest.len);
        if (cp == '<' || cp == '>' || cp == '&' || cp == '"')
            maq_buf_addf(b, "&#%u;", cp);
        else if (cp == MAQ_UTF8_BAD || cp < 0x20 || cp == 0xFFFE || cp == 0xFFFF)
            maq_buf_addc(b, '?');
        else
            maq_buf_add(b, rest.ptr, n);
        rest = (struct maq_str){rest.ptr + n, rest.len - n};
    }
}

static bool drawn(const struct maq_plot_point *p)
{
    return p->measured > 0 && p->predicted > 0 && isfinite(p->predicted);
}

/* Both axes hold every point, with a little room. */
static bool find_range(struct plot *p)
{
    double lo = HUGE_VAL, hi = 0;
    for (uint32_t i = 0; i < p->of->n; i++) {
        const struct maq_plot_point *at = &p->of->points[i];
        if (!drawn(at))
            continue;
        lo = fmin(lo, fmin(at->measured, at->predicted));
        hi = fmax(hi, fmax(at->measured, at->predicted));
    }
    p->from = hi > 0 ? log10(lo) - 0.06 : 0;
    p->decades = hi > 0 ? log10(hi) + 0.06 - p->from : 1;
    return hi > 0;
}

static struct series describe(const struct plot *p, const char *name, double *errors)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->of->n; i++)
        if (strcmp(p->of->points[i].series, name) == 0)
            errors[n++] = p->of->points[i].error;
    return (struct series){name, n, maq__validate_stat(errors, n).median};
}

/* In order of first appearance, then an insertion sort: most points first. */
static void find_series(struct plot *p, double *errors)
{
    for (uint32_t i = 0; i < p->of->n; i++) {
        bool known = false;
        for (uint32_t k = 0; k < p->n_series && !known; k++)
            known = strcmp(p->order[k].name, p->of->points[i].series) == 0;
        if (known || p->n_series == MAX_LEGEND)
            continue;
        struct series s = describe(p, p->of->points[i].series, errors);
        uint32_t at = p->n_series++;
        for (; at > 0 &&
               (p->order[at - 1].n < s.n || (p->order[at - 1].n == s.n && strcmp(p->order[at - 1].name, s.name) > 0));
             at--)
            p->order[at] = p->order[at - 1];
        p->order[at] = s;
    }
}

/* ---- axes ---- */

static const char *tick_text(char buf[32], double value, bool bytes)
{
    static const struct {
        double unit;
        const char *text;
    } times[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}},
      sizes[] = {{1099511627776.0, "TiB"}, {1073741824.0, "GiB"}, {1048576, "MiB"}, {1, "B"}};
    for (size_t i = 0; i < 4; i++) {
        double unit = bytes ? sizes[i].unit : times[i].unit;
        if (value >= unit * (1 - 1e-9) || i == 3) {
            maq__snprintf(buf, 32, "%g %s", round(value / unit * 1000) / 1000, bytes ? sizes[i].text : times[i].text);
            break;
        }
    }
    return buf;
}

static void add_tick(struct plot *p, double value, bool label)
{
    char text[32];
    double x = x_of(p, value), y = y_of(p, value);
    if (x < LEFT - 0.5 || x > LEFT + SIDE + 0.5)
        return;
    maq_buf_addf(p->b, "<path class=\"%s\" d=\"M%.1f %.1fV%.1fM%.1f %.1fH%.1f\"/>\n", label ? "g" : "m", x, TOP,
                 TOP + SIDE, LEFT, y, LEFT + SIDE);
    if (!label)
        return;
    tick_text(text, value, p->of->bytes);
    maq_buf_addf(p->b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", x, TOP + SIDE + 18, text);
    maq_buf_addf(p->b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 8, y + 4, text);
}

/* Times: 1, 2, 5 of every decade where there are few decades, else 1 of each. Bytes: powers of two. */
static void add_axes(struct plot *p)
{
    double hi = pow(10, p->from + p->decades);
    if (p->of->bytes) {
        int from = (int)ceil(p->from / log10(2)), step = p->decades > 4 ? 4 : p->decades > 2 ? 2 : 1;
        for (int e = from; ldexp(1, e) <= hi; e++)
            add_tick(p, ldexp(1, e), e % step == 0);
        return;
    }
    for (int e = (int)floor(p->from); pow(10, e) <= hi; e++)
        for (int m = 1; m < 10; m++)
            add_tick(p, m * pow(10, e), m == 1 || (p->decades < 3 && (m == 2 || m == 5)));
}

static void add_band(struct plot *p, double share, const char *class)
{
    double shift = log10(1 + share) / p->decades * SIDE, down = -log10(1 - share) / p->decades * SIDE;
    double right = LEFT + SIDE, bottom = TOP + SIDE;
    maq_buf_addf(p->b, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fz\" clip-path=\"url(#c)\"/>\n",
                 class, LEFT, bottom - shift, right, TOP - shift, right, TOP + down, LEFT, bottom + down);
}

/* ---- points ---- */

static void add_mark(struct plot *p, uint32_t rank, double x, double y, double size)
{
    switch (rank / MAQ_COUNT(colours) % 3) {
    case 0:
        maq_buf_addf(p->b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"", x, y, size);
        break;
    case 1:
        maq_buf_addf(p->b, "<path d=\"M%.1f %.1fh%.1fv%.1fh%.1fz\"", x - size, y - size, 2 * size, 2 * size, -2 * size);
        break;
    default:
        maq_buf_addf(p->b, "<path d=\"M%.1f %.1fl%.1f %.1fl%.1f %.1fz\"", x, y - 1.2 * size, 1.3 * size, 2.2 * size,
                     -2.6 * size, 0.0);
        break;
    }
}

static void add_points(struct plot *p)
{
    for (uint32_t rank = 0; rank < p->n_series; rank++) {
        bool many = p->order[rank].n > 300;
        maq_buf_addf(p->b, "<g fill=\"%s\" fill-opacity=\"%s\">\n", colours[rank % MAQ_COUNT(colours)],
                     many ? ".35" : ".75");
        for (uint32_t i = 0; i < p->of->n; i++) {
            const struct maq_plot_point *at = &p->of->points[i];
            if (!drawn(at) || strcmp(at->series, p->order[rank].name) != 0)
                continue;
            add_mark(p, rank, x_of(p, at->measured), y_of(p, at->predicted), many ? 2.2 : 3.2);
            maq_buf_adds(p->b, "><title>");
            add_escaped(p->b, at->label);
            maq_buf_addf(p->b, " %+.1f %%</title>%s\n", 100 * at->error,
                         rank / MAQ_COUNT(colours) % 3 == 0 ? "</circle>" : "</path>");
        }
        maq_buf_adds(p->b, "</g>\n");
    }
}

static void add_legend(struct plot *p)
{
    maq_buf_addf(p->b, "<text class=\"l\" x=\"%.1f\" y=\"%.1f\">source</text>\n", LEGEND, TOP + 2);
    maq_buf_addf(p->b, "<text class=\"l\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">rows</text>\n", WIDTH - 92, TOP + 2);
    maq_buf_addf(p->b, "<text class=\"l\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">median error</text>\n", WIDTH - 14,
                 TOP + 2);
    for (uint32_t rank = 0; rank < p->n_series; rank++) {
        const struct series *s = &p->order[rank];
        double y = TOP + (rank + 1) * LEGEND_ROW + 4;
        maq_buf_addf(p->b, "<g fill=\"%s\">", colours[rank % MAQ_COUNT(colours)]);
        add_mark(p, rank, LEGEND + 5, y - 4, 4.2);
        maq_buf_addf(p->b, "/></g><text x=\"%.1f\" y=\"%.1f\">", LEGEND + 16, y);
        char name[32];
        maq__snprintf(name, sizeof name, "%.26s", s->name);
        add_escaped(p->b, name);
        maq_buf_addf(p->b,
                     "</text><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%u</text><text x=\"%d\" y=\"%.1f\" "
                     "text-anchor=\"end\">%.1f %%</text>\n",
                     WIDTH - 92, y, s->n, WIDTH - 14, y, 100 * s->median);
    }
}

/* ---- the whole ---- */

static void add_head(struct plot *p, double height)
{
    maq_buf_addf(p->b,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" viewBox=\"0 0 %d %.0f\" "
                 "font-family=\"sans-serif\" font-size=\"12\">\n",
                 WIDTH, height, WIDTH, height);
    maq_buf_adds(p->b, "<style>text{fill:#222}.t{font-size:17px;font-weight:600}.l{fill:#666;font-size:11px}.g{stroke:#"
                       "d4d4d4;fill:none}"
                       ".m{stroke:#f0f0f0;fill:none}.a{fill:#4e79a7;fill-opacity:.10}.b{fill:#4e79a7;fill-opacity:.14}."
                       "i{stroke:#333;fill:none}</style>\n");
    maq_buf_addf(p->b,
                 "<clipPath id=\"c\"><path d=\"M%.1f %.1fh%.1fv%.1fh-%.1fz\"/></clipPath><path fill=\"#fff\" d=\"M0 "
                 "0h%dv%.0fH0z\"/>\n",
                 LEFT, TOP, SIDE, SIDE, SIDE, WIDTH, height);
    maq_buf_addf(p->b,
                 "<text class=\"t\" x=\"%.1f\" y=\"28\">maquette: %s, predicted and measured</text>\n<text class=\"l\" "
                 "x=\"%.1f\" y=\"47\">",
                 LEFT, p->of->what, LEFT);
    add_escaped(p->b, p->of->about);
    maq_buf_adds(p->b, "</text>\n");
}

static void add_plot(struct plot *p)
{
    add_axes(p);
    add_band(p, 0.2, "a");
    add_band(p, 0.1, "b");
    maq_buf_addf(p->b, "<path class=\"i\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", LEFT, TOP + SIDE, LEFT + SIDE, TOP);
    add_points(p);
    maq_buf_addf(p->b, "<path class=\"i\" d=\"M%.1f %.1fh%.1fv%.1fh-%.1fz\"/>\n", LEFT, TOP, SIDE, SIDE, SIDE);
    maq_buf_addf(p->b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">measured</text>\n", LEFT + SIDE / 2,
                 TOP + SIDE + 42);
    maq_buf_addf(
        p->b, "<text x=\"20\" y=\"%.1f\" text-anchor=\"middle\" transform=\"rotate(-90 20 %.1f)\">predicted</text>\n",
        TOP + SIDE / 2, TOP + SIDE / 2);
    maq_buf_addf(p->b, "<text class=\"l\" x=\"%.1f\" y=\"%.1f\">bands: within 10 and 20 %%</text>\n", LEFT + 10,
                 TOP + 18);
    maq_buf_addf(p->b, "<text class=\"l\" x=\"%.1f\" y=\"%.1f\">above the line: predicted too %s</text>\n", LEFT + 10,
                 TOP + 33, p->of->bytes ? "large" : "long");
    add_legend(p);
}

char *maq__plot_svg(const struct maq_plot *of)
{
    struct maq_buf b;
    struct plot p = {.b = &b, .of = of};
    double *errors = maq__calloc(((size_t)of->n + 1) * sizeof *errors);
    if (!errors)
        return NULL;
    maq_buf_init(&b, MAX_BYTES);
    bool any = find_range(&p);
    find_series(&p, errors);
    free(errors);
    double legend = TOP + (p.n_series + 1) * LEGEND_ROW + 14, square = TOP + SIDE + 58;
    add_head(&p, legend > square ? legend : square);
    if (any)
        add_plot(&p);
    else
        maq_buf_addf(&b, "<text x=\"%.1f\" y=\"%.1f\">nothing to compare</text>\n", LEFT, TOP + 40);
    maq_buf_adds(&b, "</svg>\n");
    return maq_buf_take(&b);
}
