"""The networks that TASO and tensat were measured on, at the published dimensions.

They are built by code, with random weights from a seed, for any batch size.
Each file is one family; `layers` is what they share.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tensat.errors import UsageError
from tensat.networks.bert import bert
from tensat.networks.inception import inception_v3
from tensat.networks.mobilenet import mobilenet_v2
from tensat.networks.nasnet import nasnet_a
from tensat.networks.nasrnn import nasrnn
from tensat.networks.resnet import resnet50, resnext50
from tensat.networks.squeezenet import squeezenet1_1
from tensat.networks.vgg import vgg19
from tensat.taso import TasoGraph

__all__ = ["NETWORKS", "build"]

NETWORKS: Mapping[str, Callable[[int, int], TasoGraph]] = MappingProxyType(
    {
        make.__name__: make
        for make in (
            bert,
            inception_v3,
            mobilenet_v2,
            nasnet_a,
            nasrnn,
            resnet50,
            resnext50,
            squeezenet1_1,
            vgg19,
        )
    }
)
"""Function of (batch, seed) by network name."""


def build(name: str, batch: int = 1, seed: int = 0) -> TasoGraph:
    """A network as a graph; `graph.model()` is its ONNX model.

    Args:
        name: One of `NETWORKS`.
        batch: Size of the batch.
        seed: For the weights; the same seed gives the same bytes.

    Raises:
        UsageError: There is no such network, or a number is too small.
    """
    if name not in NETWORKS:
        raise UsageError(f"network {name!r} is unknown; possible: {', '.join(NETWORKS)}")
    if batch < 1:
        raise UsageError(f"batch must be at least 1, not {batch}")
    if seed < 0:
        raise UsageError(f"seed must be at least 0, not {seed}")
    return NETWORKS[name](batch, seed)
