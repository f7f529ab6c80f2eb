"""An endpoint that misbehaves costs one clear sentence, and none of its vectors is used."""

import socket
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

from dispatcher.errors import ConfigurationError, UnavailableError
from dispatcher.routing.embedder import TextRefusedError
from dispatcher.routing.hashing_encoder import HashingEncoder
from dispatcher.routing.openai_embeddings_encoder import REST, EndpointRules, OpenAiEmbeddingsEncoder
from tests.intents.held_clock import HeldClock
from tests.routing.embeddings_stub import embeddings_stub

TEXTS = ["where is my parcel", "我的快递到哪了"]


@pytest.fixture
def stub():
    with embeddings_stub() as running:
        yield running


@pytest.fixture
def encoder_of(stub):
    made = []

    def build(**rules) -> OpenAiEmbeddingsEncoder:
        made.append(OpenAiEmbeddingsEncoder(EndpointRules(**({"url": stub.url, "model": "m"} | rules))))
        return made[-1]

    yield build
    stub.released.set()
    for encoder in made:
        encoder.close()


MOODS = {
    "500": r"failed \(500\)",
    "503": r"failed \(503\)",
    "599": r"failed \(599\)",
    "404": r"failed \(404\)",
    "307": r"failed \(307\)",
    "429": r"takes no more for now \(429\)",
    "401": r"does not take the key \(401\)",
    "403": r"does not take the key \(403\)",
    "too short": r"gave vectors of shape \(2, 3\) instead of \(2, 512\)",
    "too few": "gave 1 vectors for 2 texts",
    "too many": "gave 3 vectors for 2 texts",
    "twice the same": "no list of vectors",
    "ragged": "no list of vectors",
    "words": "no list of vectors",
    "no rows": "no list of vectors",
    "nan": "no list of vectors",
    "html": "no list of vectors",
    "null": "holds no finite numbers",
    "huge": "holds no finite numbers",
    "endless": "can't be reached, or broke off",
    "broken off": "can't be reached, or broke off",
}


@pytest.mark.parametrize(("mood", "sentence"), MOODS.items(), ids=MOODS)
def test_what_is_wrong_is_one_sentence_and_the_next_call_is_a_new_one(stub, encoder_of, mood, sentence):
    encoder = encoder_of()
    stub.mood = mood

    with pytest.raises(UnavailableError, match=f"^the embeddings endpoint .*{sentence}") as caught:
        encoder.encode(TEXTS)
    stub.mood = "well"

    assert not any(hidden in caught.value.message for hidden in (*TEXTS, "secret details"))
    np.testing.assert_allclose(encoder.encode(TEXTS), HashingEncoder().encode(TEXTS), atol=1e-6)
    assert set(stub.paths) == {"/v1/embeddings"}


def test_a_slow_endpoint_is_not_waited_for(stub, encoder_of):
    encoder = encoder_of(dimensions=512, timeout_s=0.2)
    stub.mood = "slow"

    with pytest.raises(UnavailableError, match=r"did not answer within 0\.2 s"):
        encoder.encode(TEXTS)


def test_an_endpoint_that_is_not_there_is_one_sentence():
    before = set(threading.enumerate())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1/embeddings"

        with pytest.raises(UnavailableError, match="can't be reached"):
            OpenAiEmbeddingsEncoder(EndpointRules(url=url, model="m"))
    assert "embeddings" not in {thread.name for thread in set(threading.enumerate()) - before}


def test_vectors_come_in_the_order_of_the_texts(stub, encoder_of):
    encoder = encoder_of()
    stub.mood = "shuffled"

    np.testing.assert_allclose(encoder.encode(TEXTS), HashingEncoder().encode(TEXTS), atol=1e-6)


