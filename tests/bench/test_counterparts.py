"""What is compared with where it can be."""

import sys

from dispatcher.bench.counterparts import celery_is_missing


def test_celery_is_measured_where_it_is_installed():
    assert celery_is_missing() is None


def test_where_celery_is_not_installed_the_reason_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "celery", None)

    assert "agent-reach-dispatcher[bench]" in str(celery_is_missing())
