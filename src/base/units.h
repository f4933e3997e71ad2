/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units.h - quantities with their unit.
 *
 * Inside, everything is SI base units in `double` (seconds, bytes, bytes per second, FLOP/s, hertz, watts). A
 * document writes a number with its unit; a bare number where a dimension is expected is refused, because nobody can
 * know whether 400 means Gb/s or GB/s. Bits (b) and bytes (B), SI (G) and IEC (Gi) prefixes are different things.
 *
 *   MAQ_DIM_BYTES     B KB MB GB TB PB KiB MiB GiB TiB PiB
 *   MAQ_DIM_RATE      <bytes>/s, and bits per second: b/s Kb/s Mb/s Gb/s Tb/s (also bps Kbps Mbps Gbps Tbps)
 *   MAQ_DIM_TIME      ns us ms s min h d
 *   MAQ_DIM_FLOPS     FLOP/s or FLOPS with K M G T P E prefix ("989.4 TFLOP/s", "989.4TFLOPS")
 *   MAQ_DIM_FREQ      Hz kHz MHz GHz
 *   MAQ_DIM_POWER     W kW MW
 *   MAQ_DIM_COUNT     a count with an optional K/M/B/T decimal suffix ("15T" tokens), no unit
 *   MAQ_DIM_MONEY     USD/h ("2.49 USD/h")
 */
#ifndef MAQ_BASE_UNITS_H
#define MAQ_BASE_UNITS_H

#include "maquette/diag.h"

#define MAQ_GIB (1024.0 * 1024.0 * 1024.0) /* bytes */

enum maq_dim {
    MAQ_DIM_NONE, /* a plain number: any unit is an error */
    MAQ_DIM_BYTES,
    MAQ_DIM_RATE,
    MAQ_DIM_TIME,
    MAQ_DIM_FLOPS,
    MAQ_DIM_FREQ,
    MAQ_DIM_POWER,
    MAQ_DIM_COUNT,
    MAQ_DIM_MONEY,
    MAQ_DIM_TOTAL
};

/* "bytes", "a data rate", ... and the accepted units as text for hints. */
const char *maq_dim_name(enum maq_dim dim);
const char *maq_dim_units(enum maq_dim dim);

/* Parses number + optional blank + unit. On failure *why is a static sentence fragment ("no unit", "unknown
 * unit"). */
bool maq_quantity_parse(double *out, struct maq_str text, enum maq_dim dim, const char **why);

/* The shortest text that parses back to exactly `value` (finite, in base units): "80 GB", "80 GiB", "3.35 TB/s". For dumps; the
 * rounded forms below are for people. Returns buf. */
const char *maq_quantity_format(char buf[64], double value, enum maq_dim dim);

/* Human forms into buf (returned): "96.4 GiB", "12.3 ms", "400 Gb/s", "989 TFLOP/s"; 3-4 significant digits. */
const char *maq_format_bytes(char buf[32], double bytes); /* IEC */
const char *maq_format_time(char buf[32], double seconds);
const char *maq_format_rate(char buf[32], double bytes_per_s); /* GB/s */
const char *maq_format_flops(char buf[32], double flop_per_s);
const char *maq_format_count(char buf[32], double count); /* 405.9 B, 16,384 */

#endif
