"""`make bench`: what we add to the bare thing, as ratios; absolute figures depend on the machine."""

import asyncio

from tests.bench import dispatch, route


async def main() -> None:
    """One table after the other, nothing else running."""
    await route.run()
    await dispatch.run()


if __name__ == "__main__":
    asyncio.run(main())
