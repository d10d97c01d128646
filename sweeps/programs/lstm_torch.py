"""An LSTM layer in PyTorch, forward or backward; the paper's defaults.

python3 lstm_torch.py --precision fp16 --pass backward --mode eager"""

import layer_options
import roofsweep_region
import torch
import torch_modes


def options():
    return torch_modes.add_arguments(layer_options.parser(__doc__, "lstm", torch_modes.TOLERANCE))


def make(args, dtype):
    torch.manual_seed(1)
    layer = torch.nn.LSTM(args.features, args.hidden)
    x = torch.rand(args.sequence, args.batch, args.features) * 2 - 1
    return layer.to(torch_modes.DEVICE, dtype), x.to(torch_modes.DEVICE, dtype).requires_grad_()


def step_of(args, layer, x):
    """Runs one iteration. Returns all outputs, or the gradients of the input and of the weights."""
    if args.direction == "forward":

        def forward():
            with torch.no_grad():
                return layer(x)[0]

        return forward
    y = layer(x)[0]
    dy = torch.ones_like(y)
    inputs = [x, *layer.parameters()]
    return lambda: torch.autograd.grad(y, inputs, dy, retain_graph=True)[0]


def main():
    for args in roofsweep_region.points(options()):
        torch_modes.prepare(args)
        layer, x = make(args, torch_modes.dtype(args.precision))
        result = torch_modes.measure(args, step_of(args, layer, x))
        if not roofsweep_region.counted():
            exact, y = make(args, torch.float64)
            exact.load_state_dict(layer.state_dict())
            y.data.copy_(x.data)
            error = torch_modes.distance([result], [step_of(args, exact, y)()])
            roofsweep_region.verified(error, 4 * torch_modes.TOLERANCE[args.precision])


if __name__ == "__main__":
    main()
