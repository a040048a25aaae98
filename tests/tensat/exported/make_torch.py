"""Writes the PyTorch models of this folder, with both exporters of torch.onnx.

python make_torch.py FOLDER
"""

import sys
from pathlib import Path

import onnx
import torch
from torch import nn


class Image(nn.Module):
    """Convolutions with batch norms and a residual, as image models have them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU6(),
        )
        self.deep = nn.Sequential(
            nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False),
            nn.BatchNorm2d(8),
            nn.Hardswish(),
            nn.Conv2d(8, 8, 1, bias=False),
            nn.BatchNorm2d(8),
        )
        self.drop = nn.Dropout()
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[n, 3, 16, 16] to probabilities [n, 5]."""
        x = self.stem(x)
        x = torch.relu(x + self.deep(x)).mean((2, 3))
        return torch.softmax(self.head(self.drop(x)), -1)


class Text(nn.Module):
    """One transformer layer whose batch and length are open."""

    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.width = heads, width
        self.norm = nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.mlp = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[n, length, 16] to the same."""
        batch, length, width = x.shape
        y, size = self.norm(x), self.width // self.heads

        def heads(t: torch.Tensor) -> torch.Tensor:
            return t.view(batch, length, self.heads, size).transpose(1, 2)

        q, k, v = heads(self.q(y)), heads(self.k(y)), heads(self.v(y))
        scores = (q @ k.transpose(-1, -2) / size**0.5).softmax(-1)
        mixed = (scores @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.o(mixed)
        return x + self.mlp(x)


def models() -> dict[str, tuple[nn.Module, torch.Tensor, dict[int, str]]]:
    """Model, example input and names of open dimensions, by name."""
    torch.manual_seed(0)
    image = Image()
    for module in image.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
            nn.init.uniform_(module.weight, 0.5, 1.5)
    return {
        "image": (image.eval(), torch.randn(2, 3, 16, 16), {0: "batch"}),
        "text": (Text().eval(), torch.randn(2, 6, 16), {0: "batch", 1: "length"}),
    }


def export(folder: Path) -> list[Path]:
    """Write every model with both exporters; return the files."""
    written = []
    for name, (model, example, names) in models().items():
        dims = {place: torch.export.Dim(text, max=512) for place, text in names.items()}
        for exporter, options in (
            ("script", {"dynamo": False, "dynamic_axes": {"x": names}}),
            ("dynamo", {"dynamo": True, "dynamic_shapes": {"x": dims}}),
        ):
            path = folder / f"torch_{exporter}_{name}.onnx"
            torch.onnx.export(
                model,
                (example,),
                str(path),
                input_names=["x"],
                output_names=["y"],
                verbose=False,
                external_data=False,
                **options,
            )
            _forget_sources(path)
            written.append(path)
    return written


def _forget_sources(path: Path) -> None:
    """Remove the stack trace of each node, which names files of this machine."""
    model = onnx.load(path)
    for item in (*model.graph.node, *model.graph.value_info, model.graph):
        del item.metadata_props[:]
    onnx.save(model, path)


if __name__ == "__main__":
    export(Path(sys.argv[1]))
