"""What people say about routing, calibrations by number, and parts that wait for a person."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def _of_request(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["request_id"],
        ["requests.request_id"],
        name=op.f(f"fk_{table}_request_id_requests"),
        ondelete="CASCADE",
    )


def upgrade() -> None:
    op.create_table(
        "feedback",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("capability", sa.Text()),
        sa.Column("given_by", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("recorded_ms", sa.BigInteger(), nullable=False),
        _of_request("feedback"),
        sa.PrimaryKeyConstraint("request_id", "position", name=op.f("pk_feedback")),
    )
    op.create_index("ix_feedback_recorded_ms", "feedback", ["recorded_ms", "request_id"])
    op.create_table(
        "calibrations",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("encoder_id", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("report", sa.Text(), nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("made_by", sa.Text(), nullable=False),
        sa.Column("changed_by", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_calibrations")),
    )
    op.create_table(
        "handoffs",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("described", sa.Text()),
        sa.Column("published_ms", sa.BigInteger()),
        sa.Column("publish_error", sa.Text()),
        sa.Column("claimed_until_ms", sa.BigInteger()),
        sa.Column("answer", sa.Text()),
        sa.Column("answered_by", sa.Text()),
        sa.Column("answered_ms", sa.BigInteger()),
        _of_request("handoffs"),
        sa.PrimaryKeyConstraint("request_id", "task_id", name=op.f("pk_handoffs")),
    )
    _index_where("ix_handoffs_open", ["request_id", "task_id"], "answered_ms IS NULL")
    _index_where(
        "ix_handoffs_unpublished",
        ["request_id", "task_id"],
        "published_ms IS NULL AND answered_ms IS NULL AND publish_error IS NULL",
    )
    _index_where("ix_handoffs_answered", ["answered_ms", "task_id"], "answered_ms IS NOT NULL")


def _index_where(name: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, "handoffs", columns, postgresql_where=where, sqlite_where=where)


def downgrade() -> None:
    for name in ("ix_handoffs_answered", "ix_handoffs_unpublished", "ix_handoffs_open"):
        op.drop_index(name, table_name="handoffs")
    op.drop_table("handoffs")
    op.drop_table("calibrations")
    op.drop_index("ix_feedback_recorded_ms", table_name="feedback")
    op.drop_table("feedback")
