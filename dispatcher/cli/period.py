"""A time as an analyst types it: so long ago, or a day."""

import re
from datetime import UTC, datetime, timedelta

from dispatcher.errors import ConfigurationError

_AGO = re.compile(r"(?P<count>\d{1,5})(?P<unit>[mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def read_time(text: str, now: datetime) -> int:
    """Milliseconds since the epoch.

    `7d` is so many weeks, days, hours or minutes (`w d h m`) ago; else an ISO 8601 date or time, in UTC
    where it names no zone. Raises ConfigurationError for anything else.
    """
    ago = _AGO.fullmatch(text)
    if ago is not None:
        moment = now - timedelta(**{_UNITS[ago["unit"]]: int(ago["count"])})
    else:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise ConfigurationError(
                f"{text!r} is no time: write 7d, 12h, 2026-11-01 or 2026-11-01T08:00"
            ) from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)
