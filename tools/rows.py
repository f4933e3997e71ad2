# SPDX-License-Identifier: Apache-2.0
"""What the tools that read `maquette validate train --json` share."""
import json
import statistics
import subprocess

CAP = 40  # rows of a source in the totals: MAQ_VALIDATE_CAP


def capped(rows):
    """At most CAP rows of a source, evenly spaced: the choice of `validate`."""
    n = len(rows)
    return [r for k, r in enumerate(rows) if n <= CAP or k == 0 or k * CAP // n != (k - 1) * CAP // n]


def compared(document, metric):
    """{source: rows of the document that were compared}, sources by name, rows in the order of the table."""
    by_source = {}
    for row in document['rows']:
        if row['metric'] == metric and 'error' in row:
            by_source.setdefault(row['source'], []).append(row)
    return {source: by_source[source] for source in sorted(by_source)}


def validate_train(program, table):
    out = subprocess.run([program, 'validate', 'train', table, '--json'], stdout=subprocess.PIPE, check=True).stdout
    return json.loads(out)


def quantile(values, q):
    """Of absolute values, linear between neighbours: as `validate` has it."""
    values = sorted(abs(v) for v in values)
    at = q * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def stats(rows):
    """Median, mean and 90th percentile of absolute errors, and their mean with sign."""
    errors = [r['error'] for r in rows]
    if not errors:
        return {'n': 0}
    return {'n': len(errors), 'median': quantile(errors, 0.5), 'mean': statistics.mean(abs(e) for e in errors),
            'p90': quantile(errors, 0.9), 'bias': statistics.mean(errors)}
