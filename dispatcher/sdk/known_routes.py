"""What a client remembers of agents, for the time in which nobody tells it more."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field


class _Told(BaseModel):
    """Part of a reply; fields of later releases are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class DirectWay(_Told):
    """Where an agent may be called, and with which ticket."""

    endpoint: str = Field(pattern=r"^https?://[!-~]+$", max_length=2048)
    ticket: str = Field(repr=False)


class KnownAgent(_Told):
    """A candidate for one capability. `timeout_ms` is for the whole task."""

    agent_id: str
    score: float
    throttled: bool
    idempotent: bool
    timeout_ms: int
    direct: DirectWay | None = None


class Route(_Told):
    """What `GET /v1/route/{capability}` answered: agents, best first. `caller` is who asked."""

    capability: str
    caller: str
    inputs: Sequence[str] = ()
    candidates: Sequence[KnownAgent] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a route is for. `environment` None is the gateway's default."""

    capability: str
    environment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    route: Route | None = None
    at: float = 0.0


class KnownRoutes:
    """Routes by wish: at most `most`, the least lately wished for is forgotten first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[Wish, _Known] = OrderedDict()

    def wish(self, wish: Wish) -> bool:
        """Note that somebody wants this now; True for what was not wished for before, or was forgotten."""
        is_new = wish not in self._known
        self._known.setdefault(wish, _Known())
        self._known.move_to_end(wish)
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return is_new

    def put(self, wish: Wish, route: Route, now: float) -> None:
        """Remember; nothing happens where the wish was forgotten meanwhile."""
        if wish in self._known:
            self._known[wish] = _Known(route=route, at=now)

    def drop(self, wish: Wish) -> None:
        """The gateway says that there is nothing: forget what was known."""
        if wish in self._known:
            self._known[wish] = _Known()

    def older_than(self, age_s: float, now: float) -> Sequence[Wish]:
        """Wishes without a route, or with one of that age."""
        return [wish for wish, known in self._known.items() if known.route is None or now - known.at >= age_s]

    def find(self, wish: Wish, within_s: float, now: float) -> Route | None:
        """The route, if one is known that is younger than that."""
        known = self._known.get(wish)
        return known.route if known is not None and now - known.at < within_s else None
