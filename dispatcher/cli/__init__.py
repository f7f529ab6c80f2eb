"""The command line; every command imports what it needs when it runs."""
