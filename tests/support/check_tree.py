#!/usr/bin/env python3
"""Checks what the compiler does not: the order of includes and the form.

    check_tree.py ROOT        complains about each place, exits 1 if any
    check_tree.py --self-test proves that each rule can fail

Rules:
  order     a folder of libddp includes kernels and the folders above it in
            libddp/README.md; kernels includes kernels alone
  root      quoted includes are written from the root, and exist
  opening   a header opens with a `/// \\file` comment and has `#pragma once`
  length    no file is longer than MAX_LINES lines, no line than 80 columns
            (but for tables, which open with `clang-format off`)
  cuda      a public header (one that is listed) includes nothing of CUDA
  exit      the library leaves exit() and abort() to programs
  todo      a TODO names its issue: TODO(#12)
  listed    each source is in a CMakeLists.txt
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

MAX_LINES = 400
MAX_COLUMNS = 80
CODE = {".h", ".cpp", ".cu", ".cuh"}
FOLDERS = ["kernels", "libddp", "examples", "benchmarks", "tests"]
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
CUDA_HEADER = re.compile(r"^(cuda|cublas|cudnn|nccl|nvml|nvtx|thrust|cub/)")
EXIT = re.compile(
    r"(?<![\w.>:~])_?exit\(|\bstd::(?:_?exit|quick_exit|abort|terminate)\("
)
TODO = re.compile(r"\b(?:TODO|FIXME|XXX)\b(?!\(#\d+\))")
COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//.*')


def folder_order(root):
    """The folders of libddp as its README numbers them."""
    text = (root / "libddp" / "README.md").read_text()
    return re.findall(r"^\d+\. `(\w+)`", text, re.MULTILINE)


def part_of(path):
    """("libddp", "comm") of libddp/comm/work.h, ("kernels", "") of kernels."""
    parts = Path(path).parts
    inner = parts[1] if parts[0] == "libddp" and len(parts) > 2 else ""
    return parts[0], inner


def is_downhill(source, target, order):
    """Whether a file of `source` may include one of `target`."""
    if source[0] in ("kernels", "libddp") and target[0] == "kernels":
        return True
    if source[0] == "kernels":
        return False
    if source[0] == "libddp":
        if target[0] != "libddp":
            return False
        return order.index(target[1]) <= order.index(source[1])
    return True


class Checker:
    def __init__(self, root):
        self.root = Path(root).resolve()
        self.order = folder_order(self.root)
        self.listed = self.read_lists()
        self.complaints = []

    def complain(self, path, line, rule, text):
        where = path.relative_to(self.root)
        self.complaints.append(f"{where}:{line}: {rule}: {text}")

    def read_lists(self):
        """All files that a CMakeLists.txt names, with its own folder."""
        listed = set()
        # Not of build/, where other tests make and remove such files.
        lists_of_all = [
            *(each for folder in FOLDERS
              for each in (self.root / folder).glob("**/CMakeLists.txt")),
            *self.root.glob("tests/support/*.cmake"),
        ]
        for lists in lists_of_all:
            for word in re.findall(r"[\w./$\-{}]+", lists.read_text()):
                word = word.replace("${PROJECT_SOURCE_DIR}", str(self.root))
                for name in ("CMAKE_CURRENT_SOURCE_DIR", "LIBDDP_TEST_SUPPORT"):
                    word = word.replace(f"${{{name}}}", str(lists.parent))
                if Path(word).suffix in CODE:
                    listed.add((lists.parent / word).resolve())
        return listed

    def run(self):
        for folder in FOLDERS:
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in CODE and path.is_file():
                    self.check_file(path)
        return self.complaints

    def check_file(self, path):
        lines = path.read_text().splitlines()
        self.check_form(path, lines)
        self.check_listed(path)
        self.is_table = "// clang-format off" in lines[:4]
        for number, line in enumerate(lines, 1):
            self.check_line(path, number, line)

    def check_form(self, path, lines):
        if len(lines) > MAX_LINES:
            self.complain(
                path, len(lines), "length",
                f"{len(lines)} lines; a file holds one idea, "
                f"in {MAX_LINES} lines at most")
        if path.suffix not in (".h", ".cuh"):
            return
        if not lines or not lines[0].startswith("/// \\file"):
            self.complain(path, 1, "opening",
                          "a header opens with `/// \\file` and its purpose")
        # A *_body.h is included several times on purpose.
        if "#pragma once" not in lines and not path.stem.endswith("_body"):
            self.complain(path, 1, "opening", "no `#pragma once`")

    def check_listed(self, path):
        if path.suffix in (".cpp", ".cu") and path.resolve() not in self.listed:
            self.complain(path, 1, "listed",
                          "no CMakeLists.txt names this file")

    def check_line(self, path, number, line):
        is_long = len(line) > MAX_COLUMNS and "http" not in line
        if is_long and not self.is_table:
            self.complain(path, number, "length",
                          f"{len(line)} columns, {MAX_COLUMNS} at most")
        if TODO.search(line):
            self.complain(path, number, "todo", "name its issue: TODO(#12)")
        part = part_of(path.relative_to(self.root))
        if part[0] in ("kernels", "libddp"):
            code = COMMENT.sub("", line)
            if EXIT.search(code):
                self.complain(path, number, "exit",
                              "throw an error; exit is for programs")
        match = INCLUDE.match(line)
        if match:
            self.check_include(path, number, part, *match.groups())

    def check_include(self, path, number, part, quote, name):
        if path.suffix == ".h" and CUDA_HEADER.match(name):
            if path.resolve() in self.listed:
                self.complain(path, number, "cuda",
                              f"{name}: a header compiles without CUDA")
        if quote == "<":
            return
        if not (self.root / name).is_file():
            self.complain(path, number, "root",
                          f"{name} is not a path from the root")
            return
        target = part_of(name)
        if target[1] and target[1] not in self.order:
            self.complain(path, number, "order",
                          f"{target[1]} is not in libddp/README.md")
        elif not is_downhill(part, target, self.order):
            self.complain(path, number, "order",
                          f"{'/'.join(filter(None, part))} lies below "
                          f"{'/'.join(filter(None, target))}")


BAD = {
    "order": ("libddp/base/a.h", '#include "libddp/comm/b.h"\n'),
    "root": ("libddp/comm/c.h", '#include "b.h"\n'),
    "length": ("kernels/long.h", "\n" * (MAX_LINES + 1)),
    "cuda": ("kernels/d.h", "#include <cuda_runtime.h>\n"),
    "exit": ("libddp/comm/e.h", "void f() { std::exit(1); }\n"),
    "todo": ("libddp/comm/f.h", "// TODO: later\n"),
    "listed": ("libddp/comm/g.cpp", "int g;\n"),
    "opening": ("libddp/comm/h.h", None),
}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def self_test():
    """One bad file a rule: exactly that rule must complain."""
    opening = "/// \\file\n/// A header.\n#pragma once\n"
    failures = 0
    for rule, (name, text) in BAD.items():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            write(root / "libddp/README.md", "1. `base` - b\n2. `comm` - c\n")
            write(root / "libddp/comm/b.h", opening)
            if rule == "cuda":
                write(root / "kernels/CMakeLists.txt", "d.h\n")
            is_header = name.endswith(".h")
            good = opening if is_header else ""
            write(root / name, "int h;\n" if text is None else good + text)
            rules = {c.split(": ")[1] for c in Checker(root).run()}
            ok = rules == {rule}
            failures += not ok
            print(f"{rule}: {'fails as it should' if ok else rules}")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=".")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        sys.exit(1 if self_test() else 0)
    complaints = Checker(arguments.root).run()
    print("\n".join(complaints))
    print(f"{len(complaints)} complaints")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
