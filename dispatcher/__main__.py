"""`python -m dispatcher` and the `dispatcher` command."""

import gc
import sys


def main() -> None:
    """Run the command line; without the server's packages, say which extra brings them."""
    # What is imported stays. A collector that looks at it again and again is a fifth of a start's CPU.
    gc.set_threshold(50_000, 20, 50)
    try:
        from dispatcher.cli.app import app
    except ModuleNotFoundError as missing:
        sys.exit(f"{missing.name!r} is not installed; the command line needs agent-reach-dispatcher[server]")
    app()


if __name__ == "__main__":
    main()
