/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synthetic.c - a cluster in one line.
 *
 *   cluster  = group { "+" group }
 *   group    = DEVICE [ ":" COUNT ] [ "x" COUNT ] { "," property }
 *   property = "rail" [ RATE ] [ FABRIC ]             one port per device, device i of every node on rail i
 *            | "nics" COUNT [ "x" RATE ] [ FABRIC ]   ports of a node
 *            | "domain" COUNT [ RATE ]                devices in a scale-up domain, their link rate per direction
 *            | "cpu" CORE [ CLOCK ]                   the host's: "zen3", "broadwell 2.7 GHz"
 *            | "nvme" RATE [ RATE ]                   what the NVMe devices of a node read and write; one rate: both
 *            | "topology" FILE                        what a node says of itself: nvidia-smi topo -m, NCCL's file
 *            | "leaf" COUNT                           nodes under one leaf switch or in one rail group
 *            | "oversubscription" NUMBER
 *            | FABRIC                                 a catalogue name ("efa-v2") or, beside a rate, a kind ("roce")
 *   RATE     = a number with a unit of a data rate; as network people say it, 400G is 400 Gb/s
 *
 * `leaf` and `oversubscription` belong to the whole cluster and may stand in any group, once. Blanks are free;
 * case does not matter. After a fault the scanner goes on at the next ',' or '+', so that all faults of a line
 * are reported at once, each with its own place: offsets into the text are offsets into the source wherever the
 * scalar was written plainly or in quotes without escapes.
 */
#include "base/text.h"
#include "base/units.h"
#include "cluster/cluster_internal.h"
#include "cluster/host_cpu.h"
#include "cluster/topology.h"
#include "spec/catalogue.h"

#define MAX_TEXT 65536
#define WORDS "rail, nics, domain, cpu, nvme, topology, leaf, oversubscription"
static const char *const property_words[] = {"rail", "nics",     "domain", "cpu",
                                             "nvme", "topology", "leaf",   "oversubscription"};

struct scanner {
    struct maq_str text;
    size_t pos;
    struct maq_span at; /* of the scalar */
    uint32_t shift;     /* from an offset in text to one in the source, after at.off */
    bool exact;         /* offsets can be mapped */
    struct maq_arena *arena;
    struct maq_diag *diag;
    bool bad;
    struct maq_cluster *cluster; /* leaf and oversubscription are written here */
    bool leaf_given, oversubscription_given;
};

/* The group being read, and which of its properties were given. */
struct group_reader {
    struct maq__group_spec spec;
    bool domain_given, ports_given, fabric_given, cpu_given;
    struct maq_str topology; /* a file; empty = not given */
    struct maq_span topology_at;
};

/* --- characters and tokens ----------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char peek(const struct scanner *s)
{
    return s->pos < s->text.len ? s->text.ptr[s->pos] : '\0';
}

static void skip_blanks(struct scanner *s)
{
    while (s->pos < s->text.len && is_blank(s->text.ptr[s->pos]))
        s->pos++;
}

static bool at_end_of_property(struct scanner *s)
{
    skip_blanks(s);
    return s->pos >= s->text.len || peek(s) == ',' || peek(s) == '+';
}

static struct maq_span span_of(const struct scanner *s, struct maq_str part)
{
    if (!s->exact)
        return s->at;
    uint32_t off = s->at.off + s->shift + (uint32_t)(part.ptr - s->text.ptr);
    return (struct maq_span){s->at.file, off, (uint32_t)part.len};
}

/* A run of characters up to a blank, ',' or '+'; what a user sees as one word. */
static struct maq_str take_word(struct scanner *s)
{
    skip_blanks(s);
    size_t from = s->pos;
    while (s->pos < s->text.len && !is_blank(peek(s)) && peek(s) != ',' && peek(s) != '+')
        s->pos++;
    return (struct maq_str){s->text.ptr + from, s->pos - from};
}

