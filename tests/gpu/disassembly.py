"""Compares the machine code of kernels with a table, because a new compiler might change their work.

usage: disassembly.py TABLE PROGRAM (needs cuobjdump, nvdisasm and c++filt)

A loop is the code from the target of a backward branch to that branch. A kernel's hot loop is the loop with most of the
table's instructions, and the shortest of equal loops.
"""

import collections
import fnmatch
import pathlib
import re
import subprocess
import sys

Row = collections.namedtuple("Row", "kernel architectures registers expected others")
Code = collections.namedtuple("Code", "resources instructions")


def output(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def table_read(path):
    rows = []
    for line in pathlib.Path(path).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            kernel, architectures, registers, expected, others = map(str.strip, line.split("|"))
            counts = [item.split("=") for item in expected.split()]
            rows.append(
                Row(
                    kernel,
                    architectures.split(),
                    int(registers),
                    [(name, int(count)) for name, count in counts],
                    int(others) if counts else 0,
                )
            )
    return rows


def short_name(demangled):
    """Returns the name of a kernel without return type and parameters."""
    depth = 0
    for i, letter in enumerate(demangled):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0:
            demangled = demangled[:i]
            break
    return demangled.removeprefix("void ").replace("> >", ">>")


def code_read(program):
    """Returns {(architecture, short name): Code} of all kernels of the program."""
    resources, instructions = {}, collections.defaultdict(list)
    architecture = function = None
    for line in output("cuobjdump", "-res-usage", program).splitlines():
        if match := re.match(r"arch = (\S+)", line):
            architecture = match[1]
        elif match := re.match(r"\s*Function (\S+):", line):
            function = match[1]
        elif "REG:" in line:
            resources[architecture, function] = {name: int(value) for name, value in re.findall(r"(\w+):(\d+)", line)}
    for line in output("cuobjdump", "-sass", program).splitlines():
        if match := re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\d+ )?\s*(\S+)\s*([^;]*);", line):
            instructions[architecture, function].append((int(match[1], 16), match[2], match[3]))
        elif match := re.match(r"\s*code for (\S+)", line):
            architecture = match[1]
        elif match := re.match(r"\s*Function : (\S+)", line):
            function = match[1]
    names = sorted({function for _, function in instructions})
    short = dict(zip(names, map(short_name, output("c++filt", text="\n".join(names)).splitlines())))
    return {
        (architecture.removeprefix("sm_"), short[function]): Code(resources[architecture, function], listing)
        for (architecture, function), listing in instructions.items()
    }


def count(name, opcodes):
    return sum(fnmatch.fnmatchcase(opcode, name) for opcode in opcodes)


def hot_loop(listing, names):
    """Returns the opcodes of the hot loop."""
    loops = []
    for address, opcode, operands in listing:
        target = re.search(r"0x[0-9a-f]+", operands) if opcode.startswith("BRA") else None
        if target and int(target[0], 16) < address:
            loops.append([o for at, o, _ in listing if int(target[0], 16) <= at <= address])
    return max(loops, default=[], key=lambda loop: (sum(count(name, loop) for name in names), -len(loop)))


def faults(row, code):
    for memory in "STACK", "LOCAL":
        if code.resources[memory]:
            yield f"{code.resources[memory]} bytes of {memory.lower()} memory, expected none"
    if code.resources["REG"] > row.registers:
        yield f"{code.resources['REG']} registers, expected at most {row.registers}"
    if not row.expected:
        return
    loop = hot_loop(code.instructions, [name for name, _ in row.expected])
    rest = len(loop)
    for name, number in row.expected:
        found = count(name, loop)
        rest -= found
        if found != number:
            yield f"{found} {name} in the hot loop, expected {number}"
    if rest > row.others:
        yield f"{rest} other instructions in the hot loop, expected at most {row.others}"


def main(table, program):
    rows, code = table_read(table), code_read(program)
    families = {row.kernel.split("<")[0] for row in rows}
    built = {architecture.rstrip("a") for architecture, _ in code}
    wrong, checked = [], set()
    for row in rows:
        for architecture in row.architectures:
            if architecture.rstrip("a") not in built:
                continue
            found = [key for key in code if key[0] == architecture and fnmatch.fnmatchcase(key[1], row.kernel)]
            if not found:
                wrong.append(f"sm_{architecture} {row.kernel}: not in the program")
            for key in found:
                wrong += [f"sm_{architecture} {key[1]}: {fault}" for fault in faults(row, code[key])]
            checked.update(found)
    known = {architecture for architecture, _ in checked}
    for architecture, kernel in sorted(code.keys() - checked):
        if architecture in known and kernel.split("<")[0] in families:
            wrong.append(f"sm_{architecture} {kernel}: not in the table")
    for text in wrong:
        print(text)
    if not checked and not wrong:
        print("skipped: the table has none of", " ".join(f"sm_{name}" for name in sorted(built)))
        return 77
    print(f"{len(checked)} kernels of {' '.join(f'sm_{name}' for name in sorted(known))}: {len(wrong)} faults")
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:]))
