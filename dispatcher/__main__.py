"""`python -m dispatcher` and the `dispatcher` command."""

import sys


def main() -> None:
    """Run the command line; without the server's packages, say which extra brings them."""
    try:
        from dispatcher.cli.app import app
    except ModuleNotFoundError as missing:
        sys.exit(f"{missing.name!r} is not installed; the command line needs agent-reach-dispatcher[server]")
    app()


if __name__ == "__main__":
    main()
