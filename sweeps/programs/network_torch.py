"""A training step of a small PyTorch network: a ResNet block or a transformer layer.

python3 network_torch.py --network transformer --precision bf16"""

import layer_options
import torch
import torch_modes


class Block(torch.nn.Module):
    """Two convolutions with batch normalisation, and a shortcut around them."""

    def __init__(self, channels):
        super().__init__()
        self.first = torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second = torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norms = torch.nn.ModuleList([torch.nn.BatchNorm2d(channels) for _ in range(2)])

    def forward(self, x):
        y = torch.relu(self.norms[0](self.first(x)))
        return torch.relu(x + self.norms[1](self.second(y)))


def make(args):
    if args.network == "resnet":
        x = torch.rand(args.batch, 64, 56, 56, device=torch_modes.DEVICE).to(memory_format=torch.channels_last)
        return Block(64).to(torch_modes.DEVICE).to(memory_format=torch.channels_last), x
    x = torch.rand(args.batch, 128, 512, device=torch_modes.DEVICE)
    return torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True).to(torch_modes.DEVICE), x


def main():
    parser = torch_modes.add_arguments(layer_options.parser(__doc__, None, torch_modes.TOLERANCE))
    parser.add_argument("--network", choices=["resnet", "transformer"], default="resnet")
    parser.add_argument("--batch", type=int, default=16)
    args = parser.parse_args()
    torch_modes.prepare(args)
    torch.manual_seed(1)
    network, x = make(args)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    mixed = args.precision in ("fp16", "bf16")

    def step():
        optimizer.zero_grad(set_to_none=False)
        with torch.autocast(torch_modes.DEVICE, torch_modes.dtype(args.precision), enabled=mixed):
            loss = network(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    loss = torch_modes.measure(args, step)
    if not torch.isfinite(loss):
        raise SystemExit(f"the loss is {loss.item()}")


if __name__ == "__main__":
    main()
