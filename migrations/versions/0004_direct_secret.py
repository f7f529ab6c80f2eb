"""The secret from which the keys for direct calls follow."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "direct_secret",
        sa.Column("row_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("made_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("row_id", name=op.f("pk_direct_secret")),
    )


def downgrade() -> None:
    op.drop_table("direct_secret")
