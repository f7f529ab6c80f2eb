"""Where a setting's value comes from, what is refused, and that no secret is shown."""

from pathlib import Path

import pytest

from dispatcher.errors import ConfigurationError
from dispatcher.settings import PREFIX, effective, load_settings
from tests.services.environment import variables


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in variables():
        if name.upper().startswith(PREFIX):
            monkeypatch.delenv(name)


def yaml_file(folder: Path, text: str | bytes) -> Path:
    file = folder / "dispatcher.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def refusal(file: Path | None = None, **overrides: object) -> str:
    with pytest.raises(ConfigurationError) as refused:
        load_settings(file, **overrides)
    return refused.value.message


def test_an_argument_wins_over_the_environment_that_over_the_file_and_that_over_the_default(
    tmp_path, monkeypatch
):
    file = yaml_file(tmp_path, "server: {port: 1, max_wait_s: 11, drain_s: 21}\nenvironment: staging\n")
    monkeypatch.setenv("DISPATCHER_SERVER__PORT", "2")
    monkeypatch.setenv("DISPATCHER_SERVER__MAX_WAIT_S", "12")

    settings = load_settings(file, server={"port": 3})

    server = settings.server
    assert (server.port, server.max_wait_s, server.drain_s, server.max_waiting) == (3, 12, 21, 10_000)
    assert settings.environment == "staging"


def test_without_anything_it_is_one_process_on_sqlite_on_loopback():
    settings = load_settings()

    assert settings.store_url == "sqlite:///.dispatcher/dispatcher.db"
    assert settings.broker_url is None
    assert (settings.server.host, settings.auth.development) == ("127.0.0.1", False)


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_sets_nothing(tmp_path, text):
    assert effective(load_settings(yaml_file(tmp_path, text))) == effective(load_settings())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("server: [1\n", "is not YAML in UTF-8 (line 2, column 1)"),
        ("since: 2026-99-99\n", "is not YAML in UTF-8"),
        (b"\xff\xfe\x00", "is not YAML in UTF-8"),
        ("[" * 5000, "is not YAML in UTF-8"),
        ("- server\n", "must hold groups of settings by name"),
        ("just words\n", "must hold groups of settings by name"),
        ("1: x\n", "must hold groups of settings by name"),
        ("server: 3\n", "'server' is a group and must hold settings by name"),
        ("server:\n", "'server' is a group and must hold settings by name"),
        ("sever: {port: 1}\n", "there is no setting 'sever'"),
        ("server: {prot: 1}\n", "there is no setting 'server.prot'"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_clear_sentence(tmp_path, text, reason):
    said = refusal(yaml_file(tmp_path, text))

    assert said.endswith(reason)
    assert "\n" not in said


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert refusal(tmp_path / "none.yaml").endswith("none.yaml' does not exist")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("DISPATCHER_NONSENSE", "'DISPATCHER_NONSENSE' is not a setting"),
        ("DISPATCHER_ROUTING__FLOR", "there is no setting 'routing.flor'"),
        ("DISPATCHER_SERVER", "'DISPATCHER_SERVER' names a group"),
    ],
)
def test_an_unknown_variable_is_named(monkeypatch, name, reason):
    monkeypatch.setenv(name, "1")

    assert reason in refusal()


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"server": {"port": 65536}}, "setting 'server.port': "),
        ({"server": {"host": ""}}, "setting 'server.host': "),
        ({"server": {"max_wait_s": float("inf")}}, "setting 'server.max_wait_s': "),
        ({"routing": {"floor": 1.1}}, "setting 'routing.floor': "),
        (
            {"routing": {"similarity": 0.9}},
            "setting 'routing': similarity, success and headroom must sum to 1",
        ),
        ({"delivery": {"max_attempts": 4}}, "setting 'delivery.max_attempts': "),
        ({"delivery": {"claim_s": 5.9}}, "setting 'delivery.claim_s': "),
        ({"delivery": {"delay_min_ms": 801}}, "setting 'delivery': delay_min_ms must not be above"),
        ({"liveness": {"heartbeat_s": 15}}, "setting 'liveness': heartbeat_s must be below"),
        ({"liveness": {"offline_after_s": 15}}, "setting 'liveness': heartbeat_s must be below"),
        ({"retention": {"results_days": 0}}, "setting 'retention.results_days': "),
        ({"http": {"allowed_networks": ["10.0.0.1/8"]}}, "setting 'http.allowed_networks.0': "),
        ({"http": {"connect_timeout_s": 6}}, "setting 'http.connect_timeout_s': "),
        (
            {"http": {"capabilities": {"order.query": {"connect_timeout_s": 6}}}},
            "setting 'http.capabilities.order.query.connect_timeout_s': ",
        ),
        (
            {"http": {"credentials": {"order": "two words of a secret"}}},
            "setting 'http.credentials': that of 'order' must be visible ASCII without spaces",
        ),
        ({"http": {"credentials": {"order": "short"}}}, "setting 'http.credentials.order': "),
        ({"environment": "Production"}, "setting 'environment': "),
        ({"encoder": {"name": "other"}}, "setting 'encoder.name': "),
        (
            {"routing": {"fallback": "agent"}},
            "setting 'routing': 'fallback: agent' and 'fallback_capability'",
        ),
        ({"routing": {"fallback_capability": "faq"}}, "setting 'routing': 'fallback: agent' and"),
        ({"routing": {"clarify": {"Faq": 0.1}}}, "setting 'routing.clarify."),
        ({"routing": {"synonyms": {"": "faq"}}}, "setting 'routing.synonyms."),
        ({"llm": {"url": "models:8000", "model": "m"}}, "setting 'llm': 'url' must read http://host:port/"),
        ({"llm": {"url": "http://models/v1"}}, "setting 'llm': 'url' and 'model' go together"),
        ({"llm": {"model": "m"}}, "setting 'llm': 'url' and 'model' go together"),
        ({"llm": {"timeout_s": 31}}, "setting 'llm.timeout_s': "),
        ({"llm": {"tokens_per_minute": 0}}, "setting 'llm.tokens_per_minute': "),
        ({"llm": {"margin": 1.1}}, "setting 'llm.margin': "),
        ({"encoder": {"name": "openai"}}, "setting 'encoder': the encoder 'openai' needs 'model'"),
        ({"encoder": {"model": "m"}}, "setting 'encoder': the encoder 'use' takes no 'model'"),
        (
            {"encoder": {"name": "openai", "model": "m", "url": "localhost:8000"}},
            "setting 'encoder': the encoder 'openai' needs 'url': http://",
        ),
        ({"encoder": {"batch_size": 0}}, "setting 'encoder.batch_size': "),
        ({"encoder": {"queue_limit": 63}}, "setting 'encoder.queue_limit': "),
        (
            {"encoder": {"queue_limit": 64, "batch_size": 65}},
            "setting 'encoder': 'queue_limit' must be at least 'batch_size'",
        ),
        ({"encoder": {"device": "cpu; x"}}, "setting 'encoder.device': "),
        (
            {"auth": {"development": True}, "server": {"host": "0.0.0.0"}},  # noqa: S104
            "development mode listens on loopback only",
        ),
    ],
)
def test_a_value_out_of_its_range_is_one_clear_sentence(overrides, said):
    message = refusal(**overrides)

    assert message.startswith(said)
    assert "Value error" not in message


