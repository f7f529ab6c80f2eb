"""Every table, its keys and the indexes that the queries need.

Times are `_ms` columns: BIGINT milliseconds since the epoch by the database's clock. What
belongs to a request leads its key with the request, so that reading, locking and deleting a
request walk one range of each table; what belongs to a caller carries the caller.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from dispatcher.store.column import Json, Number, Words

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _of_request(*, primary_key: bool = True) -> Column[str]:
    return Column(
        "request_id",
        Text,
        ForeignKey("requests.request_id", ondelete="CASCADE"),
        primary_key=primary_key,
        nullable=False,
    )


def _where(name: str, table: Table, columns: tuple[str, ...], condition: str) -> Index:
    where = text(condition)
    return Index(name, *(table.c[c] for c in columns), postgresql_where=where, sqlite_where=where)


requests = Table(
    "requests",
    metadata,
    Column("request_id", Text, primary_key=True),
    Column("caller", Text, nullable=False),
    Column("replica", Text, nullable=False),
    Column("message", Words, nullable=False),
    Column("language", Text, nullable=False),
    Column("environment", Text, nullable=False),
    Column("session_id", Words),
    Column("user_id", Words),
    Column("context", Json, nullable=False),
    Column("idempotency_key", Words),
    Column("body_digest", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("answer", Words),
    Column("created_ms", BigInteger, nullable=False),
    Column("deadline_ms", BigInteger, nullable=False),
    Column("finished_ms", BigInteger),
    Column("session_version", BigInteger),
    # Counts the changes of the request and of all that belongs to it, claims left out.
    Column("version", Integer, nullable=False, server_default=text("0")),
    UniqueConstraint("caller", "idempotency_key"),
)
_where("ix_requests_open", requests, ("deadline_ms",), "status = 'open'")
_where("ix_requests_finished", requests, ("finished_ms", "request_id"), "finished_ms IS NOT NULL")
_where("ix_requests_user", requests, ("user_id", "caller"), "user_id IS NOT NULL")

intents = Table(
    "intents",
    metadata,
    _of_request(),
    Column("position", Integer, primary_key=True),
    Column("caller", Text, nullable=False),
    Column("text", Words, nullable=False),
    Column("capability", Text),
    Column("confidence", Number, nullable=False),
    Column("entities", Json, nullable=False),
    Column("inputs", Json, nullable=False),
    Column("links", Json, nullable=False),
    Column("missing", Json, nullable=False),
    Column("labels", Json, nullable=False),
)

tasks = Table(
    "tasks",
    metadata,
    _of_request(),
    Column("task_id", Text, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("caller", Text, nullable=False),
    Column("capability", Text),
    Column("status", Text, nullable=False),
    Column("idempotent", Boolean, nullable=False),
    Column("timeout_ms", BigInteger, nullable=False),
    Column("similarity", Number, nullable=False),
    Column("inputs", Json, nullable=False),
    Column("agent_id", Text),
    Column("score", Number),
    Column("opened_ms", BigInteger),
    Column("deadline_ms", BigInteger),
    Column("finished_ms", BigInteger),
    Column("result_text", Words),
    Column("result_data", Json),
    Column("result_digest", Text),
    Column("error_code", Text),
    Column("reason", Words),
    Column("ranking", Words),
    Column("retry_after_s", Integer),
    Column("idempotency_key", Text),
    Column("repeat", Integer, nullable=False, server_default=text("0")),
    UniqueConstraint("request_id", "position"),
)
_where("ix_tasks_repeated", tasks, ("idempotency_key",), "idempotency_key IS NOT NULL")
_where(
    "ix_tasks_dead",
    tasks,
    ("finished_ms", "task_id"),
    "status IN ('failed', 'unavailable', 'outcome_unknown')",
)
_where("ix_tasks_open", tasks, ("deadline_ms",), "status IN ('waiting', 'open')")

attempts = Table(
    "attempts",
    metadata,
    Column("request_id", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("caller", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("token", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("not_before_ms", BigInteger, nullable=False),
    Column("timeout_ms", BigInteger, nullable=False),
    Column("claimed_by", Text),
    Column("claimed_until_ms", BigInteger),
    Column("published_ms", BigInteger),
    Column("lapse_ms", BigInteger),
    Column("finished_ms", BigInteger),
    Column("error_code", Text),
    Column("started_ms", BigInteger),
    Column("lease_ms", BigInteger),
    Column("progress", Json),
    ForeignKeyConstraint(
        ["request_id", "task_id"], ["tasks.request_id", "tasks.task_id"], ondelete="CASCADE"
    ),
)
_where("ix_attempts_due", attempts, ("agent_id", "not_before_ms"), "status = 'due'")
_where(
    "ix_attempts_claimed",
    attempts,
    ("claimed_until_ms", "agent_id"),
    "status = 'due' AND claimed_until_ms IS NOT NULL",
)
_where("ix_attempts_published", attempts, ("lapse_ms", "agent_id"), "status = 'published'")
_where("ix_attempts_finished", attempts, ("finished_ms",), "finished_ms IS NOT NULL")

results = Table(
    "results",
    metadata,
    _of_request(),
    Column("result_id", Text, primary_key=True),
    Column("caller", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("instance_id", Words, nullable=False),
    Column("kind", Text, nullable=False),
    Column("document", Words, nullable=False),
    Column("recorded_ms", BigInteger, nullable=False),
)

decisions = Table(
    "decisions",
    metadata,
    _of_request(),
    Column("position", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("caller", Text, nullable=False),
    Column("document", Words, nullable=False),
    Column("recorded_ms", BigInteger, nullable=False),
)

partials = Table(
    "partials",
    metadata,
    _of_request(),
    Column("task_id", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("sequence", Integer, primary_key=True),
    Column("caller", Text, nullable=False),
    Column("document", Words, nullable=False),
    Column("recorded_ms", BigInteger, nullable=False),
)

dead_frames = Table(
    "dead_frames",
    metadata,
    Column("dead_id", Text, primary_key=True),
    Column("source", Words, nullable=False),
    Column("reason", Text, nullable=False),
    Column("size_bytes", Integer, nullable=False),
    Column("body", Words, nullable=False),
    Column("recorded_ms", BigInteger, nullable=False),
)
Index("ix_dead_frames_recorded_ms", dead_frames.c.recorded_ms, dead_frames.c.dead_id)

sessions = Table(
    "sessions",
    metadata,
    Column("caller", Text, primary_key=True),
    Column("session_id", Words, primary_key=True),
    Column("user_id", Words),
    Column("version", BigInteger, nullable=False),
    Column("context", Json, nullable=False),
    Column("questions", Json, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
    Column("topics", Json, nullable=False, server_default=text("'[]'")),
)
Index("ix_sessions_changed_ms", sessions.c.changed_ms)

agents = Table(
    "agents",
    metadata,
    Column("agent_id", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("environment", Text, nullable=False),
    Column("declaration", Json, nullable=False),
    Column("registered_ms", BigInteger, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
)

instances = Table(
    "instances",
    metadata,
    Column("agent_id", Text, ForeignKey("agents.agent_id", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("instance_id", Text, nullable=False, unique=True),
    Column("inbox", Text, nullable=False),
    Column("inbox_id", Text),
    Column("draining", Boolean, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
)

leases = Table(
    "leases",
    metadata,
    Column("instance_id", Text, ForeignKey("instances.instance_id", ondelete="CASCADE"), primary_key=True),
    Column("lease_id", Text, nullable=False, unique=True),
    Column("granted_ms", BigInteger, nullable=False),
    Column("seen_ms", BigInteger, nullable=False),
)

capability_contracts = Table(
    "capability_contracts",
    metadata,
    Column("capability", Text, primary_key=True),
    Column("input_schema", Json, nullable=False),
    Column("output_schema", Json, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
)

registry_version = Table(
    "registry_version",
    metadata,
    Column("row_id", Integer, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
)
"""One row, made by the migration; locking it puts changes of declarations in order."""

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_id", Text, primary_key=True),
    Column("role", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("secret_sha256", Text, nullable=False),
    Column("revoked", Boolean, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
)

grants = Table(
    "grants",
    metadata,
    Column("caller", Text, primary_key=True),
    Column("capability", Text, primary_key=True),
    Column("granted_ms", BigInteger, nullable=False),
)

direct_secret = Table(
    "direct_secret",
    metadata,
    Column("row_id", Integer, primary_key=True, autoincrement=False),
    Column("secret", Text, nullable=False),
    Column("made_ms", BigInteger, nullable=False),
)
"""At most one row, made when it is first asked for; without it, all tickets end and new ones are made."""

feedback = Table(
    "feedback",
    metadata,
    _of_request(),
    Column("position", Integer, primary_key=True),
    Column("caller", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("capability", Text),
    Column("given_by", Text, nullable=False),
    Column("comment", Words, nullable=False),
    Column("recorded_ms", BigInteger, nullable=False),
)
"""The newest judgement of each intent's routing."""
Index("ix_feedback_recorded_ms", feedback.c.recorded_ms, feedback.c.request_id)

calibrations = Table(
    "calibrations",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("encoder_id", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("document", Json, nullable=False),
    Column("report", Json, nullable=False),
    Column("held", Boolean, nullable=False),
    Column("made_by", Text, nullable=False),
    Column("changed_by", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
)
"""Numbered from 1; what was made is never changed, only its state and who holds it in it."""

handoffs = Table(
    "handoffs",
    metadata,
    _of_request(),
    Column("task_id", Text, primary_key=True),
    Column("caller", Text, nullable=False),
    Column("described", Words),
    Column("published_ms", BigInteger),
    Column("publish_error", Text),
    Column("claimed_until_ms", BigInteger),
    Column("answer", Words),
    Column("answered_by", Text),
    Column("answered_ms", BigInteger),
)
"""Parts that wait for a person's answer, or have had it."""
_where("ix_handoffs_open", handoffs, ("request_id", "task_id"), "answered_ms IS NULL")
_where(
    "ix_handoffs_unpublished",
    handoffs,
    ("request_id", "task_id"),
    "published_ms IS NULL AND answered_ms IS NULL AND publish_error IS NULL",
)
_where("ix_handoffs_answered", handoffs, ("answered_ms", "task_id"), "answered_ms IS NOT NULL")
