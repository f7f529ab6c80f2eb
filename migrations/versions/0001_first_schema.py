"""The first schema: ledger, registry, access."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = (
    "requests",
    "intents",
    "tasks",
    "attempts",
    "results",
    "decisions",
    "agents",
    "instances",
    "leases",
    "capability_contracts",
    "registry_version",
    "api_keys",
    "grants",
)
"""In the order they are created; what refers to another comes after it."""


def upgrade() -> None:
    create_requests()
    create_intents()
    create_tasks()
    create_attempts()
    create_results()
    create_decisions()
    create_agents()
    create_instances()
    create_leases()
    create_capability_contracts()
    create_registry_version()
    create_api_keys()
    create_grants()


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)


def create_requests() -> None:
    op.create_table(
        "requests",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("replica", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("context", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("body_digest", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("deadline_ms", sa.BigInteger(), nullable=False),
        sa.Column("finished_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("request_id", name="pk_requests"),
        sa.UniqueConstraint("caller", "idempotency_key", name="uq_requests_caller_idempotency_key"),
    )
    op.create_index(
        "ix_requests_finished", "requests", ["finished_ms", "request_id"], **where("finished_ms IS NOT NULL")
    )
    op.create_index("ix_requests_open", "requests", ["deadline_ms"], **where("status = 'open'"))
    op.create_index("ix_requests_user", "requests", ["user_id", "caller"], **where("user_id IS NOT NULL"))


def create_intents() -> None:
    op.create_table(
        "intents",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("capability", sa.Text(), nullable=True),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("entities", sa.Text(), nullable=False),
        sa.Column("inputs", sa.Text(), nullable=False),
        sa.Column("links", sa.Text(), nullable=False),
        sa.Column("missing", sa.Text(), nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["request_id"], ["requests.request_id"], name="fk_intents_request_id_requests", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("request_id", "position", name="pk_intents"),
    )


def create_tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("capability", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("idempotent", sa.Boolean(), nullable=False),
        sa.Column("timeout_ms", sa.BigInteger(), nullable=False),
        sa.Column("similarity", sa.Double(), nullable=False),
        sa.Column("inputs", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("opened_ms", sa.BigInteger(), nullable=True),
        sa.Column("deadline_ms", sa.BigInteger(), nullable=True),
        sa.Column("finished_ms", sa.BigInteger(), nullable=True),
        sa.Column("result_text", sa.Text(), nullable=True),
        sa.Column("result_data", sa.Text(), nullable=True),
        sa.Column("result_digest", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("ranking", sa.Text(), nullable=True),
        sa.Column("retry_after_s", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["request_id"], ["requests.request_id"], name="fk_tasks_request_id_requests", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("request_id", "task_id", name="pk_tasks"),
        sa.UniqueConstraint("request_id", "position", name="uq_tasks_request_id_position"),
    )
    op.create_index("ix_tasks_open", "tasks", ["deadline_ms"], **where("status IN ('waiting', 'open')"))


def create_attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("not_before_ms", sa.BigInteger(), nullable=False),
        sa.Column("timeout_ms", sa.BigInteger(), nullable=False),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_until_ms", sa.BigInteger(), nullable=True),
        sa.Column("published_ms", sa.BigInteger(), nullable=True),
        sa.Column("lapse_ms", sa.BigInteger(), nullable=True),
        sa.Column("finished_ms", sa.BigInteger(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["request_id", "task_id"],
            ["tasks.request_id", "tasks.task_id"],
            name="fk_attempts_request_id_task_id_tasks",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("request_id", "task_id", "number", name="pk_attempts"),
    )
    op.create_index(
        "ix_attempts_claimed",
        "attempts",
        ["claimed_until_ms", "agent_id"],
        **where("status = 'due' AND claimed_until_ms IS NOT NULL"),
    )
    op.create_index("ix_attempts_due", "attempts", ["agent_id", "not_before_ms"], **where("status = 'due'"))
    op.create_index("ix_attempts_finished", "attempts", ["finished_ms"], **where("finished_ms IS NOT NULL"))
    op.create_index(
        "ix_attempts_published", "attempts", ["lapse_ms", "agent_id"], **where("status = 'published'")
    )


def create_results() -> None:
    op.create_table(
        "results",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("result_id", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("instance_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("recorded_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["request_id"], ["requests.request_id"], name="fk_results_request_id_requests", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("request_id", "result_id", name="pk_results"),
    )


def create_decisions() -> None:
    op.create_table(
        "decisions",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("recorded_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["request_id"],
            ["requests.request_id"],
            name="fk_decisions_request_id_requests",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("request_id", "position", "number", name="pk_decisions"),
    )


def create_agents() -> None:
    op.create_table(
        "agents",
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("declaration", sa.Text(), nullable=False),
        sa.Column("registered_ms", sa.BigInteger(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("agent_id", name="pk_agents"),
    )


def create_instances() -> None:
    op.create_table(
        "instances",
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("instance_id", sa.Text(), nullable=False),
        sa.Column("inbox", sa.Text(), nullable=False),
        sa.Column("inbox_id", sa.Text(), nullable=True),
        sa.Column("draining", sa.Boolean(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.agent_id"], name="fk_instances_agent_id_agents", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("agent_id", "name", name="pk_instances"),
        sa.UniqueConstraint("instance_id", name="uq_instances_instance_id"),
    )


def create_leases() -> None:
    op.create_table(
        "leases",
        sa.Column("instance_id", sa.Text(), nullable=False),
        sa.Column("lease_id", sa.Text(), nullable=False),
        sa.Column("granted_ms", sa.BigInteger(), nullable=False),
        sa.Column("seen_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["instance_id"],
            ["instances.instance_id"],
            name="fk_leases_instance_id_instances",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("instance_id", name="pk_leases"),
        sa.UniqueConstraint("lease_id", name="uq_leases_lease_id"),
    )


def create_capability_contracts() -> None:
    op.create_table(
        "capability_contracts",
        sa.Column("capability", sa.Text(), nullable=False),
        sa.Column("input_schema", sa.Text(), nullable=False),
        sa.Column("output_schema", sa.Text(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("capability", name="pk_capability_contracts"),
    )


def create_registry_version() -> None:
    op.create_table(
        "registry_version",
        sa.Column("row_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("row_id", name="pk_registry_version"),
    )
    op.execute("INSERT INTO registry_version (row_id, version) VALUES (1, 0)")


def create_api_keys() -> None:
    op.create_table(
        "api_keys",
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("secret_sha256", sa.Text(), nullable=False),
        sa.Column("revoked", sa.Boolean(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key_id", name="pk_api_keys"),
    )


def create_grants() -> None:
    op.create_table(
        "grants",
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("capability", sa.Text(), nullable=False),
        sa.Column("granted_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("caller", "capability", name="pk_grants"),
    )


def where(condition: str) -> dict[str, sa.TextClause]:
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}
