#!/usr/bin/env python3
"""Writes man pages and shell completion from the --help and --list of the programs.

Usage: manual.py ROOFSWEEP ROOFSWEEP-POST MANIFEST.md README.md FOLDER

The questions and commands of README.md are the examples of roofsweep-post. FOLDER gets the contents of share/: man/,
bash-completion/, zsh/, fish/. If roofsweep-post lacks its packages, its page and completion are left out with a
message."""

import json
import pathlib
import re
import subprocess
import sys

OPTION = re.compile(
    r"^ +(?:(-\w)(?: .*?)?, +)?(--[\w-]+)"
    r"(?:[ =](\[?[A-Z{][^ ]*(?: \[[A-Z]+ \.\.\.\])?|chips|variables))?(?: +(.*))?$"
)
# The completions of bash, zsh and fish run this command. It prints the label of each section, or the workload if a
# section has no label.
LABELS = r"sed -nE '/^\[(sweep|measure|peaks)\]/d; s/^\[[^] ]+ +([^]]+)\].*/\1/p; s/^\[([^] ]+)\].*/\1/p'"

COLOUR = ("NO_COLOR, TERM", "no colours on a terminal if NO_COLOR is not empty, or TERM is dumb")
SECTIONS = {
    "EXAMPLES": [
        ("roofsweep quickstart", "measures a small sweep that comes with roofsweep, into quickstart.nc"),
        ("roofsweep --dry-run sweep.ini", "prints the plan"),
        ("mpirun -n 8 roofsweep sweep.ini", "measures on eight GPUs, a rank for each"),
        ("mpirun -n 8 roofsweep --resume sweep.ini", "goes on after an end, or with a changed manifest"),
        ("roofsweep --gather sweep.nc.journal", "writes the file of an unfinished sweep"),
    ],
    "FILES": [
        ("OUTPUT", "the results, NetCDF; ncdump -h explains its variables"),
        ("OUTPUT.journal", "every finished row, on disk before the next row starts; for --resume and --gather"),
        ("OUTPUT.spare-1, OUTPUT.spare-1.journal", "the same, if another file or process took their places"),
        (".roofsweep- and 16 digits", "left by a SIGKILL; the next run of the output removes it"),
        ("share/roofsweep/sweeps", "manifests that come with roofsweep (--sweeps)"),
    ],
    "ENVIRONMENT": [
        ("SLURM_JOB_END_TIME", "another time limit beside --time-limit, in seconds since 1970"),
        ("SLURM_JOB_ID, PBS_JOBID, LSB_JOBID, FLUX_JOB_ID", "the job that the file names"),
        ("CUDA_VISIBLE_DEVICES", "GPUs that the ranks of a node share"),
        ("ROOFSWEEP_NCCL", "NCCL's library for links, instead of libnccl.so.2"),
        ("TMPDIR", "folder of a program's files"),
        COLOUR,
    ],
}