static struct maq_str peek_word(struct scanner *s)
{
    size_t pos = s->pos;
    struct maq_str word = take_word(s);
    s->pos = pos;
    return word;
}

/* A name: letters, digits, '-', '_' and '.', starting with a letter or digit. */
static struct maq_str take_name(struct scanner *s)
{
    skip_blanks(s);
    size_t from = s->pos;
    while (s->pos < s->text.len) {
        char c = peek(s);
        bool inner = s->pos > from && (c == '-' || c == '_' || c == '.');
        if (!is_letter(c) && !is_digit(c) && !inner)
            break;
        s->pos++;
    }
    return (struct maq_str){s->text.ptr + from, s->pos - from};
}

static bool fail(struct scanner *s, uint16_t code, struct maq_str where, const char *hint, const char *text)
{
    maq_diag_add(s->diag, MAQ_ERROR, code, span_of(s, where), hint, "%s", text);
    s->bad = true;
    return false;
}

/* "expected WHAT, not 'xyz'" at the next word; the hint may be NULL. */
static bool expected_but(struct scanner *s, const char *what, const char *hint)
{
    struct maq_str word = peek_word(s);
    skip_blanks(s);
    if (word.len == 0 && s->pos < s->text.len)
        word = (struct maq_str){s->text.ptr + s->pos, 1};
    struct maq_span at = span_of(s, word);
    char show[MAQ_SHOW_SIZE];
    s->bad = true;
    if (word.len == 0) {
        at = span_of(s, (struct maq_str){s->text.ptr + s->text.len, 0});
        maq_diag_add(s->diag, MAQ_ERROR, MAQ_CODE_CLUSTER_SYNTAX, at, hint, "expected %s, not the end", what);
    } else {
        maq_diag_add(s->diag, MAQ_ERROR, MAQ_CODE_CLUSTER_SYNTAX, at, hint, "expected %s, not '%s'", what,
                     maq_str_show(show, word));
    }
    return false;
}

static bool expected(struct scanner *s, const char *what)
{
    return expected_but(s, what, NULL);
}

/* After a fault: on to the next ',' or '+'. */
static void recover(struct scanner *s)
{
    while (s->pos < s->text.len && peek(s) != ',' && peek(s) != '+')
        s->pos++;
}

/* --- numbers and rates --------------------------------------------------------------------------------------- */

/* `what` is the message's noun: "number of nodes". */
static bool take_count(struct scanner *s, int32_t *out, const char *what, int max)
{
    char words[64];
    skip_blanks(s);
    size_t from = s->pos;
    if (peek(s) == '-')
        s->pos++;
    while (is_digit(peek(s)) || peek(s) == '_' || peek(s) == '.')
        s->pos++;
    struct maq_str digits = {s->text.ptr + from, s->pos - from};
    if (digits.len == 0 || !(is_digit(digits.ptr[digits.len - 1]))) {
        s->pos = from;
        maq__snprintf(words, sizeof words, "a %s", what);
        return expected(s, words);
    }
    int64_t value;
    if (!maq_str_to_i64(&value, digits) || value < 1 || value > max) {
        maq__snprintf(words, sizeof words, "the %s", what);
        maq__cluster_range_error(span_of(s, digits), words, 1, max, digits, s->diag);
        s->bad = true;
        return false;
    }
    *out = (int32_t)value;
    return true;
}

static bool is_fabric(struct maq_str word)
{
    return maq_catalogue_find("fabrics", word) || maq__fabric_is_kind(word);
}

/* "400G" and "1.6T", short for Gb/s and Tb/s. */
static bool short_rate(double *out, struct maq_str text)
{
    if (text.len < 2)
        return false;
    char unit = text.ptr[text.len - 1];
    bool giga = unit == 'G' || unit == 'g', tera = unit == 'T' || unit == 't';
    struct maq_str number = maq_str_trim((struct maq_str){text.ptr, text.len - 1});
    double value;
    if ((!giga && !tera) || !maq_str_to_double(&value, number))
        return false;
    *out = value * (giga ? 1.25e8 : 1.25e11);
    return true;
}

