"""What an inbox keeps of an attempt, and what tells of it after a restart."""

import msgspec
import pytest

from dispatcher.sdk.envelope import Envelope, envelope_of
from tests.sdk.stub_link import task_frame

STORED = b'{"request_id":"request-1","task_id":"t","attempt":2,"token":"abc","capability":"work.do"}'
"""As earlier releases wrote it too."""


def test_what_was_stored_is_read_back():
    envelope = envelope_of(task_frame(attempt=3))

    assert Envelope.decode(envelope.encode()) == envelope


def test_what_an_earlier_release_stored_is_read():
    envelope = Envelope.decode(STORED)

    assert envelope.encode() == STORED
    assert (envelope.attempt, envelope.token) == (2, "abc")


@pytest.mark.parametrize("stored", [b"", b"[]", b"\xff", b"{}", STORED.replace(b"2", b'"2"')])
def test_what_is_no_envelope_is_named_so(stored: bytes):
    with pytest.raises(msgspec.DecodeError):
        Envelope.decode(stored)
