-- Samples in the shape of regions: zero-length, one row per row of rocpd_sample.
CREATE VIEW "sample_regions" AS
SELECT
    S.id AS "id",                            -- sample id, unique in its rank
    S.guid AS "guid",                        -- GUID of the rank
    C.string AS "category",                  -- domain of the event, such as KERNEL_DISPATCH
    N.string AS "name",                      -- name of the track
    K.nid AS "nid",                          -- node id
    P.pid AS "pid",                          -- OS process id
    T.tid AS "tid",                          -- OS thread id
    S.timestamp AS "start",                  -- time of the sample [ns]
    S.timestamp AS "END",                    -- time of the sample [ns]
    S.timestamp - S.timestamp AS "duration", -- always 0 [ns] {integer}
    S.event_id AS "event_id",                -- event row id
    E.stack_id AS "stack_id",                -- internal correlation id, equal for a launch and its operations
    E.parent_stack_id AS "parent_stack_id",  -- stack_id of the enclosing call
    E.correlation_id AS "corr_id",           -- external correlation id
    E.extdata AS "extdata",                  -- JSON of the event
    E.call_stack AS "call_stack",            -- JSON call stack
    E.line_info AS "line_info"               -- JSON source line
FROM
    "rocpd_sample{{uuid}}" S
    LEFT JOIN "rocpd_track{{uuid}}" K ON K.id = S.track_id
    LEFT JOIN "rocpd_event{{uuid}}" E ON E.id = S.event_id
    LEFT JOIN "rocpd_string{{uuid}}" C ON C.id = E.category_id
    LEFT JOIN "rocpd_string{{uuid}}" N ON N.id = K.name_id
    LEFT JOIN "rocpd_info_process{{uuid}}" P ON P.id = K.pid
    LEFT JOIN "rocpd_info_thread{{uuid}}" T ON T.id = K.tid;
