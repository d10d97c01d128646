"""Compares the bits of results. Rows with equal configuration, seed, algorithm, kernels and grids must have equal bits
on all devices of a model with the same library, in all files."""

import re

from .texts import listed
from .verdicts import Check

VARIES = "varies"  # output_hash of a row whose iterations differ
STEADY = 3  # if this many devices have equal bits, bits that vary on another device are suspicious
REASONS = {
    "fail": "computes other bits than most devices",
    "inconclusive": "computes other bits than {}, and no third device decides",
    VARIES: "iterations differ in their bits, unlike those of {}",
}


def likes(data):
    """Returns a text for each row of a file. Rows with equal texts must have results with equal bits."""
    found = [[] for _ in range(data.sizes["config"])]
    names = ("config_hash", "implementation", "algorithm", "layout_chosen", "config_device")
    devices = [data[f"device_{name}"].values for name in ("model", "library_version", "multiprocessors")]
    seed = re.findall(r"\bseed=\S+", str(data.attrs.get("settings", "")))
    for row, (*texts, device) in enumerate(zip(*(data[name].values for name in names))):
        found[row] = [*seed, *texts, *(own[int(device)] for own in devices if device >= 0)]
    names = ("config", "name", "count", "blocks", "threads")
    for row, *kernel in zip(*(data[f"kernel_{name}"].values for name in names)):
        if 0 <= row < len(found):
            found[int(row)].append(kernel)
    return [str(texts) for texts in found]


def hashed(files, times):
    """Returns the lines of time_table() for rows with an output_hash, and adds the texts of likes() as column
    `like`."""
    lines = times[(times["key"] == times["config_hash"]) & (times["output_hash"] != "")]
    if lines.empty:
        return lines.assign(like="")
    texts = [likes(data) for data in files]
    return lines.assign(like=[texts[file][row] for file, row in zip(lines["file"], lines["config"])])


class Bits:
    """checks: {(file, place): check} for each device with a compared row. varying: names of rows that are left out
    because their iterations differ. compared: number of compared rows."""

    def __init__(self, files, times, named):
        """named(line) returns the name of a line's device."""
        lines = hashed(files, times)
        groups = lines.groupby("like")["output_hash"]
        count, alike = groups.transform("size"), (groups.transform("nunique") == 1) & (lines["output_hash"] != VARIES)
        several = lines[alike & (count > 1)]
        self.varying, self.compared = [], several["like"].nunique()
        found = {device: [] for device in zip(several["file"], several["place"])}
        for _, own in lines[~alike].groupby("like", sort=False):
            hashes = own["output_hash"]
            steady = hashes[hashes != VARIES]
            if len(steady) < len(own) and (len(own) > len(steady) + 1 or len(steady) < STEADY or steady.nunique() > 1):
                self.varying.append(own["name"].iloc[0])
                continue
            self.compared += 1
            most = steady.mode()
            decided = (steady == most[0]).sum() > len(steady) / 2
            for _, line in own.iterrows():
                word = "pass" if decided else "inconclusive"
                if decided and line["output_hash"] != most[0]:
                    word = VARIES if line["output_hash"] == VARIES else "fail"
                others = listed((named(other) for _, other in own[hashes != line["output_hash"]].iterrows()), 2)
                found.setdefault((line["file"], line["place"]), []).append((word, line["name"], others))
        self.checks = {device: self.check(rows) for device, rows in found.items()}
        self.varying = list(dict.fromkeys(self.varying))

    @staticmethod
    def check(rows):
        """Returns the check of one device. rows: (word, name, names of devices with other bits) of each of its rows."""
        for word, reason in REASONS.items():
            if own := [(name, others) for found, name, others in rows if found == word]:
                (name, others), verdict = own[0], "fail" if word == "fail" else "inconclusive"
                count = f"{len(own)} rows, the first: " if len(own) > 1 else "1 row, "
                why = f"{reason.format(others)}: {count}{name}"
                return Check("bits of results", verdict, why, value=float(len(own)), limit=0.0)
        return Check("bits of results", "pass", value=0.0, limit=0.0)

    def line(self):
        """Returns a text for people; "" without any row with a hash."""
        parts = [f"{self.compared} rows compared, between devices or files"] * bool(self.compared)
        if self.varying:
            parts.append(f"{len(self.varying)} left out, whose iterations differ: {listed(self.varying, 4)}")
        return "Bits of results: " * bool(parts) + "; ".join(parts)
