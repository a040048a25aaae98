"""The child's side of the pipe: requests in, answers out, whoever answers them.

It reads pickled requests from its standard input and writes pickled answers to what was
its standard output. Whatever native code prints goes to standard error. A thread of its
own reads the requests, so that the process ends with its parent even while a model
hangs in native code.
"""

from __future__ import annotations

import os
import pickle
import queue
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO

from tensat.runtime.messages import Failure, FailureKind, Request
from tensat.runtime.pipe import read_message, write_message


def serve(make: Callable[[], object]) -> None:
    """Answer requests until the parent closes the pipe.

    Args:
        make: Of what answers: a request names one of its functions.
    """
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    reader = threading.Thread(
        target=_read_requests, args=(sys.stdin.buffer, requests), daemon=True
    )
    reader.start()
    worker = make()
    while True:
        write_message(replies, _answer(worker, requests.get()))


def _answer(worker: object, body: bytes) -> bytes:
    """Return the pickled result, or a failure that carries the exception's text."""
    answer: object
    try:
        request: Request = pickle.loads(body)
        function: Callable[..., object] = getattr(worker, request.name)
        answer = function(*request.arguments)
        return pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        answer = Failure(FailureKind.ERROR, "out of memory")
    except Exception as error:  # libraries raise many types, none of them documented
        answer = Failure(FailureKind.ERROR, " ".join(str(error).split()) or repr(error))
    return pickle.dumps(answer)


def _read_requests(stream: BinaryIO, requests: queue.SimpleQueue[bytes]) -> None:
    while (body := read_message(stream)) is not None:
        requests.put(body)
    os._exit(0)  # the parent is gone; the main thread may hang in native code