static bool looks_like_number(struct maq_str s)
{
    bool sign = s.len > 1 && (s.ptr[0] == '-' || s.ptr[0] == '.');
    return s.len > 0 && is_digit(s.ptr[sign ? 1 : 0]);
}

/* The unit may stand apart ("400 Gb/s"): then the next word belongs to the number, unless it names a fabric. */
static struct maq_str take_quantity_text(struct scanner *s)
{
    struct maq_str text = take_word(s);
    double number;
    if (!maq_str_to_double(&number, text))
        return text;
    struct maq_str unit = peek_word(s);
    if (unit.len == 0 || !is_letter(unit.ptr[0]) || is_fabric(unit))
        return text;
    take_word(s);
    return (struct maq_str){text.ptr, (size_t)(unit.ptr + unit.len - text.ptr)};
}

static bool take_rate(struct scanner *s, double *out, struct maq_span *at)
{
    struct maq_str text = take_quantity_text(s);
    static const char hint[] = "write 400G for 400 Gb/s, or the unit in full: 400Gb/s, 50GB/s";
    const char *why = "";
    char show[MAQ_SHOW_SIZE];
    double rate;
    *at = span_of(s, text);
    if (!short_rate(&rate, text) && !maq_quantity_parse(&rate, text, MAQ_DIM_RATE, &why)) {
        maq_diag_add(s->diag, MAQ_ERROR, MAQ_CODE_CLUSTER_RATE, *at, hint, "'%s' is not a data rate: %s",
                     maq_str_show(show, text), why);
        s->bad = true;
        return false;
    }
    if (!(rate >= MAQ_MIN_LINK_BPS && rate <= MAQ_MAX_LINK_BPS)) {
        maq_diag_add(s->diag, MAQ_ERROR, MAQ_CODE_CLUSTER_RATE, *at, hint,
                     "a link rate must be 1 Gb/s to 100 Tb/s, not %s", maq_str_show(show, text));
        s->bad = true;
        return false;
    }
    *out = rate;
    return true;
}

/* --- properties ---------------------------------------------------------------------------------------------- */

static bool twice(struct scanner *s, struct maq_str word, const char *what)
{
    maq_diag_add(s->diag, MAQ_ERROR, MAQ_CODE_CLUSTER_TWICE, span_of(s, word), NULL, "%s given twice", what);
    s->bad = true;
    return false;
}

/* A rate, the scale-up link's own name, or a network's other name in place of a property. */
static const char *property_meant(const struct scanner *s, struct maq_str word)
{
    static const char *const links[] = {"nvlink", "nvswitch", "nvl", "xgmi", "infinity-fabric"};
    static const struct {
        const char *word, *kind;
    } kinds[] = {{"infiniband", "ib"}, {"hdr", "ib"},         {"ndr", "ib"},       {"xdr", "ib"},
                 {"edr", "ib"},        {"rocev2", "roce"},    {"roce-v2", "roce"}, {"ethernet", "roce"},
                 {"eth", "roce"},      {"spectrum-x", "roce"}};
    double rate;
    const char *why;
    if (short_rate(&rate, word) || maq_quantity_parse(&rate, word, MAQ_DIM_RATE, &why))
        return maq_arena_printf(s->arena, "did you mean 'rail %.*s', one port per device, or 'nics 4 x %.*s'?",
                                (int)word.len, word.ptr, (int)word.len, word.ptr);
    for (size_t i = 0; i < MAQ_COUNT(links); i++)
        if (maq_str_ieq(word, links[i]))
            return "the scale-up link is the device's own; 'domain 8 450GB/s' says another: devices, and bytes each "
                   "way";
    for (size_t i = 0; i < MAQ_COUNT(kinds); i++)
        if (maq_str_ieq(word, kinds[i].word))
            return maq_arena_printf(s->arena, "did you mean 'rail 400G %s'?", kinds[i].kind);
    return NULL;
}

