"""The command `watch` shows the progress of a running sweep. It only reads the journal."""

import json
import os
import sys
import time
from datetime import UTC, datetime

from .arguments import whole
from .naming import computed
from .texts import Refused, coloured, plain, scaled, table

HELP = "how far a running sweep is: rows done, by device, failed, slowest, time left"
DESCRIPTION = """Reads OUTPUT.journal of a running sweep again and again. Shows rows, devices, failures, the slowest
rows, and the time left at the rate of the latest rows. The command does not affect the sweep, and ends with it, or by
Ctrl-C."""

RECENT = 32  # number of latest rows from which the time left is computed
SHOWN = 5  # number of failed rows and of slow rows in the output


def add_options(parser):
    parser.add_argument("sweep", metavar="OUTPUT", help="result file of the sweep, or its journal")
    parser.add_argument("-i", "--interval", type=whole(1), default=2, metavar="S", help="seconds (default: 2)")
    parser.add_argument("--once", action="store_true", help="print once; the default if the output is no terminal")


class Journal:
    """The content of a journal so far. A later record of the same configuration and device replaces an earlier one."""

    def __init__(self, path):
        self.path, self.offset, self.rows, self.devices, self.session, self.rounds = path, 0, {}, {}, {}, {}

    def read(self):
        """Reads the lines that were appended since the last call, except an incomplete last line."""
        try:
            with open(self.path, "rb") as stream:
                stream.seek(self.offset)
                text = stream.read()
        except OSError as error:
            raise Refused(f"{self.path}: {error.strerror}") from error
        whole_lines = text[: text.rfind(b"\n") + 1]
        self.offset += len(whole_lines)
        for line in whole_lines.splitlines():
            try:
                found = json.loads(line)
                self.take(found["kind"], found["entry"])
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise Refused(f"{self.path}: a line is damaged; no journal of roofsweep?") from error

    def take(self, kind, entry):
        if kind == "session":
            self.session = entry
        elif kind == "device":
            self.devices[entry["key"]] = entry
        elif kind in ("record", "round"):
            device = self.devices.get(entry.get("device_key"), {})
            key = entry["config_hash"], device.get("hostname"), device.get("uuid")
            if kind == "round":
                self.rounds[*key, entry["round"]] = entry
                return
            self.rows.pop(key, None)  # so that the new record is the last one: rows are ordered by their end
            self.rows[key] = entry


def end_of(row):
    """Returns the time at which the row ended, in s since 1970."""
    return row.get("start_time", 0) + row.get("wall_time", 0)


def clock(seconds):
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02}:{int(seconds) % 60:02}"


def time_left(rows, left):
    """Returns the time left in s, at the rate of the latest rows; None: unknown."""
    ends = sorted(filter(None, map(end_of, rows)))[-RECENT:]
    return left * (ends[-1] - ends[0]) / (len(ends) - 1) if len(ends) > 1 else None


def shown(journal, now):
    rows, start = list(journal.rows.values()), journal.session.get("start_time", now)
    names = computed(*([row.get(name, "") for row in rows] for name in ("label", "configuration", "listed")))
    total, status = journal.session.get("rows"), [row.get("status") for row in rows]
    rounds, later = journal.session.get("rounds", 1), list(journal.rounds.values())
    again = sum(word == "measured" for word in status) if total == len(rows) else total
    left = max(total - len(rows) + (rounds - 1) * again - len(later), 0) if total else None
    own = [row for row in rows + later if row.get("start_time", 0) >= start]  # rows of this session
    seconds = time_left(own, left) if left else None
    now_in = max((entry["round"] for entry in later), default=1)
    of_round = sum(entry["round"] == now_in for entry in later) if now_in > 1 else len(rows)
    counts = ", ".join(f"{status.count(word)} {word}" for word in ("measured", "skipped", "failed"))
    began = datetime.fromtimestamp(start, UTC)
    lines = [
        f"{plain(journal.path)}: {plain(journal.session.get('title') or journal.session.get('manifest_path', ''))}",
        f"{len(rows)}{f' of {total}' if total else ''} rows: {counts}"
        + f", round {now_in} of {rounds}: {of_round}" * (rounds > 1),
        f"begun {began:%Y-%m-%d %H:%M:%S} UTC, {clock(max(now - start, 0))} ago"
        + (f", {clock(seconds)} left" if seconds is not None else ""),
        "",
    ]
    own = [
        [
            plain(f"{device.get('hostname', '')} #{device.get('index', '')}"),
            plain(device.get("model", "")),
            str(len(found := [row for row in rows if row.get("device_key") == key])),
            str(sum(row.get("status") == "failed" for row in found)),
            clock(max(now - max(map(end_of, found)), 0)) if found else "-",
        ]
        for key, device in journal.devices.items()
    ]
    text = "\n".join(lines) + "\n" + table(["device", "model", "rows", "failed", "since the last"], own, ["model"])
    slow = sorted(zip(rows, names), key=lambda pair: -pair[0].get("wall_time", 0))[:SHOWN]
    heads = [[plain(name), scaled(row.get("wall_time", float("nan")), "s")] for row, name in slow]
    text += "\n" + table(["slowest rows", "wall time"], heads)
    failed = [(row, name) for row, name in zip(rows, names) if row.get("status") == "failed"][-SHOWN:]
    lines = [f"failed: {plain(name)}: {plain(row.get('error', ''))}" for row, name in failed]
    return text + coloured("".join(f"{line}\n" for line in ["", *lines]) * bool(lines)), left


def run(options):
    path = options.sweep
    journal = Journal(path if path.endswith(".journal") else f"{path}.journal")
    terminal = sys.stdout.isatty() and not options.once
    try:
        while True:
            journal.read()
            text, left = shown(journal, time.time())
            print(("\033[H\033[J" if terminal else "") + text, end="", flush=True)
            if not terminal or left == 0:
                return 0
            time.sleep(options.interval)
            if os.path.getsize(journal.path) < journal.offset:  # another sweep has replaced the journal
                journal = Journal(journal.path)
    except KeyboardInterrupt:
        return 0
    except FileNotFoundError as error:
        raise Refused(f"{journal.path}: it is gone") from error
