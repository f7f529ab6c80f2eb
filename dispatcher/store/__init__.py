"""The ledger and the registry in SQL: SQLite and PostgreSQL through SQLAlchemy."""