static bool unknown_word(struct scanner *s, struct maq_str word)
{
    uint32_t limit = word.len < 4 ? 2 : 3, best = limit;
    const char *near = NULL;
    for (size_t i = 0; i < MAQ_COUNT(property_words); i++) {
        uint32_t d = maq_str_distance(word, maq_str_of(property_words[i]), limit);
        if (d < best) {
            best = d;
            near = property_words[i];
        }
    }
    if (!near)
        near = maq_catalogue_nearest("fabrics", word);
    const char *meant = property_meant(s, word);
    const char *hint =
        meant ? meant
              : maq_arena_printf(s->arena, "%s%s%swords: " WORDS ", or a fabric: %s", near ? "did you mean '" : "",
                                 near ? near : "", near ? "'? " : "", maq__catalogue_names("fabrics", s->arena));
    char show[MAQ_SHOW_SIZE];
    maq_diag_add(s->diag, MAQ_ERROR, MAQ_CODE_CLUSTER_WORD, span_of(s, word), hint, "unknown word '%s'",
                 maq_str_show(show, word));
    s->bad = true;
    return false;
}

static bool take_fabric(struct scanner *s, struct group_reader *g)
{
    struct maq_str word = take_word(s);
    if (!is_fabric(word))
        return unknown_word(s, word);
    if (g->fabric_given)
        return twice(s, word, "the fabric of a group is");
    g->fabric_given = true;
    g->spec.fabric_name = word;
    g->spec.fabric_at = span_of(s, word);
    return true;
}

static bool read_rail(struct scanner *s, struct group_reader *g, struct maq_str word)
{
    if (g->ports_given)
        return twice(s, word, "the ports of a group (`rail`, `nics`) are");
    g->ports_given = true;
    g->spec.rail = true;
    if (!at_end_of_property(s) && looks_like_number(peek_word(s)) && !take_rate(s, &g->spec.nic_bps, &g->spec.rate_at))
        return false;
    return at_end_of_property(s) || take_fabric(s, g);
}

static bool take_times(struct scanner *s)
{
    skip_blanks(s);
    char c = peek(s), after = s->pos + 1 < s->text.len ? s->text.ptr[s->pos + 1] : '\0';
    if ((c != 'x' && c != 'X' && c != '*') || is_letter(after))
        return false;
    s->pos++;
    return true;
}

static bool read_nics(struct scanner *s, struct group_reader *g, struct maq_str word)
{
    if (g->ports_given)
        return twice(s, word, "the ports of a group (`rail`, `nics`) are");
    g->ports_given = true;
    if (!take_count(s, &g->spec.nics, "number of network ports", MAQ_MAX_NICS))
        return false;
    bool times = take_times(s);
    if (!at_end_of_property(s) && looks_like_number(peek_word(s))) {
        if (!times)
            return expected(s, "'x' and a rate, or a fabric");
        if (!take_rate(s, &g->spec.nic_bps, &g->spec.rate_at))
            return false;
    } else if (times && at_end_of_property(s)) {
        return expected(s, "a rate or a fabric");
    }
    return at_end_of_property(s) || take_fabric(s, g);
}

static bool read_domain(struct scanner *s, struct group_reader *g, struct maq_str word)
{
    if (g->domain_given)
        return twice(s, word, "the domain of a group is");
    g->domain_given = true;
    skip_blanks(s);
    size_t from = s->pos;
    if (!take_count(s, &g->spec.domain, "number of devices in a domain", MAQ_MAX_DOMAIN))
        return false;
    g->spec.domain_at = span_of(s, (struct maq_str){s->text.ptr + from, s->pos - from});
    struct maq_span at;
    return at_end_of_property(s) || take_rate(s, &g->spec.domain_bps, &at);
}

