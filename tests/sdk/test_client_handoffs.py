"""What a client makes of the parts that people do."""

from tests.sdk.scripted import client_over, responding


async def test_a_page_of_handoffs_says_whether_there_are_more():
    client, transport = client_over(
        responding({"handoffs": [{"task_id": "r1.0"}], "more": True}), responding({"handoffs": []})
    )

    first = await client.handoffs(limit=1)
    last = await client.handoffs(answered=True, after="r1.0")

    assert first == {"handoffs": [{"task_id": "r1.0"}], "more": True}
    assert last == {"handoffs": [], "more": False}
    assert [request.path for request in transport.requests] == [
        "/v1/handoffs?answered=false&limit=1",
        "/v1/handoffs?answered=true&limit=50&after=r1.0",
    ]
