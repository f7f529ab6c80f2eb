"""Keeps a replica's calibration the one that all replicas have agreed on, and tells them of newer ones."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dispatcher.errors import ConfigurationError
from dispatcher.routing.calibration_record import Recorded
from dispatcher.routing.fitting import Fitted, Given
from dispatcher.routing.shadow import Shadow
from dispatcher.routing.stored_calibration import (
    DISPATCHER,
    SELF,
    CalibrationRepository,
    InUse,
    Made,
    Mark,
    State,
    Stored,
)

logger = logging.getLogger(__name__)

ROUNDS = 4
"""How often one look starts anew because another replica was first."""


class Calibrated(Protocol):
    """A router; see `router.Router`."""

    @property
    def encoder_id(self) -> str:
        """The encoder in use."""
        ...

    @property
    def fitted(self) -> Fitted | None:
        """What is used, and what self-calibration gives."""
        ...

    @property
    def given(self) -> Given | None:
        """What it was told last."""
        ...

    def follow(self, given: Given) -> None:
        """Go by this from now on."""
        ...


class CalibrationBook:
    """`look` is to be called every second, and after each change of the registry.

    A self-calibration that replaces the last one is put in force, one that waits for approval is
    proposed: by whichever replica has it first, and once.
    """

    def __init__(self, repository: CalibrationRepository, router: Calibrated, *, contrast: str) -> None:
        self._repository = repository
        self._router = router
        self._contrast = contrast
        self._marks: Sequence[Mark] = ()
        self._in_force: Stored | None = None
        self._given: Given | None = None
        self._told: object = None
        self._lock = asyncio.Lock()

    @property
    def in_use(self) -> InUse:
        """What a calibration has to fit to be used."""
        return InUse(encoder_id=self._router.encoder_id, contrast=self._contrast)

    async def look(self) -> None:
        """Take what is in force, tell what is new; raises UnavailableError without the database."""
        async with self._lock:
            for _ in range(ROUNDS):
                await self._take()
                if not await self._tell():
                    return

    async def introduce(self, router: Calibrated) -> None:
        """Tell a router that is about to serve what is in force; raises UnavailableError as `look` does."""
        marks = await self._repository.marks(router.encoder_id)
        in_force, shadow = await self._find(marks, State.IN_FORCE), await self._find(marks, State.SHADOW)
        in_use = InUse(encoder_id=router.encoder_id, contrast=self._contrast)
        router.follow(_as_given(in_force, shadow, in_use))

    async def _take(self) -> None:
        in_use = self.in_use
        marks = await self._repository.marks(in_use.encoder_id)
        is_followed = self._given is not None and self._router.given is self._given
        if is_followed and marks == self._marks:
            return
        in_force, shadow = await self._find(marks, State.IN_FORCE), await self._find(marks, State.SHADOW)
        if in_use != self.in_use:
            # The encoder was changed meanwhile; the new one's are taken at the next look.
            return
        self._marks, self._in_force = marks, in_force
        self._given = _as_given(in_force, shadow, in_use)
        self._router.follow(self._given)
        facts = {
            "in_force": in_force.number if in_force else None,
            "shadow": shadow.number if shadow else None,
        }
        logger.info("calibration.followed", extra=facts)

    async def _find(self, marks: Sequence[Mark], state: State) -> Stored | None:
        number = next((mark.number for mark in marks if mark.state is state), None)
        if number is None:
            return None
        try:
            return await self._repository.read(number)
        except ConfigurationError as error:
            # A later version's: the registry's own is used, and what is stored stays as it is.
            logger.warning("calibration.not_readable", extra={"number": number, "why": error.message})
            return None

    async def _tell(self) -> bool:
        """Store what self-calibration made since the last time; whether there may be something to take."""
        fitted = self._router.fitted
        if fitted is None or fitted.newest is None or fitted.newest.curve is None:
            return False
        # Each newest one once: two replicas that can't agree must not take turns for ever.
        if fitted.newest is self._told and self._in_force is not None:
            return False
        if self._in_force is not None and (self._in_force.held or self._in_force.origin != SELF):
            return False
        if self._in_force is None and any(mark.state is State.IN_FORCE for mark in self._marks):
            return False
        return await self._store(fitted)

    async def _store(self, fitted: Fitted) -> bool:
        newest = fitted.newest
        if newest is None:
            return False
        made = Made(
            recorded=Recorded(calibration=newest, contrast=self._contrast),
            made_by=DISPATCHER,
            report=_report(fitted),
        )
        if fitted.used is newest:
            expected = self._in_force.number if self._in_force else None
            if await self._repository.supersede(expected, made):
                self._told = newest
            return True
        if fitted.pending is newest:
            await self._repository.propose_once(made)
        self._told = newest
        return False


def _as_given(in_force: Stored | None, shadow: Stored | None, in_use: InUse) -> Given:
    for one in (in_force, shadow):
        if one is not None and not in_use.takes(one.recorded):
            logger.warning("calibration.not_usable", extra={"number": one.number, "kind": one.origin})
    base = in_force if in_force is not None and in_use.takes(in_force.recorded) else None
    asked = shadow if shadow is not None and in_use.takes(shadow.recorded) else None
    return Given(
        base=base.named if base else None,
        is_held=base is not None and base.held,
        shadow=Shadow(number=asked.number, calibration=asked.named) if asked else None,
    )


def _report(fitted: Fitted) -> Mapping[str, Any]:
    inside = fitted.observed.inside if fitted.observed else None
    return {
        "examples": 0 if inside is None else len(inside.score),
        "refused_examples": round(fitted.refused, 4),
    }