static bool take_core(struct scanner *s, int *out)
{
    struct maq_str name = take_name(s);
    char show[MAQ_SHOW_SIZE];
    if (name.len == 0)
        return expected(s, "the core of a CPU, for example zen3");
    for (int cpu = 0; cpu < MAQ_HOST_CPU_COUNT; cpu++)
        if (maq_str_ieq(name, maq__host_cpu_names[cpu])) {
            *out = cpu;
            return true;
        }
    maq_diag_add(s->diag, MAQ_ERROR, MAQ_CODE_CLUSTER_WORD, span_of(s, name),
                 maq_arena_printf(s->arena, "one of: %s", maq__host_cpu_list(s->arena)), "unknown core '%s'",
                 maq_str_show(show, name));
    s->bad = true;
    return false;
}

static bool take_clock(struct scanner *s, double *out)
{
    struct maq_str text = take_quantity_text(s);
    const char *why = "";
    char show[MAQ_SHOW_SIZE];
    if (maq_quantity_parse(out, text, MAQ_DIM_FREQ, &why) && *out >= MAQ_MIN_CLOCK_HZ && *out <= MAQ_MAX_CLOCK_HZ)
        return true;
    maq_diag_add(s->diag, MAQ_ERROR, MAQ_CODE_CLUSTER_RANGE, span_of(s, text), "for example 2.7 GHz",
                 "'%s' is not a clock of a CPU%s%s", maq_str_show(show, text), *why ? ": " : "", why);
    s->bad = true;
    return false;
}

static bool read_cpu(struct scanner *s, struct group_reader *g, struct maq_str word)
{
    if (g->cpu_given)
        return twice(s, word, "the CPU of a group is");
    g->cpu_given = true;
    return take_core(s, &g->spec.host_cpu) && (at_end_of_property(s) || take_clock(s, &g->spec.host_clock_hz));
}

/* One rate says both directions. */
static bool read_nvme(struct scanner *s, struct group_reader *g, struct maq_str word)
{
    struct maq_span at;
    if (g->spec.nvme_read_bps > 0)
        return twice(s, word, "the NVMe of a group is");
    if (at_end_of_property(s))
        return expected(s, "what the NVMe of a node reads, for example 12GB/s");
    if (!take_rate(s, &g->spec.nvme_read_bps, &at))
        return false;
    g->spec.nvme_write_bps = g->spec.nvme_read_bps;
    return at_end_of_property(s) || take_rate(s, &g->spec.nvme_write_bps, &at);
}

static bool read_topology(struct scanner *s, struct group_reader *g, struct maq_str word)
{
    if (g->topology.len > 0)
        return twice(s, word, "the topology of a group is");
    if (at_end_of_property(s))
        return expected(s, "a file, of nvidia-smi topo -m or of NCCL_TOPO_DUMP_FILE");
    g->topology = take_word(s);
    g->topology_at = span_of(s, g->topology);
    return true;
}

static bool read_leaf(struct scanner *s, struct maq_str word)
{
    if (s->leaf_given)
        return twice(s, word, "the leaf size of the cluster is");
    s->leaf_given = true;
    return take_count(s, &s->cluster->nodes_per_switch, "number of nodes under a leaf switch", MAQ_MAX_NODES);
}

static bool read_oversubscription(struct scanner *s, struct maq_str word)
{
    if (s->oversubscription_given)
        return twice(s, word, "the oversubscription of the cluster is");
    s->oversubscription_given = true;
    if (at_end_of_property(s))
        return expected(s, "a factor");
    struct maq_str text = take_word(s);
    double value;
    if (!maq_str_to_double(&value, text))
        return fail(s, MAQ_CODE_CLUSTER_SYNTAX, text, "uplinks carry 1/factor of the downlinks: `oversubscription 2`",
                    "the oversubscription must be a number");
    if (!(value >= 1 && value <= MAQ_MAX_OVERSUBSCRIPTION)) {
        maq__cluster_range_error(span_of(s, text), "the oversubscription", 1, MAQ_MAX_OVERSUBSCRIPTION, text, s->diag);
        s->bad = true;
        return false;
    }
    s->cluster->oversubscription = value;
    return true;
}

