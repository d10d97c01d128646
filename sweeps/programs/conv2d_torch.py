"""conv2d in PyTorch, forward, backward (both gradients) or one of them; the paper's defaults.

python3 conv2d_torch.py --precision fp16 --pass forward --mode graph"""

import layer_options
import roofsweep_region
import torch
import torch_modes


def options():
    return torch_modes.add_arguments(
        layer_options.parser(__doc__, "conv2d", torch_modes.TOLERANCE, "backward-data", "backward-filter")
    )


def tensors(args):
    generator = torch.Generator(device=torch_modes.DEVICE).manual_seed(1)

    def random(*shape):
        drawn = torch.rand(shape, generator=generator, device=torch_modes.DEVICE, dtype=torch.float32) * 2 - 1
        return drawn.to(torch_modes.dtype(args.precision)).to(memory_format=torch.channels_last)

    out = (args.size - 1) // args.stride + 1
    x = random(args.batch, args.channels, args.size, args.size)
    w = random(args.filters, args.channels, args.kernel, args.kernel)
    return x, w, random(args.batch, args.filters, out, out)


def convolve(args, x, w, dy):
    padding = [args.kernel // 2] * 2
    if args.direction == "forward":
        return [torch.nn.functional.conv2d(x, w, stride=args.stride, padding=padding)]
    wanted = [args.direction != "backward-filter", args.direction != "backward-data", False]
    gradients = torch.ops.aten.convolution_backward(
        dy, x, w, None, [args.stride] * 2, padding, [1, 1], False, [0, 0], 1, wanted
    )
    return [gradient for gradient, asked in zip(gradients, wanted) if asked]


def measure(args):
    torch_modes.prepare(args)
    x, w, dy = tensors(args)
    result = torch_modes.measure(args, lambda: convolve(args, x, w, dy))
    if roofsweep_region.counted():
        return
    right = convolve(args, x.double(), w.double(), dy.double())
    roofsweep_region.verified(torch_modes.distance(result, right), torch_modes.TOLERANCE[args.precision])


def main():
    for args in roofsweep_region.points(options()):
        measure(args)


if __name__ == "__main__":
    main()