def test_equal_delays_are_a_range_too():
    assert load_settings(delivery={"delay_min_ms": 0, "delay_max_ms": 0}).delivery.delay_max_ms == 0


@pytest.mark.parametrize(
    "url", ["amqp://guest:guest@127.0.0.1:5672/", "amqps://broker", "amqp://[::1]:5672/v"]
)
def test_a_brokers_address_is_taken(url):
    assert load_settings(broker={"url": url}).broker_url == url


@pytest.mark.parametrize(
    "url",
    [
        "http://secret@x",
        "amqp://",
        "amqp:///vhost",
        "amqp://secret@h:abc/",
        "amqp://h:70000",
        "amqp://[::1",
        "x",
    ],
)
def test_what_is_no_brokers_address_is_refused_and_not_repeated(url):
    message = refusal(broker={"url": url})

    assert message.startswith("setting 'broker.url': must read amqp://")
    assert "secret" not in message


def test_allowed_networks_are_a_json_list_in_a_variable(monkeypatch):
    monkeypatch.setenv("DISPATCHER_HTTP__ALLOWED_NETWORKS", '["10.20.0.0/16", "fd00::/64"]')

    assert effective(load_settings())["http"]["allowed_networks"] == ["10.20.0.0/16", "fd00::/64"]


ENDPOINTS = [("encoder", {"name": "openai", "model": "m"}), ("encoder", {}), ("llm", {"model": "m"})]


@pytest.mark.parametrize(("group", "rest"), ENDPOINTS)
@pytest.mark.parametrize("user", ["u:hunter2", ":hunter2", "hunter2", "hunter2@x"])
def test_an_address_that_holds_a_password_is_refused_and_not_repeated(group, rest, user):
    message = refusal(**{group: rest | {"url": f"https://{user}@h/v1"}})

    assert message == (
        f"setting '{group}.url': must hold no user and password; a key goes into 'key' beside it"
    )


@pytest.mark.parametrize(("group", "rest"), ENDPOINTS)
@pytest.mark.parametrize("ending", ["?api-key=hunter2", "?a@b=hunter2", "#hunter2", "?x\nhunter2"])
def test_the_query_of_an_address_is_masked_where_settings_are_shown(group, rest, ending):
    settings = load_settings(**{group: rest | {"url": f"https://h/v1{ending}"}})

    assert effective(settings)[group]["url"] == f"https://h/v1{ending[0]}**********"
    assert "hunter2" not in repr(settings)
    assert getattr(settings, group).url == f"https://h/v1{ending}"


def test_secrets_are_masked_where_settings_are_shown():
    settings = load_settings(
        store={"url": "postgresql://u:hunter2@h/d"},
        broker={"url": "amqp://u:hunter2@h/"},
        encoder={"name": "openai", "model": "m", "url": "https://h/v1/embeddings", "key": "hunter2"},
        llm={"model": "m", "url": "https://h/v1/chat/completions", "key": "hunter2"},
    )

    assert "hunter2" not in str(effective(settings)) + repr(settings)
    assert effective(settings)["broker"]["url"] == "**********"
    assert settings.broker_url == "amqp://u:hunter2@h/"
    assert settings.encoder.key.get_secret_value() == "hunter2"
