#!/usr/bin/env python3
"""Checks that docs/ agrees with the program: keys, parameters, dimensions, and links between pages.

Usage: docs.py BIN [--write]

BIN is the folder of the built programs. --write renews the tables of parameters in docs/manifest.md from --list,
instead of comparing them."""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
failures = []


def expect(condition, text):
    if not condition:
        failures.append(text)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as stream:
        return stream.read()


def part(text, heading):
    """Returns the text between a heading and the next heading of its rank or above."""
    rank = heading.split()[0]
    found = re.search(rf"^{re.escape(heading)}(?!\w)[^\n]*\n(.*?)(?=^#{{1,{len(rank)}}} |\Z)", text, re.M | re.S)
    expect(found, f"docs/manifest.md has no heading '{heading}'")
    return found[1] if found else ""


def run(program, *arguments, text=None):
    return subprocess.run([program, *arguments], input=text, capture_output=True, text=True, check=False)


def allowed_keys(roofsweep, section):
    message = run(roofsweep, "--dry-run", "-", text=f"[{section}]\nno_such_key_at_all = 1\n").stderr
    found = re.search(r"allowed: (.*)", message)
    expect(found, f"[{section}]: no allowed keys in '{message}'")
    return found[1].split(", ") if found else []


def check_settings(roofsweep, page):
    for section in ("sweep", "measure", "peaks"):
        rows = part(page, f"## [{section}]")
        keys = re.findall(r"^\| `(\w+)` \|", rows, re.M)
        expect(
            keys == allowed_keys(roofsweep, section),
            f"docs/manifest.md, [{section}]: {keys} are not {allowed_keys(roofsweep, section)}",
        )


def code(words):
    """Returns a list with its words in backquotes. Items that are no words stay."""
    return ", ".join(f"`{word}`" if re.fullmatch(r"[a-z0-9:-]+", word) else word for word in words.split(", "))


def parameter_tables(listing):
    """Yields (workload, table of parameters and implementations) for each workload of --list."""
    for workload, block in re.findall(r"^\[(\S+) LABEL\]\n(.*?)(?=^\[|\Z)", listing, re.M | re.S):
        lines = ["| parameter | default | allowed | meaning |", "|---|---|---|---|"]
        for name, initial, allowed, meaning in re.findall(r"^  (\S+) +(\S+) +(\S.*)\n {20,}(\S.*)", block, re.M):
            if name not in ("cache", "implementation", "launch"):
                lines.append(f"| `{name}` | `{initial}` | {code(allowed)} | {meaning} |")
        names = re.search(r"^  implementation +auto +auto, (.*)", block, re.M)
        lines += ["", f"Implementations: {code(names[1])}."] if names else []
        yield workload, "\n".join(lines)


def replace_block(page, name, wanted, write):
    """Returns the page with a generated block renewed. Without `write` a difference is reported as a fault."""
    block = re.search(rf"<!-- {re.escape(name)} -->\n((?:(?!<!-- ).)*)\n<!-- end -->", page, re.S)
    expect(block, f"docs/manifest.md: no '<!-- {name} -->', an empty line and '<!-- end -->'")
    if not block:
        return page
    current = write or block[1] == f"\n{wanted}\n"
    expect(current, f"docs/manifest.md: '{name}' is out of date; tests/docs.py BIN --write renews it")
    return f"{page[: block.start(1)]}\n{wanted}\n{page[block.end(1) :]}"


def check_parameters(roofsweep, page, write):
    tables = list(parameter_tables(run(roofsweep, "--list").stdout))
    expect(len(tables) >= 10, f"--list shows few workloads: {len(tables)}")
    for workload, table in tables:
        part(page, f"### {workload}")
        page = replace_block(page, f"parameters of {workload}", table, write)
    return page


def check_dimensions(roofsweep, page):
    dimensions = set(re.findall(r"^\w+\((\w+)", run(roofsweep, "--list", "variables").stdout, re.M))
    expect(len(dimensions) >= 5, f"--list variables: {len(dimensions)} dimensions")
    for dimension in dimensions:
        expect(f"- `{dimension}` " in page, f"docs/file-format.md: no dimension {dimension}")


def check_links():
    pages = list(run("git", "-C", ROOT, "ls-files", "*.md").stdout.splitlines())
    pages = pages or ["README.md", "CHANGELOG.md", "src/README.md"]
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", read(page)):
            path = os.path.join(ROOT, os.path.dirname(page), target)
            expect("://" in target or os.path.exists(path), f"{page}: the link to {target} leads nowhere")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    roofsweep = os.path.join(sys.argv[1], "roofsweep")
    write = "--write" in sys.argv[2:]
    manifest = read("docs/manifest.md")
    check_settings(roofsweep, manifest)
    manifest = check_parameters(roofsweep, manifest, write)
    check_dimensions(roofsweep, read("docs/file-format.md"))
    if write:
        with open(os.path.join(ROOT, "docs/manifest.md"), "w", encoding="utf-8") as stream:
            stream.write(manifest)
    check_links()
    for failure in failures:
        print(failure, file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
