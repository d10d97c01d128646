#!/usr/bin/env python3
"""Draws this folder's figures from the result files of tests/data: docs/gallery/make.py"""

import os
import subprocess
import sys
import tempfile

import xarray
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def main():
    data = xarray.open_dataset(os.path.join(ROOT, "tests/data/paper_h200.nc")).load()
    labelled = [("conv2d-filters" in label.split()) for label in data.label.values]
    # Few rows, so that their labels have room.
    few = labelled & (data["pass"].values == "forward") & ((data.filters == 64) | (data.filters == 512)).values
    with tempfile.TemporaryDirectory() as work:
        rows = os.path.join(work, "rows.nc")
        data.isel(config=few).to_netcdf(rows)
        figure = os.path.join(HERE, "roofline_h200.png")
        subprocess.run(
            [
                sys.executable,
                os.path.join(ROOT, "postproc/roofline.py"),
                rows,
                "--label",
                "conv2d-filters",
                "--output",
                figure,
            ],
            check=True,
        )
    with Image.open(figure) as image:  # a third of the bytes, and no difference to see
        image.convert("RGB").quantize(64).save(figure, optimize=True)


if __name__ == "__main__":
    main()