def printed(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def roff(text):
    """Escapes a line of text, so that roff finds no command in it."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def verbatim(text):
    return ["", ".nf", *[roff(line) for line in text.rstrip("\n").split("\n")], ".fi"]


def marked(text):
    """Converts a line of Markdown: code and bold text become bold, a link becomes its text."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("\\|", "|")
    parts = re.split(r"`([^`]*)`|\*\*(.+?)\*\*", text)
    found = ""
    for place in range(0, len(parts), 3):
        bold = parts[place + 1] or parts[place + 2] if place + 2 < len(parts) else ""
        plain = parts[place].replace("\\", "\\e").replace("-", "\\-")
        found += plain + (f"\\fB{roff(bold).replace('`', '')}\\fR" if bold else "")
    return "\\&" + found if found[:1] in (".", "'") else found


def page(name, section, what, version, lines):
    head = [f'.TH {name.upper()} {section} "" "{version}"', ".nh", ".SH NAME", f"{name} \\- {what}", *lines]
    return "\n".join(head) + "\n"


def sections(found):
    """Returns the lines of sections. `found`: {title: pairs of a bold term and the text that explains it}."""
    lines = []
    for title, pairs in found.items():
        lines.append(f".SH {title}")
        for term, text in pairs:
            lines += [".TP", f"\\fB{roff(term)}\\fR", roff(text)]
    return lines


def examples_of(text):
    """Returns the examples of roofsweep-post in README.md: the rows of its table of questions and commands."""
    return [(command, asked) for asked, command in re.findall(r"^\| (.+\?) \| `(roofsweep-post .+?)`.*\|$", text, re.M)]


def options_of(text):
    """Parses a --help into [(letter, name, value, help)]."""
    found = []
    for line in text.split("\n"):
        if parsed := OPTION.match(line):
            found.append([part or "" for part in parsed.groups()])
        elif found and re.match(r"^ {20,}\S", line):
            found[-1][3] = f"{found[-1][3]} {line.strip()}".strip()
    return found


def program_page(text):
    """Returns the page of `roofsweep --help`: usage, description, options, and the text that follows."""
    usage, does, _, *rest = text.strip("\n").split("\n\n")
    lines = [".SH SYNOPSIS", *verbatim(re.sub(r"^Usage: | {7,}(?=\w)", "", usage, flags=re.M))]
    lines += [".SH DESCRIPTION", roff(does.replace("\n", " "))]
    lines += [".SH OPTIONS"]
    for letter, name, value, helps in options_of(text):
        both = ", ".join(f"\\fB{roff(word)}\\fR" for word in (letter, name) if word)
        lines += [".TP", f"{both} \\fI{roff(value)}\\fR" if value else both, roff(helps)]
    for paragraph in rest:
        title, _, items = paragraph.replace("\n", " ").partition("Exit status: ")
        lines += [".SH EXIT STATUS", *[f"{roff(item)}\n.br" for item in items.split("; ")]] if items else []
        lines += [".SH RESULTS", roff(title)] if title else []
    return [*lines, *sections(SECTIONS), ".SH SEE ALSO", "roofsweep\\-post(1), roofsweep\\-manifest(5)"]


def table_page(lines):
    """Converts a table: the first cell of each row becomes a term, and the other cells become the text below it."""
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    head, _, *rows = cells
    found = []
    for first, *others in rows:
        named = [f"{name}: {cell}" if name else cell for name, cell in zip(head[1:], others) if cell]
        found += [".TP", marked(first) or "\\&", marked("; ".join(named)) or "\\&"]
    return found


def markdown_page(text):
    """Returns the page of a Markdown file: headings, lists, tables, code and paragraphs."""
    lines, found = text.split("\n"), [".SH DESCRIPTION"]
    while lines:
        line = lines.pop(0)
        if line.startswith("```"):
            end = lines.index("```")
            found += [".RS 4", *verbatim("\n".join(lines[:end])), ".RE"]
            del lines[: end + 1]
        elif line.startswith("|"):
            table = [line]
            while lines and lines[0].startswith("|"):
                table.append(lines.pop(0))
            found += table_page(table)
        elif line.startswith("#"):
            depth, title = line.split(" ", 1)
            found += [] if depth == "#" else [f"{'.SH' if depth == '##' else '.SS'} {marked(title)}"]
        elif line.startswith("- "):
            found += [".IP \\(bu 2", marked(line[2:])]
        else:
            found.append(marked(line.strip()) if line.strip() else ".PP")
    # Drops paragraph marks before headings, items and other paragraph marks.
    pairs = zip(found, [*found[1:], ".PP"])
    ends = (".PP", ".SH", ".SS", ".TP", ".IP")
    return [line for line, after in pairs if not (line == ".PP" and after.startswith(ends))]


def words_of(listing, options):
    workloads = listing["workloads"]
    keys = [key for group in listing["settings"].values() for key in group]
    keys += [parameter["name"] for workload in workloads for parameter in workload["parameters"]]
    device = next(value[3] for value in options if value[1] == "--device")
    return {
        "--set": [f"{key}=" for key in dict.fromkeys(keys) if "." not in key],
        "--list": [workload["name"] for workload in workloads] + ["chips", "variables"],
        "--device": re.split(r", | or ", device.split(", instead")[0]),
    }


def bash(options, words, commands):
    cases = "".join(f"    {name}) words='{' '.join(found)}' ;;\n" for name, found in words.items())
    names = " ".join(word for option in options for word in option[:2] if word)
    posts = "".join(
        f"    {name}) words='{' '.join(option[1] for option in found)}' ;;\n" for name, found in commands.items()
    )
    text = f"""# Completion of roofsweep for bash.
_roofsweep() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words='' file
    case $before in
{cases}    --only)
        for file in "${{COMP_WORDS[@]:1}}"; do [ -f "$file" ] && words+=" $({LABELS} "$file")"; done ;;
    *) [[ $word == -* ]] && words='{names}' || words=$(roofsweep --sweeps 2>/dev/null | cut -d' ' -f1) ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    case $before in --set) compopt -o nospace ;; --list|--device|--only) ;; *) compopt -o default ;; esac
}}
complete -F _roofsweep roofsweep
"""
    if commands:
        text += f"""_roofsweep_post() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} words='{" ".join(commands)}'
    case ${{COMP_WORDS[1]}} in
{posts}    esac
    [ "$COMP_CWORD" = 1 ] || [[ $word == -* ]] || words=
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [ "$COMP_CWORD" = 1 ] || compopt -o default
}}
complete -F _roofsweep_post roofsweep-post
"""
    return text


def zsh(options, words):
    lines = []
    for letter, name, value, helps in options:
        helps = re.sub(r"(['\[\]:\\])", lambda found: "'\\''" if found[0] == "'" else "\\" + found[0], helps)
        spec = f"[{helps}]"
        if name == "--only":
            spec += ":label:_roofsweep_labels"
        elif name in words:
            spec += f":{name[2:]}:({' '.join(words[name])})"
        elif value:
            spec += f":{value}:_files"
        star = "*" if name in ("--set", "--only") else ""
        lines += [f"'{star}{word}{spec}'" for word in (letter, name) if word]
    body = " \\\n    ".join([*lines, "'*:manifest:_roofsweep_manifests'"])
    return f"""#compdef roofsweep
_roofsweep_labels() {{ compadd -- ${{(f)"$({LABELS} ${{(M)words:#*.ini}} 2>/dev/null)"}} }}
_roofsweep_manifests() {{ _files; compadd -- ${{(f)"$(roofsweep --sweeps 2>/dev/null | cut -d' ' -f1)"}} }}
_arguments \\
    {body}
"""


def zsh_post(commands):
    cases = "".join(
        f"    {name}) compadd -- {' '.join(option[1] for option in found)} ;;\n" for name, found in commands.items()
    )
    return f"""#compdef roofsweep-post
if (( CURRENT == 2 )); then
    compadd -- {" ".join(commands)}
elif [[ $PREFIX == -* ]]; then
    case $words[2] in
{cases}    esac
else
    _files
fi
"""


def fish(options, words, commands):
    lines = ["complete -c roofsweep -a '(roofsweep --sweeps 2>/dev/null | cut -d\" \" -f1)'"]
    for letter, name, value, helps in options:
        helps = helps.replace("\\", "\\\\").replace("'", "\\'")
        follows = f" -xa '{' '.join(words[name])}'" if name in words else " -r" if value else ""
        if name == "--only":
            quoted = LABELS.replace("\\", "\\\\").replace("'", "\\'")
            follows = f" -xa '({quoted} (commandline -opc | string match \"*.ini\") 2>/dev/null)'"
        short = f" -s {letter[1]}" if letter else ""
        lines.append(f"complete -c roofsweep{short} -l {name[2:]}{follows} -d '{helps}'")
    for name, found in commands.items():
        lines.append(f"complete -c roofsweep-post -n __fish_use_subcommand -a {name}")
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        lines += [f"complete -c roofsweep-post {seen} -l {option[1][2:]}" for option in found]
    return "\n".join(lines) + "\n"


def main(roofsweep, post, manifest, readme, folder):
    folder = pathlib.Path(folder)
    version = printed(roofsweep, "--version").strip()
    text = printed(roofsweep, "--help")
    options = options_of(text)
    named = list({option[1]: option for option in reversed(options)}.values())[::-1]  # --list has three lines
    words = words_of(json.loads(printed(roofsweep, "--list", "--json")), named)
    document = pathlib.Path(manifest).read_text()
    written = {
        "man/man1/roofsweep.1": page(
            "roofsweep", 1, "measures configurations against the roofs of their devices", version, program_page(text)
        ),
        "man/man5/roofsweep-manifest.5": page(
            "roofsweep-manifest", 5, "what roofsweep is to measure", version, markdown_page(document)
        ),
    }
    commands = {}
    try:
        general = printed(post, "--help")
        lines = [".SH SYNOPSIS", "roofsweep\\-post \\fICOMMAND\\fR ...", ".SH DESCRIPTION", *verbatim(general)]
        for name in re.findall(r"^ {4}([a-z]+)  ", general, re.M):
            own = printed(post, name, "--help")
            commands[name] = options_of(own)
            lines += [f".SH {name.upper()}", *verbatim(own)]
        lines += sections({"EXAMPLES": examples_of(pathlib.Path(readme).read_text()), "ENVIRONMENT": [COLOUR]})
        lines += [".SH SEE ALSO", "roofsweep(1), roofsweep\\-manifest(5)"]
        what = "reads result files of roofsweep"
        written["man/man1/roofsweep-post.1"] = page("roofsweep-post", 1, what, version, lines)
        written["zsh/site-functions/_roofsweep-post"] = zsh_post(commands)
    except subprocess.CalledProcessError:
        print("roofsweep-post lacks packages here: it gets no man page and no completion", file=sys.stderr)
    for name in ["roofsweep", "roofsweep-post"][: 1 + bool(commands)]:  # the shell finds it by the name
        written[f"bash-completion/completions/{name}"] = bash(named, words, commands)
    written["zsh/site-functions/_roofsweep"] = zsh(named, words)
    written["fish/vendor_completions.d/roofsweep.fish"] = fish(named, words, commands)
    for path, text in written.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
