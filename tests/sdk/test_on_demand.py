"""What an agent does without is loaded when it is asked for, and not before."""

import asyncio
import subprocess
import sys

import pytest

import dispatcher.sdk
from dispatcher.sdk import on_demand
from dispatcher.sdk.client import Client

UNNEEDED = """
import sys, dispatcher.sdk
print(sorted({'aiohttp', 'asyncpg', 'sqlite3', 'uvloop'} & sys.modules.keys()))
"""


def test_an_agent_loads_neither_the_callers_library_nor_sqlite_nor_the_extras():
    ran = subprocess.run([sys.executable, "-c", UNNEEDED], capture_output=True, text=True, check=True)

    assert ran.stdout == "[]\n"


def test_every_public_name_is_there():
    assert all(hasattr(dispatcher.sdk, name) for name in dispatcher.sdk.__all__)
    assert set(on_demand.HOMES) < set(dispatcher.sdk.__all__)
    assert dispatcher.sdk.Client is Client


def test_any_other_name_is_refused_in_the_usual_words():
    with pytest.raises(AttributeError, match=r"module 'dispatcher\.sdk' has no attribute 'Nothing'"):
        on_demand.public("Nothing")


def test_the_loop_is_the_fast_one_where_it_is_installed():
    loop = on_demand.new_loop()
    loop.close()

    assert isinstance(loop, asyncio.AbstractEventLoop)
    assert type(loop).__module__.startswith("uvloop")
