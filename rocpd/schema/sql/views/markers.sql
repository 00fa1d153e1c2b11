-- Marker ranges and marks (roctx), by message. A mark is a region with start = end or a sample.
CREATE VIEW "markers" AS
SELECT
    V.id AS "id",                                            -- row id, unique in its rank and kind
    V.guid AS "guid",                                        -- GUID of the rank
    V.category AS "category",                                -- domain of the event, MARKER_…
    COALESCE(CASE WHEN json_valid(V.extdata) THEN json_extract(V.extdata, '$.message') END, V.name) AS "name", -- the message, else the name of the function {text}
    V.name AS "function",                                    -- the roctx function or the track
    V.nid AS "nid",                                          -- node id
    V.pid AS "pid",                                          -- OS process id
    V.tid AS "tid",                                          -- OS thread id
    V.start AS "start",                                      -- start [ns]
    V."end" AS "end",                                        -- end [ns]
    V.duration AS "duration",                                -- end - start [ns]
    V.event_id AS "event_id",                                -- event row id
    V.stack_id AS "stack_id",                                -- internal correlation id
    V.parent_stack_id AS "parent_stack_id",                  -- stack_id of the enclosing call
    V.corr_id AS "corr_id"                                   -- external correlation id
    {{rank_host_of_V}}
FROM
    "regions_and_samples" V
WHERE
    V.category GLOB 'MARKER_*'
    OR V.category GLOB 'rocm_marker*';
