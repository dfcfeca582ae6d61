"""A lease in the database: of several watch processes one leads and may write the mirror.

All times are the database's, so that a machine whose clock is wrong neither steals nor keeps it.
"""

from __future__ import annotations

from django.db import connection

WATCH = "watch"
# A spare looks every second, so it takes over within 10 s of the last renewal.
LEASE_SECONDS = 8.0
RENEW_SECONDS = 2.0
# A leader that is frozen inside a transaction would keep its row locked, and its spare out, for
# ever: PostgreSQL ends such a session before the lease is over.
FROZEN_AFTER = "5s"


class LeadershipLost(Exception):
    """Somebody else leads, or our lease expired: nothing was written, and nothing may be."""


def take(holder: str, name: str = WATCH) -> bool:
    """Takes or renews the lease; False where somebody else holds it."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO devices_leadership AS held (name, holder, since, expires)
            VALUES (%s, %s, clock_timestamp(), clock_timestamp() + %s * interval '1 second')
            ON CONFLICT (name) DO UPDATE SET
                holder = excluded.holder,
                since = CASE WHEN held.holder = excluded.holder THEN held.since
                             ELSE excluded.since END,
                expires = excluded.expires
            WHERE held.holder IN ('', excluded.holder) OR held.expires < clock_timestamp()
            RETURNING holder
            """,
            [name, holder, LEASE_SECONDS],
        )
        return cursor.fetchone() is not None


def give_up(holder: str, name: str = WATCH) -> None:
    """Lets a spare take over at once; fine where it is not ours."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE devices_leadership SET holder = '', expires = clock_timestamp()"
            " WHERE name = %s AND holder = %s",
            [name, holder],
        )


def prove(holder: str, name: str = WATCH) -> None:
    """Within a transaction: `holder` leads until it commits. Raises LeadershipLost.

    The row is locked against others' taking it, so a process that was asleep cannot write over
    what its successor wrote.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('idle_in_transaction_session_timeout', %s, true)", [FROZEN_AFTER]
        )
        cursor.execute(
            "SELECT holder FROM devices_leadership"
            " WHERE name = %s AND holder = %s AND expires > clock_timestamp() FOR SHARE",
            [name, holder],
        )
        if cursor.fetchone() is None:
            raise LeadershipLost(f"{holder} does not hold the lease {name!r}")
