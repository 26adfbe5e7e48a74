"""Checkpoints that runs in this runner wait for: who asked, and what became of it."""

from __future__ import annotations

from concurrent.futures import Future

from fairway.core.ids import Epoch
from fairway.sdk.handler.checkpoint import CheckpointFailed, CheckpointRefused
from fairway.worker.pipe.pipe import STATE_BYTES_MAX, Checkpoint, CheckpointAnswer
from fairway.worker.pipe.run_messages import parsed

Key = tuple[str, Epoch, int]  # job, epoch, number


class PendingCheckpoints:
    """Asked from any thread; answered in the loop."""

    def __init__(self) -> None:
        self._asked: list[Checkpoint] = []
        self._waiting: dict[Key, Future[None]] = {}

    def ask(self, wanted: Checkpoint) -> Future[None]:
        saved: Future[None] = Future()
        self._waiting[wanted.job, wanted.epoch, wanted.number] = saved
        self._asked.append(wanted)
        return saved

    def take(self) -> list[Checkpoint]:
        """What the keeper has not been told of yet."""
        asked, self._asked = self._asked, []
        return asked

    def resolve(self, answer: CheckpointAnswer) -> None:
        saved = self._waiting.pop((answer.job, answer.epoch, answer.number), None)
        if saved is None or saved.done():
            return
        if answer.is_refused:
            saved.set_exception(CheckpointRefused(answer.problem))
        elif answer.problem:
            saved.set_exception(CheckpointFailed(answer.problem))
        else:
            saved.set_result(None)

    def give_up(self, job: str) -> None:
        """A thread of a run that was given up must not wait for ever."""
        for key in [key for key in self._waiting if key[0] == job]:
            self.resolve(CheckpointAnswer(job=job, epoch=key[1], number=key[2], problem=LOST))


LOST = "The lease is lost: another run has the job."


def checkpoint(job: str, epoch: Epoch, number: int, state: bytes) -> Checkpoint:
    """CheckpointRefused for what cannot go into a frame."""
    if len(state) > STATE_BYTES_MAX:
        message = f"The state has {len(state)} bytes; at most {STATE_BYTES_MAX} are saved."
        raise CheckpointRefused(message)
    try:
        return Checkpoint(job=job, epoch=epoch, number=number, state=parsed(state))
    except ValueError as error:
        raise CheckpointRefused(f"The state is no JSON: {error}") from None
