from pathlib import Path

import pytest

from tests.conformance.whole_behaviour import WholeBehaviour


class TestWholeOnSqlite(WholeBehaviour):
    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path / 'ledger.db'}"


class TestWholeOnPostgresql(WholeBehaviour):
    @pytest.fixture
    def store_url(self, postgres_url: str) -> str:
        return postgres_url
