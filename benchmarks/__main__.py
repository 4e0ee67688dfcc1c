# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a study: python -m benchmarks STUDY [options], python -m benchmarks STUDY --help

python -m benchmarks --list                              all studies, and their questions
python -m benchmarks all FOLDER                          the figures of a machine with a GPU
python -m benchmarks matcher --quick                     seconds, to see what it does
python -m benchmarks detectors --json FILE --pictures DIR
python -m benchmarks detectors --redraw FILE             its pictures from an earlier run's figures
python -m benchmarks detectors --json FILE --add OTHER...  the runs of several processes in one file
"""

import sys

from .runner.program import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