static bool read_property(struct scanner *s, struct group_reader *g)
{
    size_t from = s->pos;
    struct maq_str word = take_word(s);
    if (word.len == 0)
        return expected(s, "a property (" WORDS ", or a fabric)");
    if (maq_str_ieq(word, "rail"))
        return read_rail(s, g, word);
    if (maq_str_ieq(word, "nics"))
        return read_nics(s, g, word);
    if (maq_str_ieq(word, "domain"))
        return read_domain(s, g, word);
    if (maq_str_ieq(word, "cpu"))
        return read_cpu(s, g, word);
    if (maq_str_ieq(word, "nvme"))
        return read_nvme(s, g, word);
    if (maq_str_ieq(word, "topology"))
        return read_topology(s, g, word);
    if (maq_str_ieq(word, "leaf"))
        return read_leaf(s, word);
    if (maq_str_ieq(word, "oversubscription"))
        return read_oversubscription(s, word);
    s->pos = from;
    return take_fabric(s, g);
}

/* --- groups -------------------------------------------------------------------------------------------------- */

static bool is_property(struct maq_str word)
{
    for (size_t i = 0; i < MAQ_COUNT(property_words); i++)
        if (maq_str_ieq(word, property_words[i]))
            return true;
    return is_fabric(word);
}

/* What the head of a group was meant to be: a line in other words, a device of two words, a rate without its property. */
static const char *head_meant(struct scanner *s, const struct group_reader *g, struct maq_str line)
{
    const char *meant = maq__cluster_hint(line, s->arena);
    struct maq_str rest = peek_word(s);
    if (meant || rest.len == 0)
        return meant;
    if (looks_like_number(rest) && (meant = property_meant(s, rest)) != NULL)
        return meant;
    if (is_property(rest) || rest.ptr[0] == ';')
        return "properties stand behind commas: 'h100-sxm:8 x 8, rail 400G'";
    size_t n = 0;
    while (n < line.len && line.ptr[n] != ':' && line.ptr[n] != ',' && line.ptr[n] != '+')
        n++;
    bool counted = g->spec.per_node > 0 || g->spec.nodes > 0;
    const char *near = counted ? NULL : maq_catalogue_nearest("devices", maq_str_trim((struct maq_str){line.ptr, n}));
    return near ? maq_arena_printf(s->arena, "did you mean '%s'?", near)
                : "the form is DEVICE:PER_NODE x NODES, PROPERTY, ...: 'h100-sxm:8 x 4, rail 400G'";
}

static bool read_head(struct scanner *s, struct group_reader *g)
{
    skip_blanks(s);
    struct maq_str line = {s->text.ptr + s->pos, s->text.len - s->pos}, name = take_name(s);
    const char *meant = maq__cluster_hint(line, s->arena);
    if (name.len == 0)
        return expected_but(s, "a device", meant);
    if (meant && !maq_catalogue_find("devices", name)) {
        char show[MAQ_SHOW_SIZE];
        maq_diag_add(s->diag, MAQ_ERROR, MAQ_CODE_UNKNOWN_DEVICE, span_of(s, name), meant, "unknown device '%s'",
                     maq_str_show(show, name));
        s->bad = true;
        return false;
    }
    g->spec.at = g->spec.domain_at = g->spec.fabric_at = g->spec.rate_at = span_of(s, name);
    bool known = maq__device_by_name(&g->spec.device, name, g->spec.at, s->arena, s->diag) == MAQ_OK;
    if (!known)
        s->bad = true;
    skip_blanks(s);
    if (peek(s) == ':') {
        s->pos++;
        if (!take_count(s, &g->spec.per_node, "number of devices per node", MAQ_MAX_PER_NODE))
            return false;
    }
    if (take_times(s) && !take_count(s, &g->spec.nodes, "number of nodes", MAQ_MAX_NODES))
        return false;
    if (!at_end_of_property(s))
        return expected_but(s,
                            g->spec.nodes > 0      ? "',' or '+'"
                            : g->spec.per_node > 0 ? "'x' and a number of nodes, or ','"
                                                   : "':' and devices per node, 'x' and a number of nodes, or ','",
                            head_meant(s, g, line));
    return known;
}

