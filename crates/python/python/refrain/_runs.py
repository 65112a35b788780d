"""Runs of the engine that must end when the interpreter does."""

from __future__ import annotations

import atexit
import os

from . import _refrain
from ._endpoints import Input
from ._errors import RefrainError
from ._refrain import Job

# Type checkers take it for true. The module typing would take longer to import than the package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    _R = TypeVar("_R")

_running: set[Job] = set()


def run(job: Job, inputs: Input | None, verb: Callable[[], _R]) -> _R:
    """Calls the engine. An exception of a file object that it read is raised as it is."""
    _running.add(job)
    try:
        return verb()
    except BaseException as error:
        job.cancel()  # Those who still supply it end.
        exception = inputs.exception() if inputs is not None else None
        if exception is None or not isinstance(error, RefrainError):
            raise
        raise exception from error
    finally:
        _running.discard(job)


def _end_all() -> None:
    for job in list(_running):
        job.cancel()


def _after_fork() -> None:
    _running.clear()
    _refrain.after_fork_in_child()


_refrain.set_main_thread()
atexit.register(_end_all)
os.register_at_fork(after_in_child=_after_fork)
