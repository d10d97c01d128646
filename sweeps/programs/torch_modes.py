"""Options, precisions, modes (eager, compile, graph) and regions of the PyTorch programs."""

import roofsweep_region
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TOLERANCE = {"fp64": 1e-12, "fp32": 1e-4, "tf32": 3e-3, "fp16": 5e-3, "bf16": 3e-2}


def add_arguments(parser):
    parser.add_argument("--mode", choices=["eager", "compile", "graph"], default="eager")
    text = "cuDNN times its algorithms; the choice may differ between runs"
    parser.add_argument("--benchmark", choices=["off", "on"], default="off", help=text)
    return parser


def dtype(precision):
    return {"fp64": torch.float64, "fp16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32)


def prepare(args):
    """Call this first: a graph captures work, gradients included, only on a stream other than the default one."""
    torch.compiler.reset()  # shapes of an earlier row would make the kernels of this row general
    if args.mode == "graph" and DEVICE == "cuda":
        torch.cuda.set_stream(torch.cuda.Stream())
    torch.backends.cudnn.benchmark = args.benchmark == "on"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.precision == "tf32"


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def captured(step, iterations):
    """Returns all iterations as one CUDA graph, and the tensor of its result."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        for _ in range(iterations):
            result = step()
    return graph, result


def measure(args, step):
    """Runs the regions. Returns the result of the last iteration."""
    if args.mode == "compile":
        step = torch.compile(step, dynamic=False)
    for _ in range(args.warmup):
        result = step()
    iterations = 1 if args.cache == "cold" else args.iterations
    graph = None
    if args.mode == "graph" and DEVICE == "cuda":
        graph, result = captured(step, iterations)
        graph.replay()

    def run():
        nonlocal result
        if graph:
            graph.replay()
        else:
            for _ in range(iterations):
                result = step()

    cold = None
    if args.cache == "cold":
        scratch = torch.empty(1 << 26, device=DEVICE)
        cold = roofsweep_region.Cold(lambda: scratch.zero_().sum(), synchronize, queued=DEVICE == "cuda")
    roofsweep_region.regions(args.regions, run, synchronize, cold)
    return result


def distance(results, rights):
    """Returns the largest ||result - right|| / ||right||."""
    norm = torch.linalg.vector_norm
    return max((norm(a.double() - b) / norm(b)).item() for a, b in zip(results, rights))
