"""What a frame refuses before anyone acts on it."""

import json

import pytest
from pydantic import ValidationError

from dispatcher.protocol.frames import PartialFrame, ResultFrame

TOKEN = "0123456789abcdef"  # noqa: S105 - of a test
RESULT = {
    "v": 1,
    "type": "result",
    "request_id": "request-1",
    "task_id": "task-1",
    "attempt": 1,
    "token": TOKEN,
    "instance_id": "instance-1",
    "status": "success",
}
BAD_DOCUMENTS = {
    "integer": '{"x": [9223372036854775808]}',
    "negative integer": '{"x": -9223372036854775808}',
    "integer of 300 digits": f'{{"x": 1{"0" * 300}}}',
    "integer of 5000 digits": f'{{"x": 1{"0" * 5000}}}',
    "not finite": '{"x": 1e999}',
    "NaN": '{"x": NaN}',
    "NUL": '{"x": "\\u0000"}',
    "NUL in a name": '{"\\u0000": 1}',
    "surrogate": '{"x": "\\ud800"}',
    "surrogate in a name": '{"\\udc00": 1}',
    "depth": f'{{"x": {"[" * 32}{"]" * 32}}}',
}


def encoded(**fields: object) -> bytes:
    return json.dumps({**RESULT, **fields}).encode()


def with_document(where: str, document: str) -> bytes:
    return encoded(**{where: "HERE"}).replace(b'"HERE"', document.encode())


@pytest.mark.parametrize("document", BAD_DOCUMENTS.values(), ids=BAD_DOCUMENTS)
@pytest.mark.parametrize("where", ["usage", "context_update"])
def test_a_result_with_what_cannot_be_kept_is_refused(where, document):
    with pytest.raises(ValidationError):
        ResultFrame.model_validate_json(with_document(where, document))


@pytest.mark.parametrize("document", BAD_DOCUMENTS.values(), ids=BAD_DOCUMENTS)
def test_data_that_cannot_be_kept_is_refused_in_results_and_in_pieces_of_them(document):
    body = with_document("result", f'{{"data": {document}}}')

    with pytest.raises(ValidationError):
        ResultFrame.model_validate_json(body)
    with pytest.raises(ValidationError):
        PartialFrame.model_validate_json(
            body.replace(b'"type": "result"', b'"type": "partial", "sequence": 0')
        )


def test_data_at_the_bounds_comes_through_unchanged():
    data = {
        "least": -(2**63) + 1,
        "most": 2**63 - 1,
        "text": "\U0001f600",
        "deep": json.loads("[" * 31 + "]" * 31),
    }

    frame = ResultFrame.model_validate_json(encoded(result={"data": data}))

    assert frame.result.data == data


@pytest.mark.parametrize("where", ["request_id", "task_id", "instance_id", "error_code", "error_message"])
def test_no_text_of_a_result_holds_nul(where):
    with pytest.raises(ValidationError):
        ResultFrame.model_validate_json(encoded(**{where: "a\x00b"}))


def test_the_words_for_the_person_hold_no_nul():
    with pytest.raises(ValidationError):
        ResultFrame.model_validate_json(encoded(result={"text": "a\x00b"}))


@pytest.mark.parametrize("sign", ["\x00", " ", "\n", "\x7f", "é", "中"])
@pytest.mark.parametrize("place", [0, 8, 16])
def test_a_token_is_visible_ascii(sign, place):
    with pytest.raises(ValidationError):
        ResultFrame.model_validate_json(encoded(token=f"{TOKEN[:place]}{sign}{TOKEN[place:]}"))
