# SPDX-License-Identifier: Apache-2.0
"""A line of a rank, in one write: ranks of a job share the output, and print() writes what it is given piece by piece."""
import sys


def say(*words):
    sys.stdout.write(" ".join(str(word) for word in words) + "\n")
    sys.stdout.flush()
