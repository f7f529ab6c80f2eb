"""The topics of a conversation, for messages that go on with it.

Replicas of an earlier release make sessions without it and leave it as it is.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sessions", sa.Column("topics", sa.Text(), nullable=False, server_default="[]"))


def downgrade() -> None:
    op.drop_column("sessions", "topics")
