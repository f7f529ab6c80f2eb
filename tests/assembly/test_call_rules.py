from dispatcher.assembly.rules import call_rules
from dispatcher.channel.http_call import CallTimes
from dispatcher.settings import effective, load_settings

SECRET = "a-secret-of-the-order-agent"  # noqa: S105


def test_a_capability_has_its_own_times_and_the_usual_ones_for_what_it_leaves_out(monkeypatch) -> None:
    monkeypatch.setenv("DISPATCHER_HTTP__CAPABILITIES", '{"order.query": {"read_timeout_s": 60}}')
    monkeypatch.setenv("DISPATCHER_HTTP__TOTAL_TIMEOUT_S", "90")

    rules = call_rules(load_settings())

    assert rules.times == CallTimes(connect_s=3, read_s=15, total_s=90)
    assert rules.times_of == {"order.query": CallTimes(connect_s=3, read_s=60, total_s=90)}


def test_credentials_reach_the_calls_and_nothing_that_is_shown() -> None:
    settings = load_settings(http={"credentials": {"order": SECRET}})

    rules = call_rules(settings)

    assert rules.credentials == {"order": SECRET}
    assert SECRET not in f"{effective(settings)} {settings!r} {rules!r}"
