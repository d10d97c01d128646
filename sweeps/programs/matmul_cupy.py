"""A matrix product in CuPy. It marks its region by CuPy's profiler and contains no code of roofsweep.

python3 matmul_cupy.py --n 4096 --precision fp32"""

import argparse

import cupy
import cupyx.profiler


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=4096)
    parser.add_argument("--precision", choices=["fp64", "fp32", "fp16"], default="fp32")
    parser.add_argument("--iterations", type=int, default=20, help="in a region")
    parser.add_argument("--regions", type=int, default=20, help="each is a sample")
    args = parser.parse_args()
    dtype = {"fp64": "float64", "fp32": "float32", "fp16": "float16"}[args.precision]
    a, b = (cupy.random.uniform(-1, 1, (args.n, args.n)).astype(dtype) for _ in range(2))
    c = a @ b
    for _ in range(args.regions):
        with cupyx.profiler.profile():
            for _ in range(args.iterations):
                cupy.matmul(a, b, out=c)


if __name__ == "__main__":
    main()
