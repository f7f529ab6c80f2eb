"""Concurrent texts share encoder calls; known ones need none; every bound says what happens at it."""

import asyncio
import threading

import numpy as np
import pytest

from dispatcher.errors import OverloadedError, UnavailableError
from dispatcher.routing.batcher import BatchingEncoder, text_key
from dispatcher.routing.embedder import TextRefusedError
from dispatcher.routing.prepared import MAX_CHARACTERS


class HeldEncoder:
    """Encodes when told to, and remembers its calls."""

    encoder_id = "held"
    dimensions = 2

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.gate = threading.Event()
        self.started = threading.Event()
        self.failure: Exception | None = None

    def encode(self, texts, *, as_passages=False):
        self.calls.append(list(texts))
        self.started.set()
        assert self.gate.wait(timeout=20)
        if self.failure is not None:
            raise self.failure
        return np.array([[len(text), 2 if as_passages else 1] for text in texts], dtype=np.float32)


@pytest.fixture
def held():
    return HeldEncoder()


@pytest.fixture
def batching(held):
    made = []

    def build(**limits) -> BatchingEncoder:
        made.append(BatchingEncoder(held, **limits))
        return made[-1]

    yield build
    held.gate.set()
    for encoder in made:
        encoder.close()


async def _until_started(held) -> None:
    assert await asyncio.to_thread(held.started.wait, 20)
    held.started.clear()


async def test_what_arrives_during_a_call_is_one_next_call(held, batching):
    encoder = batching()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(encoder.encode(["first"]))]
        await _until_started(held)
        tasks += [group.create_task(encoder.encode([text, "both"])) for text in ("a", "bb")]
        await asyncio.wait(tasks, timeout=0)
        held.gate.set()

    assert held.calls == [["first"], ["a", "both", "bb"]]
    assert tasks[2].result().tolist() == [[2, 1], [4, 1]]


async def test_known_texts_are_not_encoded_again(held, batching):
    held.gate.set()
    encoder = batching()

    await encoder.encode(["where is  my parcel", "x"])
    again = await encoder.encode(["x", " where is my\nparcel "])

    assert held.calls == [["where is my parcel", "x"]]
    assert again.tolist() == [[1, 1], [18, 1]]


async def test_the_longest_unused_text_is_forgotten_first(held, batching):
    held.gate.set()
    encoder = batching(cache_size=2)
    await encoder.encode(["a", "b"])
    await encoder.encode(["a"])

    await encoder.encode(["c"])
    await encoder.encode(["a", "b"])

    assert held.calls == [["a", "b"], ["c"], ["b"]]


async def test_a_full_queue_refuses_and_accepts_nothing_of_the_call(held, batching):
    encoder = batching(queue_limit=2)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(encoder.encode(["running"]))
        await _until_started(held)
        waiting = group.create_task(encoder.encode(["one", "two"]))
        await asyncio.wait([running, waiting], timeout=0)

        with pytest.raises(OverloadedError):
            await encoder.encode(["three"])
        held.gate.set()

    assert held.calls == [["running"], ["one", "two"]]


async def test_a_batch_is_bounded(held, batching):
    held.gate.set()

    found = await batching(batch_size=2).encode(["a", "bb", "ccc", "dddd", "eeeee"])

    assert held.calls == [["a", "bb"], ["ccc", "dddd"], ["eeeee"]]
    assert found[:, 0].tolist() == [1, 2, 3, 4, 5]


async def test_a_cancelled_caller_takes_nothing_from_the_others(held, batching):
    encoder = batching()
    async with asyncio.TaskGroup() as group:
        impatient = group.create_task(encoder.encode(["text"]))
        await _until_started(held)
        patient = group.create_task(encoder.encode(["text"]))
        await asyncio.wait([patient], timeout=0)
        impatient.cancel()
        await asyncio.wait([impatient])
        held.gate.set()

    assert patient.result().tolist() == [[4, 1]]
    assert held.calls == [["text"]]


async def test_a_failing_encoder_is_unavailable_and_tried_again_for_the_next(held, batching):
    held.gate.set()
    held.failure = RuntimeError("out of memory")
    encoder = batching()

    with pytest.raises(UnavailableError) as caught:
        await encoder.encode(["text"])
    held.failure = None

    assert isinstance(caught.value.__cause__, RuntimeError)
    assert (await encoder.encode(["text"])).tolist() == [[4, 1]]


async def test_no_texts_need_no_call(held, batching):
    assert (await batching().encode([])).shape == (0, 2)
    assert held.calls == []


async def test_it_names_the_encoder_within(batching):
    encoder = batching()

    assert (encoder.encoder_id, encoder.dimensions) == ("held", 2)


def test_long_texts_are_cut_and_equal_forms_share_a_key():
    assert len(text_key("很" * 1000)) == MAX_CHARACTERS
    assert text_key("Cafe\u0301") == text_key("Caf\u00e9")