def test_model_prefixes_key_and_length_are_sent_and_the_key_is_shown_nowhere(stub, encoder_of):
    rules = {"key": "sk-of-the-endpoint", "query_prefix": "q: ", "passage_prefix": "p: ", "dimensions": 512}
    encoder = encoder_of(**rules)

    encoder.encode(["one"])
    encoder.encode(["two"], as_passages=True)

    fixed = {"model": "m", "encoding_format": "float", "dimensions": 512}
    assert stub.asked == [fixed | {"input": ["q: one"]}, fixed | {"input": ["p: two"]}]
    assert stub.keys == ["Bearer sk-of-the-endpoint"] * 2
    assert "sk-of" not in repr(EndpointRules(url=stub.url, model="m", key="sk-of-the-endpoint"))


def test_without_a_key_none_is_sent(stub, encoder_of):
    encoder_of()

    assert stub.keys == [None]
    assert "dimensions" not in stub.asked[0]


UNUSABLE = ["http://u:hunter2@127.0.0.1:1/", "http://:hunter2:1/", "hunter2"]


@pytest.mark.parametrize("url", UNUSABLE)
def test_an_address_that_can_not_be_asked_is_one_sentence_that_does_not_repeat_it(url):
    with pytest.raises(UnavailableError, match="can't be asked at this address") as caught:
        OpenAiEmbeddingsEncoder(EndpointRules(url=url, model="m", key="k"))

    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("text", ["\ud800", "refused"])
def test_a_text_that_is_not_taken_is_told_from_an_endpoint_that_fails(stub, encoder_of, text):
    encoder = encoder_of(dimensions=512)
    stub.refuses = "refused"

    for _ in range(REST.failures + 1):
        with pytest.raises(TextRefusedError):
            encoder.encode(["fine", text])

    assert encoder.encode(["fine"]).any()


STATUSES = {400: True, 413: True, 422: True, 401: False, 403: False, 404: False, 429: False, 500: False}


@pytest.mark.parametrize(("status", "is_about_texts"), STATUSES.items())
def test_some_statuses_say_that_other_texts_may_be_taken(stub, encoder_of, status, is_about_texts):
    encoder = encoder_of(dimensions=512)
    stub.mood = str(status)

    with pytest.raises(UnavailableError) as caught:
        encoder.encode(TEXTS)

    assert isinstance(caught.value, TextRefusedError) is is_about_texts


def test_what_is_compressed_is_not_asked_for(stub, encoder_of):
    encoder_of()

    assert stub.encodings == ["identity"]


def test_after_failures_in_a_row_it_is_left_alone_for_a_while(stub):
    clock = HeldClock()
    with closing(
        OpenAiEmbeddingsEncoder(EndpointRules(url=stub.url, model="m", dimensions=512), clock)
    ) as it:
        stub.mood = "500"
        for _ in range(REST.failures):
            with pytest.raises(UnavailableError, match="500"):
                it.encode(TEXTS)
        stub.mood = "well"

        with pytest.raises(UnavailableError, match="left alone"):
            it.encode(TEXTS)
        clock.now += REST.rest_s
        it.encode(TEXTS)

    assert len(stub.asked) == REST.failures + 1


def test_a_key_that_fits_no_header_is_refused():
    with pytest.raises(ConfigurationError, match="visible ASCII"):
        OpenAiEmbeddingsEncoder(EndpointRules(url="http://127.0.0.1:1", model="m", key="a\nb"))


def test_whoever_prepares_texts_otherwise_has_another_id_wherever_it_runs(stub, encoder_of):
    ids = {
        encoder_of(**rules).encoder_id
        for rules in ({}, {"model": "BAAI/bge-m3"}, {"query_prefix": "q"}, {"passage_prefix": "q"}, {})
    }

    ids |= {encoder_of(url=f"{stub.url}/elsewhere").encoder_id}

    assert len(ids) == 4
    assert all(character.isalnum() or character == "-" for one in ids for character in one)


def test_closing_ends_a_call_under_way(stub, encoder_of):
    encoder = encoder_of()
    stub.mood = "slow"
    with ThreadPoolExecutor(1) as thread:
        call = thread.submit(encoder.encode, TEXTS)
        assert stub.arrived.wait(timeout=20)
        encoder.close()

        with pytest.raises(UnavailableError, match="is not asked any more"):
            call.result(timeout=20)
