-- Ids are ULIDs that rise strictly in one database, so the order of ids is the
-- order of arrival. Times are milliseconds since 1970.

CREATE TABLE channels (
    key      INTEGER PRIMARY KEY,
    provider TEXT NOT NULL,
    channel  TEXT NOT NULL,
    thread   TEXT NOT NULL,
    mode     TEXT NOT NULL DEFAULT 'simple',
    model    TEXT,
    UNIQUE (provider, channel, thread)
) STRICT;

CREATE TABLE sessions (
    id             TEXT NOT NULL PRIMARY KEY,
    channel        INTEGER NOT NULL REFERENCES channels (key),
    title          TEXT NOT NULL,
    current        INTEGER NOT NULL CHECK (current IN (0, 1)),
    engine_session TEXT,
    created_at     INTEGER NOT NULL,
    used_at        INTEGER NOT NULL,
    turns          INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX sessions_current ON sessions (channel) WHERE current = 1;
-- A tool call's engine session tells who called: it must never be ambiguous.
CREATE UNIQUE INDEX sessions_engine ON sessions (engine_session)
    WHERE engine_session IS NOT NULL;
CREATE INDEX sessions_by_channel ON sessions (channel, used_at, id);
CREATE INDEX sessions_by_use ON sessions (used_at, id);

CREATE TABLE turns (
    id         TEXT NOT NULL PRIMARY KEY,
    session    TEXT NOT NULL REFERENCES sessions (id),
    state      TEXT NOT NULL CHECK (state IN ('running', 'answered', 'failed', 'cancelled')),
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    CHECK ((state = 'running') = (ended_at IS NULL))
) STRICT;
-- A session has one running turn at most.
CREATE UNIQUE INDEX turns_running ON turns (session) WHERE state = 'running';
CREATE INDEX turns_by_session ON turns (session, id);

-- Each time the engine was asked in a turn.
CREATE TABLE attempts (
    turn           TEXT NOT NULL REFERENCES turns (id),
    attempt        INTEGER NOT NULL,
    engine_message TEXT NOT NULL,
    at             INTEGER NOT NULL,
    PRIMARY KEY (turn, attempt)
) STRICT, WITHOUT ROWID;
CREATE INDEX attempts_by_message ON attempts (engine_message);

-- A turn's journal.
CREATE TABLE events (
    turn   TEXT NOT NULL REFERENCES turns (id),
    seq    INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    kind   TEXT NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (turn, seq)
) STRICT;

-- What frontends handed in: messages wait for a turn, commands are done at once.
CREATE TABLE messages (
    id          TEXT NOT NULL PRIMARY KEY,
    channel     INTEGER NOT NULL REFERENCES channels (key),
    message_id  TEXT NOT NULL,
    session     TEXT NOT NULL REFERENCES sessions (id),
    command     INTEGER NOT NULL CHECK (command IN (0, 1)),
    state       TEXT NOT NULL CHECK (state IN ('waiting', 'in turn', 'done')),
    turn        TEXT REFERENCES turns (id),
    user_id     TEXT NOT NULL,
    user_name   TEXT NOT NULL,
    text        TEXT NOT NULL,
    sent_at     INTEGER NOT NULL,
    accepted_at INTEGER NOT NULL,
    UNIQUE (channel, message_id),
    CHECK (
        CASE
            WHEN command THEN state = 'done' AND turn IS NULL
            ELSE (state = 'waiting') = (turn IS NULL)
        END
    )
) STRICT;
CREATE INDEX messages_waiting ON messages (session, id) WHERE state = 'waiting';
CREATE INDEX messages_in_turn ON messages (session, id) WHERE state = 'in turn';
CREATE INDEX messages_by_session ON messages (session, id);
CREATE INDEX messages_by_turn ON messages (turn, id) WHERE turn IS NOT NULL;
CREATE INDEX messages_by_message_id ON messages (message_id);

CREATE TABLE attachments (
    message  TEXT NOT NULL REFERENCES messages (id),
    position INTEGER NOT NULL,
    filename TEXT NOT NULL,
    mime     TEXT NOT NULL,
    content  BLOB NOT NULL,
    PRIMARY KEY (message, position)
) STRICT;

-- What is to be posted, by what caused it: a turn, a command, or a request.
CREATE TABLE deliveries (
    id        TEXT NOT NULL PRIMARY KEY,
    provider  TEXT NOT NULL,
    channel   INTEGER NOT NULL REFERENCES channels (key),
    session   TEXT NOT NULL REFERENCES sessions (id),
    turn      TEXT REFERENCES turns (id),
    command   TEXT REFERENCES messages (id),
    request   TEXT UNIQUE,
    kind      TEXT NOT NULL CHECK (kind IN ('answer', 'failure', 'notice', 'ask')),
    text      TEXT NOT NULL,
    reply_to  TEXT NOT NULL,
    buttons   TEXT NOT NULL,
    answers   TEXT NOT NULL,
    state     TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'done', 'failed')),
    attempt   INTEGER NOT NULL DEFAULT 0,
    reason    TEXT,
    told_in   TEXT REFERENCES turns (id),
    queued_at INTEGER NOT NULL,
    ended_at  INTEGER,
    CHECK ((turn IS NOT NULL) + (command IS NOT NULL) + (request IS NOT NULL) = 1),
    CHECK ((state = 'pending') = (ended_at IS NULL)),
    CHECK ((state = 'failed') = (reason IS NOT NULL))
) STRICT;
CREATE INDEX deliveries_pending ON deliveries (provider, id) WHERE state = 'pending';
CREATE INDEX deliveries_pending_by_channel ON deliveries (channel, id) WHERE state = 'pending';
CREATE INDEX deliveries_by_session ON deliveries (session, id);
CREATE INDEX deliveries_by_turn ON deliveries (turn, id) WHERE turn IS NOT NULL;
CREATE INDEX deliveries_by_command ON deliveries (command, id) WHERE command IS NOT NULL;
-- Failures that no turn told the engine about.
CREATE INDEX deliveries_untold ON deliveries (session, id)
    WHERE state = 'failed' AND told_in IS NULL;
CREATE INDEX deliveries_told ON deliveries (told_in, id) WHERE told_in IS NOT NULL;

-- What stands on the platform.
CREATE TABLE pieces (
    delivery            TEXT NOT NULL REFERENCES deliveries (id),
    piece               INTEGER NOT NULL,
    platform_message_id TEXT NOT NULL,
    at                  INTEGER NOT NULL,
    PRIMARY KEY (delivery, piece)
) STRICT, WITHOUT ROWID;
CREATE INDEX pieces_by_message ON pieces (platform_message_id);
