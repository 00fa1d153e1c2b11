-- Arguments named stream that say which stream they refer to, with that stream.
CREATE VIEW "stream_args" AS
SELECT
    A.id AS "argument_id",                                   -- argument id, unique in its rank
    A.event_id AS "event_id",                                -- event row id
    A.position AS "arg_position",                            -- position in the argument list, from 0
    A.type AS "arg_type",                                    -- declared type
    A.value AS "arg_value",                                  -- value as text
    CASE WHEN json_valid(A.extdata) THEN json_extract(A.extdata, '$.stream_id') END AS "stream_id", -- HIP stream id {integer}
    S.nid AS "nid",                                          -- node id
    P.pid AS "pid",                                          -- OS process id
    S.name AS "stream_name",                                 -- HIP stream name
    S.extdata AS "extdata"                                   -- JSON of the stream
FROM
    "rocpd_arg{{uuid}}" A
    LEFT JOIN "rocpd_info_stream{{uuid}}" S ON S.id = CASE WHEN json_valid(A.extdata) THEN json_extract(A.extdata, '$.stream_id') END
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = S.pid
WHERE
    A.name = 'stream'
    AND CASE WHEN json_valid(A.extdata) THEN json_extract(A.extdata, '$.stream_id') END IS NOT NULL;
