#!/usr/bin/env python3
"""Starts the GPT program by some launcher and judges its last line.

    check_launch.py --world 4 --reference FILE [--write] -- COMMAND...

The last line of output must be the program's JSON summary with the expected
world, and its losses must be those of the reference, which a run without any
launcher wrote (--write). All runs share one global batch, so that the world
makes no difference to the losses.
"""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

# Sums over ranks are taken in another order: a few units in the last place
# of fp32, after three steps far below this.
TOLERANCE = 1e-4
LOSSES = ["final_train_loss", "final_val_loss"]
# A launcher or MPI that has something to say about the run.
SUSPICIOUS = ["WARNING", "warning:", "singleton", "Sanitizer"]


def run(command):
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    print(result.stdout)
    if result.returncode != 0:
        sys.exit(f"exit status {result.returncode} of {' '.join(command)}")
    return result.stdout


def summary_of(output):
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if len(lines) != 1:
        sys.exit(f"expected one JSON line, found {len(lines)}")
    return json.loads(lines[0])


def complaints(summary, world, reference, output):
    if summary["world"] != world:
        yield f"world is {summary['world']}, not {world}"
    for name in LOSSES:
        value = summary[name]
        if not math.isfinite(value):
            yield f"{name} is {value}"
        elif reference and abs(value - reference[name]) > TOLERANCE:
            yield f"{name} is {value}, alone it was {reference[name]}"
    for word in SUSPICIOUS:
        if word in output:
            yield f"the output says {word!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()

    output = run(arguments.command)
    summary = summary_of(output)
    reference = None
    if not arguments.write:
        reference = json.loads(arguments.reference.read_text())
    found = list(complaints(summary, arguments.world, reference, output))
    if found:
        sys.exit("\n".join(found))
    if arguments.write:
        arguments.reference.write_text(json.dumps(summary))


if __name__ == "__main__":
    main()
