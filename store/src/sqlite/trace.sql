-- Everything known of the id ?1, newest first, at most ?2 entries. `rank` puts
-- in order what happened within one millisecond.
WITH
found_sessions (id) AS (
    SELECT id FROM sessions WHERE id = ?1
    UNION SELECT id FROM sessions WHERE engine_session = ?1
),
-- Named themselves, or by the platform's or the requester's id.
named_messages (id, turn) AS (
    SELECT id, turn FROM messages WHERE id = ?1
    UNION SELECT id, turn FROM messages WHERE message_id = ?1
),
named_deliveries (id, turn, command) AS (
    SELECT id, turn, command FROM deliveries WHERE id = ?1
    UNION SELECT id, turn, command FROM deliveries WHERE request = ?1
    UNION SELECT d.id, d.turn, d.command
        FROM pieces p JOIN deliveries d ON d.id = p.delivery WHERE p.platform_message_id = ?1
),
found_turns (id) AS (
    SELECT id FROM turns WHERE id = ?1
    UNION SELECT turn FROM attempts WHERE engine_message = ?1
    UNION SELECT turn FROM named_messages WHERE turn IS NOT NULL
    UNION SELECT turn FROM named_deliveries WHERE turn IS NOT NULL
    UNION SELECT t.id FROM found_sessions s JOIN turns t ON t.session = s.id
),
found_messages (id) AS (
    SELECT id FROM named_messages
    UNION SELECT command FROM named_deliveries WHERE command IS NOT NULL
    UNION SELECT m.id FROM found_turns t JOIN messages m ON m.turn = t.id
    UNION SELECT m.id FROM found_sessions s JOIN messages m ON m.session = s.id
),
found_deliveries (id) AS (
    SELECT id FROM named_deliveries
    UNION SELECT d.id FROM found_turns t JOIN deliveries d ON d.turn = t.id
    UNION SELECT d.id FROM found_messages m JOIN deliveries d ON d.command = m.id
    UNION SELECT d.id FROM found_sessions s JOIN deliveries d ON d.session = s.id
)
SELECT at, kind, id, text FROM (
    SELECT m.accepted_at AS at, 'message' AS kind, m.id AS id, 0 AS rank, 0 AS seq,
        format('%s from %s in %s %s%s, id %s: %s',
            iif(m.command, 'command', 'message'), m.user_name, c.provider, c.channel,
            iif(c.thread = '', '', ' thread ' || c.thread), m.message_id, substr(m.text, 1, 200)
        ) AS text
    FROM found_messages f JOIN messages m ON m.id = f.id JOIN channels c ON c.key = m.channel
    UNION ALL
    SELECT t.started_at, 'turn', t.id, 1, 0, 'began in session ' || t.session
    FROM found_turns f JOIN turns t ON t.id = f.id
    UNION ALL
    SELECT a.at, 'turn', a.turn, 2, a.attempt,
        format('asked the engine, attempt %d, its message %s', a.attempt, a.engine_message)
    FROM found_turns f JOIN attempts a ON a.turn = f.id
    UNION ALL
    SELECT e.at, 'event', e.turn, 3, e.seq, format('%s %s', e.kind, substr(e.detail, 1, 500))
    FROM found_turns f JOIN events e ON e.turn = f.id
    UNION ALL
    SELECT t.ended_at, 'turn', t.id, 4, 0, t.state
    FROM found_turns f JOIN turns t ON t.id = f.id WHERE t.ended_at IS NOT NULL
    UNION ALL
    SELECT d.queued_at, 'delivery', d.id, 5, 0,
        format('%s queued for %s %s%s: %s', d.kind, c.provider, c.channel,
            iif(c.thread = '', '', ' thread ' || c.thread), substr(d.text, 1, 200))
    FROM found_deliveries f JOIN deliveries d ON d.id = f.id JOIN channels c ON c.key = d.channel
    UNION ALL
    SELECT p.at, 'delivery', p.delivery, 6, p.piece,
        format('piece %d stands on the platform as %s', p.piece, p.platform_message_id)
    FROM found_deliveries f JOIN pieces p ON p.delivery = f.id
    UNION ALL
    SELECT d.ended_at, 'delivery', d.id, 7, 0,
        iif(d.state = 'done', 'delivered', 'failed for good: ' || d.reason)
    FROM found_deliveries f JOIN deliveries d ON d.id = f.id WHERE d.ended_at IS NOT NULL
)
ORDER BY at DESC, rank DESC, id DESC, seq DESC
LIMIT ?2