async def test_an_encoders_own_sentence_reaches_who_asked(held, batching):
    held.gate.set()
    held.failure = UnavailableError("the endpoint failed (500)")

    with pytest.raises(UnavailableError, match=r"^the endpoint failed \(500\)$"):
        await batching().encode(["text"])


async def test_a_text_is_encoded_as_a_query_and_as_a_passage(held, batching):
    held.gate.set()
    encoder = batching()

    query = await encoder.encode(["text"])
    passage = await encoder.encode(["text"], as_passages=True)
    again = await encoder.encode(["text"])

    assert [query.tolist(), passage.tolist(), again.tolist()] == [[[4, 1]], [[4, 2]], [[4, 1]]]
    assert held.calls == [["text"], ["text"]]


async def test_queries_and_passages_that_wait_share_no_call(held, batching):
    encoder = batching()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(encoder.encode(["running"]))]
        await _until_started(held)
        tasks += [
            group.create_task(encoder.encode([text], as_passages=as_passages))
            for text, as_passages in (("a", False), ("bb", True), ("bb", False), ("ccc", False))
        ]
        await asyncio.wait(tasks, timeout=0)
        held.gate.set()

    assert [task.result().tolist() for task in tasks[1:]] == [[[1, 1]], [[2, 2]], [[2, 1]], [[3, 1]]]
    assert held.calls == [["running"], ["a"], ["bb"], ["bb", "ccc"]]


async def test_a_closed_encoder_holds_no_vectors_and_encodes_no_more(held, batching):
    held.gate.set()
    encoder = batching()
    await encoder.encode(["text"])

    encoder.close()

    assert (encoder.encoder_id, encoder.dimensions) == ("held", 2)
    with pytest.raises(UnavailableError, match="closed"):
        await encoder.encode(["text"])


async def test_whoever_waits_when_it_is_stopped_is_told(held, batching):
    encoder = batching(batch_size=1)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        running = group.create_task(encoder.encode(["running"]))
        await _until_started(held)
        waiting = [group.create_task(_outcome(encoder, texts)) for texts in (["one"], ["two", "one"])]
        await asyncio.wait(waiting, timeout=0)

        encoder.stop()
        told = await asyncio.gather(*waiting)
        held.gate.set()

    assert told == ["the encoder is closed"] * 2
    assert running.result().tolist() == [[7, 1]]
    assert held.calls == [["running"]]


class PickyEncoder(HeldEncoder):
    """Takes no call that holds a text of `refused`, and fails at one that holds "down"."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.refused = set(refused)

    def encode(self, texts, *, as_passages=False):
        found = super().encode(texts, as_passages=as_passages)
        if self.refused & set(texts):
            raise TextRefusedError("refused (422)")
        if "down" in texts:
            raise UnavailableError("failed (503)")
        return found


async def _results(picky, *callers: list[str]) -> list[object]:
    """What each caller gets; all their texts share one batch behind another call."""
    encoder = BatchingEncoder(picky)
    try:
        async with asyncio.TaskGroup() as group:
            first = group.create_task(encoder.encode(["first"]))
            await _until_started(picky)
            tasks = [group.create_task(_outcome(encoder, texts)) for texts in callers]
            await asyncio.wait([first, *tasks], timeout=0)
            picky.gate.set()
        return [task.result() for task in tasks]
    finally:
        picky.gate.set()
        encoder.close()


async def _outcome(encoder, texts):
    try:
        return (await encoder.encode(texts))[:, 0].tolist()
    except UnavailableError as error:
        return error.message


async def test_a_text_that_is_refused_fails_only_those_who_asked_for_it():
    picky = PickyEncoder("bad")

    assert await _results(picky, ["a"], ["bad", "bb"], ["ccc"]) == [[1], "refused (422)", [3]]
    assert picky.calls[1:] == [["a", "bad", "bb", "ccc"], ["a"], ["bad"], ["bb"], ["ccc"]]


async def test_a_text_by_itself_that_is_refused_is_not_asked_for_again():
    picky = PickyEncoder("bad")

    assert await _results(picky, ["bad"]) == ["refused (422)"]
    assert picky.calls[1:] == [["bad"]]


async def test_what_fails_while_texts_are_asked_for_one_by_one_ends_that():
    picky = PickyEncoder("bad")

    said = await _results(picky, ["a"], ["down"], ["bad"], ["ccc"])

    assert said == [[1], "failed (503)", "failed (503)", "failed (503)"]
    assert picky.calls[2:] == [["a"], ["down"]]


async def test_whose_text_is_refused_is_told_that_and_no_trace_is_logged(caplog):
    picky = PickyEncoder("bad")
    picky.gate.set()
    encoder = BatchingEncoder(picky)
    try:
        with pytest.raises(TextRefusedError, match="422"):
            await encoder.encode(["bad"])
        with pytest.raises(UnavailableError) as failed:
            await encoder.encode(["down"])
    finally:
        encoder.close()

    assert not isinstance(failed.value, TextRefusedError)
    told = [(record.msg, record.exc_info is not None) for record in caplog.records]
    assert told == [("encoder.refused", False), ("encoder.failed", True)]
