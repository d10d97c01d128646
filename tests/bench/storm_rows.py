"""The rows that a journal and a NetCDF file hold. Needs Python alone; the file is read by netCDF4, else h5netcdf, else
ncdump."""

import collections
import contextlib
import json
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path


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


def strings_of_dump(text, name):
    body = re.search(rf"^ {name} =(.*?);$", text, re.S | re.M)
    return re.findall(r'"([^"]*)"', body.group(1)) if body else []


def numbers_of_dump(text, name):
    body = re.search(rf"^ {name} =(.*?);$", text, re.S | re.M)
    return [int(number) for number in body.group(1).replace(",", " ").split()] if body else []


def columns_by_ncdump(path):
    names = "config_hash,config_device,status,device_uuid"
    text = subprocess.run(["ncdump", "-v", names, path], capture_output=True, text=True, check=True).stdout
    text = text[text.index("\ndata:") :]
    return (
        strings_of_dump(text, "config_hash"),
        numbers_of_dump(text, "config_device"),
        numbers_of_dump(text, "status"),
        strings_of_dump(text, "device_uuid"),
    )


# The HDF5 library under either module must not be entered by two threads.
ONE_READER = threading.Lock()


def columns_by_module(open_file, path):
    with ONE_READER, open_file(path) as data:
        columns = [data.variables[name][:] for name in ("config_hash", "config_device", "status", "device_uuid")]
    text = [item.decode() if isinstance(item, bytes) else str(item) for item in columns[0]]
    uuids = [item.decode() if isinstance(item, bytes) else str(item) for item in columns[3]]
    return text, [int(item) for item in columns[1]], [int(item) for item in columns[2]], uuids


def choose_reader():
    """A function of a path, or None where nothing here reads NetCDF."""
    with contextlib.suppress(ImportError):
        import netCDF4

        return lambda path: columns_by_module(netCDF4.Dataset, path)
    with contextlib.suppress(ImportError):
        import h5netcdf

        return lambda path: columns_by_module(lambda name: h5netcdf.File(name, "r"), path)
    return columns_by_ncdump if shutil.which("ncdump") else None


def rows_of_file(reader, path):
    hashes, devices, status, uuids = reader(path)
    return [(hashes[i], uuids[devices[i]], status[i] == 0) for i in range(len(hashes))]