/* "roce 100G": the rate stands before the fabric, behind the word that says whose it is. */
static const char *rate_meant(struct scanner *s, const struct group_reader *g)
{
    struct maq_str rate = peek_word(s), fabric = g->spec.fabric_name;
    if (!looks_like_number(rate) || fabric.len == 0)
        return NULL;
    return maq_arena_printf(s->arena, "did you mean 'rail %.*s %.*s'? 'nics 4 x %.*s %.*s' is four ports of a node",
                            (int)rate.len, rate.ptr, (int)fabric.len, fabric.ptr, (int)rate.len, rate.ptr,
                            (int)fabric.len, fabric.ptr);
}

static enum maq_status read_group(struct scanner *s, struct maq_node_group *out)
{
    struct group_reader g = {.spec = {.multicast = -1, .contention = -1.0}};
    bool bad_before = s->bad;
    s->bad = false;
    bool head = read_head(s, &g);
    if (!head)
        recover(s);
    while (peek(s) == ',') {
        s->pos++;
        if (!read_property(s, &g)) {
            recover(s);
        } else if (!at_end_of_property(s)) {
            expected_but(s, "',' or '+'", rate_meant(s, &g));
            recover(s);
        }
    }
    bool bad = s->bad;
    s->bad = bad || bad_before;
    enum maq_status status = bad ? MAQ_BAD_INPUT : MAQ_OK;
    if (status == MAQ_OK && g.topology.len > 0)
        status = maq__group_topology(&g.spec, g.topology, g.topology_at, s->arena, s->diag);
    if (status == MAQ_OK)
        status = maq__group_finish(out, &g.spec, s->arena, s->diag);
    if (status == MAQ_OK)
        maq__warn_of_unusual_nodes(out, &g.spec, s->arena, s->diag);
    return status;
}

static uint32_t count_groups(struct maq_str text)
{
    uint32_t n = 1;
    for (size_t i = 0; i < text.len; i++)
        n += text.ptr[i] == '+';
    return n;
}

/* Where text and source agree byte for byte: plain scalars, and quoted ones without escapes or folding. */
static void map_offsets(struct scanner *s, const struct maq_node *node)
{
    s->at = node->at;
    s->shift = node->quoted ? 1 : 0;
    s->exact = node->at.len == node->text.len + 2 * s->shift;
}

enum maq_status maq__cluster_synthetic(struct maq_cluster *out, const struct maq_node *node, struct maq_arena *arena,
                                       struct maq_diag *diag)
{
    struct maq_cluster c = {.oversubscription = 1};
    struct scanner s = {.text = node->text, .arena = arena, .diag = diag, .cluster = &c};
    map_offsets(&s, node);
    if (node->text.len > MAX_TEXT)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_FORM, node->at, "describe it in a YAML file",
                             "a cluster in one line may have at most %d bytes", MAX_TEXT);
    uint32_t n = count_groups(node->text);
    if (n > MAQ_MAX_GROUPS)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_SIZE, node->at, NULL,
                             "a cluster may have at most %d groups", MAQ_MAX_GROUPS);
    c.groups = MAQ_ARENA_NEW(arena, struct maq_node_group, n);
    if (!c.groups)
        return maq_no_memory(diag, NULL);
    enum maq_status status = MAQ_OK;
    for (bool more = true; more;) {
        enum maq_status one = read_group(&s, &c.groups[c.n_groups++]);
        if (status == MAQ_OK)
            status = one;
        more = peek(&s) == '+';
        s.pos += more;
    }
    MAQ_TRY(status);
    if (s.bad)
        return MAQ_BAD_INPUT;
    MAQ_TRY(maq__cluster_finish(&c, node->at, arena, diag));
    *out = c;
    return MAQ_OK;
}
