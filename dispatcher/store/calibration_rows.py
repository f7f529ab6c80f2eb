"""Rows of the calibrations' table as the rest knows them. Pure."""

from sqlalchemy import RowMapping

from dispatcher.errors import ConfigurationError
from dispatcher.routing.calibration_record import read_calibration
from dispatcher.routing.stored_calibration import State, Stored, Unreadable


def to_stored(row: RowMapping) -> Stored:
    """Raises ConfigurationError for one of a form that this version can't read."""
    return Stored(
        recorded=read_calibration(row["document"]),
        number=row["number"],
        state=State(row["state"]),
        held=row["held"],
        report=row["report"],
        made_by=row["made_by"],
        changed_by=row["changed_by"],
        created_ms=row["created_ms"],
        changed_ms=row["changed_ms"],
    )


def to_listed(row: RowMapping) -> Stored | Unreadable:
    """One for lists: a later version's must not keep the others from being seen."""
    try:
        return to_stored(row)
    except ConfigurationError:
        return Unreadable(
            number=row["number"],
            encoder_id=row["encoder_id"],
            origin=row["origin"],
            state=State(row["state"]),
            held=row["held"],
            made_by=row["made_by"],
            changed_by=row["changed_by"],
            created_ms=row["created_ms"],
            changed_ms=row["changed_ms"],
        )
