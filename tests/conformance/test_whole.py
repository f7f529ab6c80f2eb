import pytest

from tests.conformance.whole_behaviour import WholeBehaviour


class TestWholeOnSqlite(WholeBehaviour):
    @pytest.fixture
    def store_url(self, upgraded_sqlite_url: str) -> str:
        return upgraded_sqlite_url


class TestWholeOnPostgresql(WholeBehaviour):
    @pytest.fixture
    def store_url(self, upgraded_postgres_url: str) -> str:
        return upgraded_postgres_url
