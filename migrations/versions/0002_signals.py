"""What agents say while they work, what conversations remember, keys of repeated tasks."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("requests", sa.Column("session_version", sa.BigInteger(), nullable=True))
    op.add_column("tasks", sa.Column("idempotency_key", sa.Text(), nullable=True))
    op.add_column("attempts", sa.Column("started_ms", sa.BigInteger(), nullable=True))
    op.add_column("attempts", sa.Column("lease_ms", sa.BigInteger(), nullable=True))
    op.add_column("attempts", sa.Column("progress", sa.Text(), nullable=True))
    op.add_column("tasks", sa.Column("repeat", sa.Integer(), nullable=False, server_default="0"))
    index_tasks("ix_tasks_repeated", ["idempotency_key"], "idempotency_key IS NOT NULL")
    index_tasks(
        "ix_tasks_dead",
        ["finished_ms", "task_id"],
        "status IN ('failed', 'unavailable', 'outcome_unknown')",
    )
    create_partials()
    create_sessions()
    create_dead_frames()


def index_tasks(name: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, "tasks", columns, postgresql_where=where, sqlite_where=where)


def create_partials() -> None:
    op.create_table(
        "partials",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("recorded_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["request_id"],
            ["requests.request_id"],
            name="fk_partials_request_id_requests",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("request_id", "task_id", "attempt", "sequence", name="pk_partials"),
    )


def create_sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("context", sa.Text(), nullable=False),
        sa.Column("questions", sa.Text(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("caller", "session_id", name="pk_sessions"),
    )
    op.create_index("ix_sessions_changed_ms", "sessions", ["changed_ms"])


def create_dead_frames() -> None:
    op.create_table(
        "dead_frames",
        sa.Column("dead_id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("recorded_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("dead_id", name="pk_dead_frames"),
    )
    op.create_index("ix_dead_frames_recorded_ms", "dead_frames", ["recorded_ms", "dead_id"])


def downgrade() -> None:
    op.drop_table("dead_frames")
    op.drop_table("sessions")
    op.drop_table("partials")
    op.drop_column("attempts", "progress")
    op.drop_column("attempts", "lease_ms")
    op.drop_column("attempts", "started_ms")
    op.drop_index("ix_tasks_dead", "tasks")
    op.drop_index("ix_tasks_repeated", "tasks")
    op.drop_column("tasks", "repeat")
    op.drop_column("tasks", "idempotency_key")
    op.drop_column("requests", "session_version")
