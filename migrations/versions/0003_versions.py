"""Each change of a request is counted, so that a replica can change what it wrote last without reading it.

On PostgreSQL triggers count the changes of replicas of an earlier release, which don't. A replica
that counts says so in its connections, and of a trigger there only the condition is run. Nobody
but its one process changes a SQLite database.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_UNCOUNTED = "current_setting('dispatcher.counts', true) IS DISTINCT FROM 'on'"
_PARTS = ("tasks", "attempts")


def upgrade() -> None:
    op.add_column("requests", sa.Column("version", sa.Integer(), nullable=False, server_default="0"))
    if op.get_bind().dialect.name == "postgresql":
        _count_for_earlier_replicas()


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table in _PARTS:
            op.execute(f"DROP TRIGGER count_version ON {table}")
        op.execute("DROP TRIGGER count_version ON requests")
        op.execute("DROP FUNCTION count_part_version()")
        op.execute("DROP FUNCTION count_request_version()")
    op.drop_column("requests", "version")


def _count_for_earlier_replicas() -> None:
    op.execute(
        "CREATE FUNCTION count_request_version() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN NEW.version := OLD.version + 1; RETURN NEW; END $$"
    )
    op.execute(
        "CREATE FUNCTION count_part_version() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " UPDATE requests SET version = version + 1 WHERE request_id = NEW.request_id; RETURN NULL; END $$"
    )
    op.execute(
        "CREATE TRIGGER count_version BEFORE UPDATE OF status ON requests FOR EACH ROW"
        f" WHEN ({_UNCOUNTED}) EXECUTE FUNCTION count_request_version()"
    )
    for table in _PARTS:
        # A claim of the outbox sets no status: it counts nowhere.
        op.execute(
            f"CREATE TRIGGER count_version AFTER INSERT OR UPDATE OF status ON {table} FOR EACH ROW"
            f" WHEN ({_UNCOUNTED}) EXECUTE FUNCTION count_part_version()"
        )
