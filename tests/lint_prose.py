#!/usr/bin/env python3
"""Finds sentences in comments, docstrings and pages that have an inverted order or need another sentence to be
understood.

Usage: lint_prose.py [FILE]... (default: all C, CUDA, Python, shell and Markdown files below the working folder)

Exit status 0, or 1 with a line for each fault. Questions, code blocks and words in `backquotes` are exempt."""

import pathlib
import re
import sys

CODE = {".c", ".h", ".cu", ".cuh", ".cpp"}
SKIPPED = {"data", ".git", "__pycache__"}  # fixtures stay as they are
VERB = (
    r"(is|are|was|were|has|have|had|can|may|must|does|do|lies|stands|goes|comes|keeps|takes|[a-z]+s|[a-z]+ed"
    r"|a|the|it|they|each|others?|this|that|such)\b"
)

# Pattern that no sentence may contain (^: at its start), and the advice printed with a fault.
RULES = [
    (rf"^What {VERB}", "name the thing that 'What' stands for"),
    (r"^Of ", "put the subject first"),
    (r"^Those (that|which|who|of|with|without|in|it)\b", "name what 'Those' are"),
    (r"^One (that|which|of|with|without|opened)\b", "name what 'One' is"),
    (r"^That (of|which|is|a|the|it|they)\b", "name what 'That' is"),
    (r"^(The same|Such|So (many|much|long)|As (many|much|long))\b", "name both things that are compared"),
    (r"^(Not (told|known|of)|With which|Whose|Whoever|Which of)\b", "put the subject first"),
    (r"\bso many\b", "say how many, or name the number"),
    (r"\b(is|are|was|were) (told|asked for|given back)\b(?! by)", "say who does what: CUPTI rejects, the caller frees"),
    (r"\b(such a one|that one's|there are such|where there are (some|any|none)|of which there)\b", "name the thing"),
    (r"\b(of (it|them) all|said of|told of|as it (says|stands)|by itself alone|stands for itself)\b", "name the thing"),
    (r"\b(afresh|by turns)\b", "write 'again' or 'from scratch', 'in turn' or 'alternating'"),
]
RULES = [(re.compile(pattern, 0 if pattern.startswith("^") else re.I), reason) for pattern, reason in RULES]


def comments(path):
    """Yields (line, text) for each comment, docstring or paragraph of a file."""
    text = path.read_text(errors="replace")
    if path.suffix in CODE:
        pattern, decoration = r"/\*.*?\*/|(?:^[ \t]*//[^\n]*\n)+", r"^[ \t]*(//|/\*+|\*(?!/))|\*/$"
    elif path.suffix == ".md":
        text = re.sub(r"```.*?```", lambda block: re.sub(r"[^\n]", " ", block[0]), text, flags=re.S)
        pattern, decoration = r"^(?!\s*[|#<]).+(\n(?!\s*[-*|#<]|\s*\n).+)*", r"^\s*([-*]|\d+\.)\s"
    else:
        pattern, decoration = r'""".*?"""|(?:^[ \t]*#(?!!)[^\n]*\n)+|(?<=\s)# [^\n]*\n', r'^[ \t]*# ?|"""'
    for found in re.finditer(pattern, text, re.M if path.suffix == ".md" else re.M | re.S):
        yield text.count("\n", 0, found.start()) + 1, re.sub(decoration, " ", found[0], flags=re.M)


def sentences(text):
    """Yields (lines before the sentence, sentence)."""
    text, start = re.sub(r"`[^`]*`", lambda code: "_" * len(code[0]), text), 0
    for end in [*re.finditer(r"[.!?:;]\s+(?=[A-Z])|\n\s*\n", text), None]:
        piece = text[start : end.start() + 1] if end else text[start:]
        lines = text.count("\n", 0, start + len(piece) - len(piece.lstrip()))
        yield lines, " ".join(piece.strip(" -\n").split())
        start = end.end() if end else start


def faults(path):
    for line, text in comments(path):
        for lines, sentence in sentences(text):
            if len(sentence.split()) >= 3 and not sentence.endswith("?"):
                reasons = [reason for rule, reason in RULES if rule.search(sentence)]
                if reasons:
                    yield f"{path}:{line + lines}: {reasons[0]}: {sentence[:160]}"


def main():
    files = [path for path in sorted(pathlib.Path().rglob("*")) if path.suffix in CODE | {".py", ".sh", ".md"}]
    files = [path for path in files if not any(part in SKIPPED or part.startswith("build") for part in path.parts)]
    found = [fault for path in map(pathlib.Path, sys.argv[1:] or files) for fault in faults(path)]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
