"""Parses options that several commands share, and checks the files that they read or write."""

import argparse
import contextlib
import difflib
import os
import pwd
import re

from .texts import Refused, plain

# Options that name a file to write, and arguments that name files to read.
OUTPUTS = ("output", "json", "junit", "prometheus")
INPUTS = ("file", "files", "before", "targets")
# {first bytes of a file: kind of file} for files that no command may overwrite. NetCDF files are HDF5 or one of three
# older formats.
SIGNATURES = {
    **dict.fromkeys((b"\x89HDF", b"CDF\x01", b"CDF\x02", b"CDF\x05"), "a NetCDF file"),
    b'{"xxh3":': "a journal of roofsweep",
}
# Options whose values are all words up to the next option.
GREEDY = ("--where", "--labels", "--series")


class Parser(argparse.ArgumentParser):
    """Reports errors in one line without the usage, and adds a hint. The hint is the nearest option or word. If FILE is
    missing because an option of GREEDY took it as a value, the hint says where to put FILE."""

    def parse_known_args(self, args=None, namespace=None):
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            typed = unknown[0].partition("=")[0]
            near = difflib.get_close_matches(typed, re.findall(r"--[a-z-]+", self.format_help()), 1)
            if not typed.startswith("-"):
                where = "--where" in self.format_help()
                self.error(f"unexpected word {typed}" + "; --where label=LABEL chooses rows of a label" * where)
            self.error(f"unknown option {unknown[0]}" + "".join(f"; did you mean {name}?" for name in near))
        return found, unknown

    def error(self, message):
        greedy = [name for name in GREEDY if re.search(rf" {name} [A-Z]", self.format_help())]
        if greedy and "required:" in message and message.endswith("file"):
            message += f"; put FILE before any {', '.join(greedy)}: it takes every word that follows"
        if choice := re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message):
            near = difflib.get_close_matches(choice[1], re.findall(r"[\w-]+", choice[2]), 1)
            message += "".join(f"; did you mean {name}?" for name in near)
        self.exit(2, f"{self.prog}: {plain(message)}; see {self.prog} --help\n")


def whole(least):
    """Returns the argparse type of a whole number that is `least` or more."""

    def number(text):
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is no whole number >= {least}")
        return int(text)

    return number


def named(options, names):
    """Returns {path: option} for all paths that the options name."""
    found = {}
    for name in names:
        value = getattr(options, name, None)
        found |= {path: name for path in (value if isinstance(value, list) else [value]) if path}
    return found


def same(one, other):
    """Returns whether two paths, after resolving links, name the same file. Paths of missing files are compared as
    texts."""
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def valuable(path):
    """Returns the kind of a file that must not be overwritten, judged by its first bytes; "" for all other files. Only
    regular files are opened, because a pipe would block until somebody writes."""
    try:
        with open(path if os.path.isfile(path) else os.devnull, "rb") as stream:
            head = stream.read(8)
    except OSError:
        return ""
    found = next((what for signature, what in SIGNATURES.items() if head.startswith(signature)), "")
    manifest = path.endswith(".ini") and head and not re.match(rb"; \d+ ", head)  # baseline writes `; 4 devices`
    return "an INI file that `baseline` has not written" if manifest else found


def check_inputs(options):
    """Refuses inputs that are no result file: missing files, pipes (which may never end), folders, manifests and
    journals. Each message says what the user can do."""
    folders = getattr(options, "since", None) is not None
    for path, name in named(options, INPUTS).items():
        folder = os.path.dirname(path) or "."
        if not os.path.lexists(path):
            makes = "roofsweep-post baseline makes targets" if name == "targets" else "roofsweep SWEEP.ini writes one"
            there = os.listdir(folder) if os.path.isdir(folder) and os.access(folder, os.R_OK) else []
            there = [file for file in there if file.endswith(os.path.splitext(path)[1])]
            near = difflib.get_close_matches(os.path.basename(path), there, 1, 0.8)
            hint = f"did you mean {os.path.join(os.path.dirname(path), near[0])}?" if near else makes
            raise Refused(f"{path}: No such file; {hint}")
        if name == "targets":
            continue
        if os.path.isdir(path) and not folders:
            raise Refused(f"{path}: it is a folder; name its files, as {os.path.join(path, '*.nc')}")
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            raise Refused(f"{path}: it is no regular file")
        if path.endswith(".ini"):
            raise Refused(f"{path}: a manifest, not a result file; `roofsweep {path}` writes one")
        if "journal" in valuable(path):
            raise Refused(f"{path}: a journal, not a result file; `roofsweep --gather {path}` writes it")


def stranger(path):
    """Returns the owner of the first symbolic link in this path that another user may have planted: other users can
    write to the link's folder, and neither the user nor root owns the link. "": the path has none."""
    trusted, links = (0, os.geteuid()), 0
    folder, names = "/" if path.startswith("/") else ".", path.split("/")[::-1]
    while names and links < 40:  # Linux follows 40 links at most
        own = os.path.join(folder, names.pop() or ".")
        if not os.path.islink(own):
            folder = own
            continue
        owner, around = os.lstat(own).st_uid, os.stat(folder)
        if owner not in trusted and (around.st_uid not in trusted or around.st_mode & 0o022):
            with contextlib.suppress(KeyError):
                return pwd.getpwuid(owner).pw_name
            return str(owner)
        text, links = os.readlink(own), links + 1
        folder = "/" if text.startswith("/") else folder
        names += text.split("/")[::-1]
    return ""


def check_outputs(options, writes_netcdf=False):
    """Refuses outputs that would overwrite an input, a result file or a journal, or whose folder is missing. Call it
    before reading or writing files. writes_netcdf: the command writes a result file and has --overwrite, so it may
    replace a result file, but no journal."""
    outputs = [(path, name) for name in OUTPUTS for path in named(options, [name])]
    outputs = [(path, name) for path, name in outputs if os.path.isfile(path) or not os.path.exists(path)]  # /dev/null
    for place, (path, name) in enumerate(outputs):
        other = f"; --{name} must name another file"
        if not os.path.isdir(folder := os.path.dirname(os.path.realpath(path))):
            raise Refused(f"cannot write {path}: No such folder {folder}; make it, or --{name} names another")
        if any(same(path, read) for read in named(options, INPUTS)):
            raise Refused(f"cannot write {path}: it is an input file{other}")
        if any(same(path, earlier) for earlier, _ in outputs[:place]):
            raise Refused(f"cannot write {path}: another option names it, too{other}")
        if owner := stranger(path):
            raise Refused(f"cannot write {path}: a link of user {owner} is on its way, and is not followed{other}")
        what = valuable(path)
        if what and not (writes_netcdf and "NetCDF" in what):
            raise Refused(f"cannot write {path}: it exists and is {what}{other}, or remove it first")


@contextlib.contextmanager
def writing(path):
    """Context of a write to `path`: an OSError becomes Refused with the path in its text."""
    try:
        yield
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror or error}") from error


def write(path, text):
    with writing(path), open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
