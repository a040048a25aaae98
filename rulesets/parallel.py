"""Running one function over many values: here, on several processes, or on a cluster.

Processes run through joblib, a cluster through `dask.distributed`; both keep the order.
Functions and values must be picklable.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from rulesets.errors import RulesetsError

BACKENDS = ("processes", "dask")


@dataclass(frozen=True, slots=True)
class Workers:
    """Where work is done.

    Attributes:
        jobs: Processes; 1 runs everything here.
        backend: One of `BACKENDS`.
        scheduler: Address of a dask scheduler, for ``dask``.
    """

    jobs: int = 1
    backend: str = "processes"
    scheduler: str = ""

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            known = ", ".join(BACKENDS)
            raise RulesetsError(f"unknown backend {self.backend!r}; possible: {known}")
        if self.backend == "dask" and not self.scheduler:
            raise RulesetsError(
                "backend 'dask' needs the address of a scheduler; none given"
            )

    def map[A, B](self, function: Callable[[A], B], values: Iterable[A]) -> list[B]:
        """Apply a function to each value.

        Raises:
            RulesetsError: A library that the backend needs is not installed.
        """
        if self.backend == "dask":
            client = _client(self.scheduler)
            return list(client.gather(client.map(function, list(values))))
        if self.jobs == 1:
            return [function(value) for value in values]
        joblib = _library("joblib", "joblib")
        tasks = (joblib.delayed(function)(value) for value in values)
        return list(joblib.Parallel(n_jobs=self.jobs)(tasks))

    @contextmanager
    def session(self) -> Iterator[None]:
        """Keep the connection to a cluster between calls of `map`; joblib keeps its own."""
        try:
            yield
        finally:
            client = _CLIENTS.pop(self.scheduler, None)
            if client is not None:
                client.close()


_CLIENTS: dict[str, Any] = {}


def _client(scheduler: str) -> Any:
    if scheduler not in _CLIENTS:
        library = _library("distributed", "tensat[distributed]")
        _CLIENTS[scheduler] = library.Client(scheduler)
    return _CLIENTS[scheduler]


def _library(name: str, package: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise RulesetsError(f"{name} is not installed; install {package}") from error
