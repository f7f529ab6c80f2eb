"""What is written for a message is what the library would write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.frame import marshal
from pamqp.header import ContentHeader

from dispatcher.amqp.encoding import Properties, ack, content, reject

CHANNELS = st.integers(1, 2**16 - 1)
TAGS = st.integers(1, 2**63 - 1)
"""As far as the library goes."""
TEXTS = st.text(max_size=63)
"""In UTF-8 that is at most 252 bytes."""
PROPERTIES = st.builds(
    Properties,
    message_id=TEXTS,
    kind=TEXTS,
    persistent=st.booleans(),
    correlation_id=st.none() | TEXTS,
    reply_to=st.none() | TEXTS,
    expiration=st.none() | TEXTS,
)


def by_the_library(channel: int, properties: Properties, body: bytes, most: int) -> bytes:
    known = Basic.Properties(
        content_type="application/json",
        delivery_mode=2 if properties.persistent else 1,
        correlation_id=properties.correlation_id,
        reply_to=properties.reply_to,
        expiration=properties.expiration,
        message_id=properties.message_id,
        message_type=properties.kind,
    )
    header = ContentHeader(body_size=len(body), properties=known)
    parts = [ContentBody(body[at : at + most]) for at in range(0, len(body), most)]
    return marshal(header, channel) + b"".join(marshal(part, channel) for part in parts)


@given(channel=CHANNELS, properties=PROPERTIES, body=st.binary(max_size=40), most=st.integers(1, 50))
def test_a_message_is_encoded_as_by_the_library(channel: int, properties: Properties, body: bytes, most: int):
    assert content(channel, properties, body, most) == by_the_library(channel, properties, body, most)


@given(channel=CHANNELS, tag=TAGS, multiple=st.booleans())
def test_an_acknowledgement_is_encoded_as_by_the_library(channel: int, tag: int, multiple: bool):
    assert ack(channel, tag, multiple=multiple) == marshal(Basic.Ack(tag, multiple), channel)


@given(channel=CHANNELS, tag=TAGS, requeue=st.booleans())
def test_a_rejection_is_encoded_as_by_the_library(channel: int, tag: int, requeue: bool):
    assert reject(channel, tag, requeue=requeue) == marshal(Basic.Reject(tag, requeue), channel)


def test_a_property_that_does_not_fit_is_not_cut():
    with pytest.raises(OverflowError):
        content(1, Properties("m", "task", reply_to="x" * 256), b"", 1)
