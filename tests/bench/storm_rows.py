"""The rows that a journal and a NetCDF file hold."""

import collections
import contextlib
import json
import os
import re
import threading
from pathlib import Path

try:
    import netCDF4
except ImportError:
    netCDF4 = None  # journals can be read all the same

COLUMNS = "config_hash", "config_device", "status", "device_uuid"


class Journal:
    """What a journal holds so far, read while it grows."""

    def __init__(self, path):
        self.path = path
        self.counts = collections.Counter()
        self.offset = 0
        self.rest = b""

    def look(self):
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size < self.offset:  # a torn line was cut off
                self.rest = b""
                self.offset = size
            stream.seek(self.offset)
            data = self.rest + stream.read()
            self.offset = stream.tell()
            *lines, self.rest = data.split(b"\n")
            for line in lines:
                kind = re.search(rb'"kind":"(\w+)"', line[:80])
                self.counts[kind.group(1).decode() if kind else "damaged"] += 1
        return self.counts

    def finished(self):
        """What identifies each record that is there: (hash, start time)."""
        with contextlib.suppress(FileNotFoundError):
            lines = Path(self.path).read_bytes().split(b"\n")[:-1]
            entries = [json.loads(line)["entry"] for line in lines if b'"kind":"record"' in line[:80]]
            return {(entry["config_hash"], entry["start_time"]) for entry in entries}
        return set()

    def rows(self):
        """(hash, uuid, status) of each row; the checksums are for --gather to look at."""
        uuids, rows = {}, []
        for line in Path(self.path).read_text().splitlines():
            entry = json.loads(line)
            if entry["kind"] == "device":
                uuids[entry["entry"]["key"]] = entry["entry"]["uuid"]
        for line in Path(self.path).read_text().splitlines():
            entry = json.loads(line)
            if entry["kind"] == "record":
                record = entry["entry"]
                rows.append((record["config_hash"], uuids[record["device_key"]], record["status"] == "measured"))
        return rows

    def errors(self):
        """Of the rows that failed, why."""
        entries = [json.loads(line) for line in Path(self.path).read_text().splitlines()]
        records = [entry["entry"] for entry in entries if entry["kind"] == "record"]
        return [record.get("error", "") for record in records if record["status"] != "measured"]


# The HDF5 library must not be entered by two threads.
ONE_READER = threading.Lock()


def rows_of_file(path):
    """Like Journal.rows; only where `netCDF4` is there."""
    with ONE_READER, netCDF4.Dataset(path) as data:
        hashes, devices, status, uuids = (data[name][:] for name in COLUMNS)
    return [(hashes[i], uuids[devices[i]], status[i] == 0) for i in range(len(hashes))]
